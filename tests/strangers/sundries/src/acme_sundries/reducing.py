"""What becomes of the journal."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from aiperf import Plan, Result, Summary
from aiperf.parts import journal
from aiperf.sdk.errors import BadJournal
from aiperf.sdk.reducer import Reducer, ReducerJob, RunningReduction, plugins_used
from aiperf.sdk.summary import Arrivals, DeliveredLoad, Measurement, PhaseSummary

Request = tuple[int, int, int | None, int]
"""Phase, start, outcome (None before the end) and end."""


class Abacus(Reducer[None]):
    """Reads the whole journal when the load is over: the mean time of a request."""

    rows = False

    def begin(self, job: ReducerJob) -> RunningReduction:
        return _Beads(job)

    def report(
        self, directory: Path, change: Callable[[Plan], Plan] | None = None
    ) -> tuple[Summary, Plan, journal.RunClock]:
        where = directory / "journal"
        plan, clock = journal.load_run(where)
        if not journal.numbered(where, "shard-*.seg"):
            raise BadJournal(f"{directory} holds no segments")
        plan = plan.replacing(artifacts=str(directory.absolute()), journal=str(where.absolute()))
        plan = plan if change is None else change(plan)
        with journal.hold(where):
            return _summarized(plan, clock, where), plan, clock


class _Beads(RunningReduction):
    def __init__(self, job: ReducerJob) -> None:
        self._job = job

    def step(self) -> int:
        return 1_000

    def finish(self) -> None:
        pass

    def summarize(self) -> None:
        _summarized(self._job.plan, self._job.clock, self._job.journal)


def _summarized(plan: Plan, clock: journal.RunClock, where: Path) -> Summary:
    end = journal.load_end(where) or journal.RunEnd(incomplete="the run did not record its end")
    read = {shard: dict(_requests(where, shard)) for shard in range(plan.run.workers)}
    lost = sum(end.requests.values()) - sum(map(len, read.values())) if end.requests else 0
    requests = [request for shard in read.values() for request in shard.values()]
    open_ones = sum(outcome is None for _, _, outcome, _ in requests)
    reason = end.incomplete or (f"{lost} are lost" if lost > 0 else f"{open_ones} are open" if open_ones else None)
    phases = tuple(_phase(each.name, each.kind, each.index, requests, clock) for each in plan.load.phases)
    main = next(phase for phase in phases if phase.kind == "profiling")
    sent = main.valid + main.failed
    summary = Summary(
        plan.run.run_id, plan.run.version, main.results, (), phases,
        Measurement("read", False, Arrivals(sent, sent, completed=main.valid, errors=main.failed)),
        DeliveredLoad(None, None, 0), plugins_used(plan), main.start_ns, main.end_ns, "Beads", plan.run.command,
        plan.input_config(), main.valid, main.failed, end.cancelled, reason is None, reason,
        extra={"lost": [f"{lost} are lost"]} if lost > 0 else {},
        outcomes={name: count for name, count in (("completed", main.valid), ("failed", main.failed)) if count},
    )  # fmt: skip
    draft = where / "summary.draft"
    draft.write_bytes(msgspec.msgpack.encode(summary))
    draft.replace(where / "summary.msgpack")
    return summary


def _phase(name: str, kind: str, index: int, requests: list[Request], clock: journal.RunClock) -> PhaseSummary:
    own = [request for request in requests if request[0] == index and request[2] is not None]
    good = [(ended - started) / 1e6 for _, started, outcome, ended in own if outcome == journal.COMPLETED]
    shift = clock.started_wall_ns - clock.started_mono_ns
    first = min((started for _, started, _, _ in own), default=clock.started_mono_ns)
    last = max((ended for *_, ended in own), default=first)
    stats = {"avg": sum(good) / len(good), "min": min(good), "max": max(good), "count": float(len(good))} if good else {}
    results = {"bead": Result("bead", "Bead", "ms", stats, order=1)} if good else {}
    return PhaseSummary(
        name, kind, index, first + shift, last + shift, results, valid=len(good), failed=len(own) - len(good)
    )


def _requests(where: Path, shard: int) -> Iterator[tuple[int, Request]]:
    """Each request, and once more when it has ended."""
    open_ones: dict[int, Request] = {}
    for path in journal.numbered(where, f"shard-{shard}.*.seg"):
        for frame in journal.frames(path):
            for row in _rows(frame, journal.SENT, journal.SENT_FIELDS):
                open_ones[row["request"]] = (row["phase"], row["started_ns"], None, 0)
                yield row["request"], open_ones[row["request"]]
            for row in _rows(frame, journal.DONE, journal.DONE_FIELDS):
                phase, started, _, _ = open_ones.pop(row["request"])
                yield row["request"], (phase, started, row["outcome"], row["ended_ns"])


def _rows(frame: journal.Frame, kind: int, fields: tuple[str, ...]) -> Iterator[dict[str, int]]:
    if frame.kind == kind:
        values = memoryview(frame.payload).cast("q").tolist()
        for start in range(0, len(values), len(fields)):
            yield dict(zip(fields, values[start : start + len(fields)], strict=True))
