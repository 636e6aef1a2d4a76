"""A small load whose journal a reducer gets part by part."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
from aiperf.rundir import journal
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.reducer import RunningReduction
from aiperf.sdk.summary import Summary

from aiperf_testing.journals import Recording, event

_NS_PER_MS = 1_000_000
_PHASES = (PhasePlan("warmup", "warmup", 0, "burst"), PhasePlan("profiling", "profiling", 1, "burst"))
SHARDS, _PART_REQUESTS = 2, 6
"""Workers of the load, and requests of each in a part."""
_MOST_STEPS, WHILE_S = 1_000, 0.4
"""Steps after which a reducer must have rested; seconds for which one is stepped through its rests."""
COUNTS = {"warmup": (2 * SHARDS, 0), "profiling": (13 * SHARDS, 3 * SHARDS)}
"""Requests of :class:`SampleLoad` that succeeded and failed."""


class SampleLoad:
    """A run of a warmup and a profiling phase by two workers, whose journal grows part by part."""

    def __init__(self, directory: Path, reducers: int = 1) -> None:
        self.directory = directory
        self.recording = Recording(directory, phases=_PHASES, workers=SHARDS, reducers=reducers)
        self.plan, self.journal = self.recording.plan, self.recording.journal
        self.parts, self._sent, self.ended_ns = 3, 0, 0

    def write(self, part: int) -> None:
        """Six requests of each worker, the first two of them the warmup's; a new segment begins behind the second part."""
        for shard in range(SHARDS):
            for request in range(part * _PART_REQUESTS, part * _PART_REQUESTS + _PART_REQUESTS):
                self._write(shard, request)
            self.recording.flush((part + 1) * 10 * _NS_PER_MS, shard=shard)
            if part == 1:
                self.recording.roll(shard=shard)
        self._sent = (part + 1) * _PART_REQUESTS

    def _write(self, shard: int, request: int) -> None:
        made, phase = self.recording, int(request >= 2)
        at_ns = request * _NS_PER_MS
        n = (request - 2 * phase) * SHARDS + shard
        self.ended_ns = at_ns + 900_000
        if not request:
            made.phase("begin", 0, phase=0, shard=shard)
        if request == 2:
            made.phase("end", at_ns, phase=0, shard=shard)
            made.phase("begin", at_ns, phase=1, shard=shard)
        made.sent(request, at_ns, n=n, phase=phase, entry=n % 2, shard=shard)
        if request % 5 == 4:
            made.text(request, "error", {"message": "busy", "type": "Service Unavailable", "code": 503}, shard=shard)
            made.done(request, self.ended_ns, outcome=journal.ERROR, status=503, flags=0, shard=shard)
            return
        made.read(request, at_ns + 300_000, event(text="one two"), shard=shard)
        made.read(request, at_ns + 600_000, event(text=" three") + b"data: [DONE]\n\n", shard=shard)
        made.done(request, self.ended_ns, shard=shard)

    def end(self, more: int = 0) -> None:
        """The workers end; *more*: requests that the first sent, and that are in no segment."""
        for shard in range(SHARDS):
            self.recording.phase("end", self.ended_ns, phase=1, shard=shard)
        self.recording.ended(requests={shard: self._sent + (0 if shard else more) for shard in range(SHARDS)})

    def whole(self, open_requests: int = 0) -> SampleLoad:
        for part in range(self.parts):
            self.write(part)
        for request in range(self._sent, self._sent + open_requests):
            self.recording.sent(request, self.ended_ns, n=2 * request, phase=1)
        self.recording.flush(self.ended_ns)
        self._sent += open_requests
        self.end()
        return self

    def files(self) -> dict[str, bytes]:
        """The segments, and what the run wrote of itself."""
        return {
            path.name: path.read_bytes()
            for path in self.journal.iterdir()
            if path.suffix == ".seg" or path.name == "run.json" or path.name.startswith("dataset.")
        }

    def summary(self) -> Summary:
        return msgspec.msgpack.decode((self.journal / "summary.msgpack").read_bytes(), type=Summary)


def steps(reduction: RunningReduction, while_s: float = 0.0) -> list[int]:
    """Step until the reducer rests, or so long with its rests; the live count behind each step."""
    seen, until_s = [], time.monotonic() + while_s
    for _ in range(_MOST_STEPS):
        rest_ms = reduction.step()
        assert type(rest_ms) is int and rest_ms >= 0, "step() gives the rest until the next one, in whole ms"
        seen.append(reduction.live.done)
        if rest_ms and time.monotonic() >= until_s:
            return seen
        time.sleep(min(rest_ms / 1000, while_s))
    raise AssertionError(f"step() does not rest after {_MOST_STEPS:,} steps over 50 requests")


def finished(running: list[RunningReduction], load: SampleLoad) -> Summary:
    for reduction in running:
        reduction.finish()
    running[0].summarize()
    for reduction in running:
        if reduction.rows_wait:
            assert reduction.write_rows() == [], "write_rows gave rows in a run without exporters of rows: give []"
    return load.summary()


def counts(summary: Summary) -> dict[str, tuple[int, int]]:
    return {phase.name: (phase.valid, phase.failed) for phase in summary.phases}
