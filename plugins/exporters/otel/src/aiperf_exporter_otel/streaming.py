"""Metrics by OpenTelemetry while a run goes on: a process of its own adds up and sends them."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from pathlib import Path

from aiperf import PhasePlan, Snapshot
from aiperf.parts.processes import SideProcess, fate
from aiperf.sdk.companion import Companion, CompanionContext, Waiting
from msgspec.structs import replace

from aiperf_exporter_otel.conventions import operation, provider
from aiperf_exporter_otel.link import address_file
from aiperf_exporter_otel.messages import (
    PhaseCounts,
    StreamDone,
    StreamFinish,
    StreamReady,
    StreamStart,
    StreamTrouble,
    decode_stream,
)
from aiperf_exporter_otel.options import TIMING, Limits, StreamOptions, attributes

log = logging.getLogger("aiperf.companions.otel")

_READY_S = 20.0
"""Longest time that the load waits for the process, whose imports would disturb it."""
_END_S = 8.0
"""For the reducers' last requests, beside the time of one sending."""


class OtelStream(Companion[StreamOptions]):
    """The run's side.  Nothing of it waits for the collector before the end of the load."""

    def __init__(self, options: StreamOptions, context: CompanionContext) -> None:
        super().__init__(options, context)
        self._process: SideProcess | None = None
        self._folder: str | None = None
        self._began_s = self._phase_ns = 0.0
        self._ready = self._finishing = self._lost = False
        self._last: PhaseCounts | None = None
        self._limits = Limits.of_environment()

    def begin(self) -> None:
        plan, options = self.context.plan, self.options
        assert options.url is not None  # needs_option
        self._folder = tempfile.mkdtemp(prefix="aiperf-otel-")
        address = str(Path(self._folder, "reducers"))
        resource = {
            "service.name": "aiperf", "service.instance.id": plan.run.run_id, "aiperf.benchmark.id": plan.run.run_id,
            "aiperf.endpoint.type": plan.plugins.endpoint.name, "aiperf.model.name": plan.target.models[0],
            **({"aiperf.sweep.id": plan.run.study_id} if plan.run.study_id else {}), **attributes(options.resource_attributes),
        }  # fmt: skip
        limits = self._limits
        start = StreamStart(
            options.url, address, resource, options.gen_ai_provider or provider(plan.target.urls),
            operation(plan.plugins.endpoint.name), plan.run.reducers, limits.interval_s, limits.most_records, limits.request_s,
        )  # fmt: skip
        self._process = SideProcess("aiperf_exporter_otel.process", log=Path(os.devnull), secrets=True)
        self._process.send(start)
        address_file(Path(plan.output.journal)).write_text(address)
        self._began_s = time.monotonic()

    def waiting(self) -> Waiting | None:
        self._listen()
        if self._ready or self._lost or time.monotonic() - self._began_s > _READY_S:
            return None
        return Waiting("Waiting for the process that sends metrics")

    def phase_began(self, phase: PhasePlan, at_ns: int) -> None:
        self._phase_ns, self._last = at_ns, None

    def snapshot(self, snapshot: Snapshot) -> None:
        self._listen()
        counts = PhaseCounts(
            snapshot.phase, snapshot.kind, snapshot.sent, snapshot.completed, snapshot.errors, snapshot.in_flight,
            snapshot.elapsed_s,
        )
        self._last = counts
        self._send(counts)

    def phase_ended(self, phase: PhasePlan, at_ns: int) -> None:
        if self._last is None:
            return
        timed_out = phase.duration_ns is not None and at_ns - self._phase_ns >= phase.duration_ns
        self._send(replace(self._last, elapsed_s=(at_ns - self._phase_ns) / 1e9, timed_out=timed_out))

    def _send(self, counts: PhaseCounts) -> None:
        if self._process is not None and self.options.sends(TIMING):
            self._process.send(counts)

    def finish(self) -> None:
        self._finishing = True

    def close(self) -> None:
        """Let the process send the rest: reducers have told all by now, where the load came to its end."""
        process, self._process = self._process, None
        try:
            if process is not None:
                self._end(process)
        finally:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                address_file(Path(self.context.plan.output.journal)).unlink(missing_ok=True)
                self._folder = None

    def _end(self, process: SideProcess) -> None:
        done: StreamDone | None = None
        if self._finishing and not self._lost:
            process.send(StreamFinish())
            until_s = time.monotonic() + self._limits.request_s + _END_S
            while done is None and not self._lost and (left_s := until_s - time.monotonic()) > 0:
                _ = process.backlogged
                done = self._heard(process, min(left_s, 0.1))
        process.end(0.5 if done is not None else 0.0)
        process.close()
        if self._finishing and not self._lost:
            self._judge(done)

    def _judge(self, done: StreamDone | None) -> None:
        """Say what has not arrived."""
        who = f"--otel-url {self.options.url}"
        if done is None:
            self.context.report(f"{who}: the last metrics were not sent in {self._limits.request_s + _END_S:g} s")
            return
        if done.why is not None:
            self.context.report(f"{who}: {done.why}; the metrics of the run have not all arrived")
        if done.dropped:
            self.context.report(f"{who}: {done.dropped:,} requests came faster than they were taken, and were left out")
        if done.missing:
            self.context.report(f"{who}: the last requests of {done.missing} reducers were left out")

    def _listen(self) -> None:
        if self._process is not None and not self._lost:
            self._heard(self._process, 0.0)

    def _heard(self, process: SideProcess, wait_s: float) -> StreamDone | None:
        """Heed the process; its last word, if that has come."""
        for line in process.receive(wait_s):
            match decode_stream(line):
                case StreamReady():
                    self._ready = True
                case StreamTrouble(why):
                    self.context.report(f"--otel-url {self.options.url}: {why}; it is tried again until the run ends")
                case StreamDone() as done:
                    return done
        if process.poll() is not None and not self._lost:
            self._lost = True
            self.context.report(f"--otel-url {self.options.url}: its process {fate(process.poll())}; nothing more is sent")
        return None


__all__ = ["OtelStream"]
