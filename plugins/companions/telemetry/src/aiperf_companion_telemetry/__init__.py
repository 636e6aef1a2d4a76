"""Telemetry beside the run: starts a process for each source, requests samples at edges, and ends it."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from aiperf import PhasePlan
from aiperf.parts.processes import SideProcess, fate
from aiperf.parts.samples import sample_path
from aiperf.sdk.companion import Companion, CompanionContext
from aiperf.sdk.telemetry import TelemetryContext

from aiperf_companion_telemetry.messages import BEGIN, END, Begun, Edge, SourceStart, SourceTrouble, decode_reply

log = logging.getLogger("aiperf.companions.telemetry")

_START_S, _EDGE_S, _END_S = 10.0, 2.0, 2.0
_FOLDS_S = 10.0
"""Longest time for the last folds of a source that answers; without them its samples are folded again, which takes longer."""


class Telemetry(Companion[None]):
    """The run's side.  It never waits for long.  Of the run's secrets a source gets the headers, to fetch from the servers."""

    def __init__(self, options: None, context: CompanionContext) -> None:
        super().__init__(options, context)
        self._patience_s = _START_S  # the first answer includes the start of the source
        self._running: dict[str, SideProcess] = {}
        self._late: set[str] = set()
        self._finish_s: float | None = None

    def begin(self) -> None:
        plan, secrets = self.context.plan, self.context.secrets
        plugins = plan.plugins
        hooks = tuple((ref, plugins.options.get(ref.key)) for ref, _ in plugins.hooked("aiperf_samples_arrived"))
        context = TelemetryContext(plan.public().target.urls, plan.target.models, plan.target.tls, secrets.headers)
        main = next(phase.index for phase in plan.load.phases if phase.kind == "profiling")
        slices = None if plan.output.slice_ns is None else (main, plan.output.slice_ns)
        series = None if plugins.series is None else (plugins.series, plugins.options.get(plugins.series.key))
        for number, ref in enumerate(plugins.telemetry):
            process = SideProcess("aiperf_companion_telemetry.process", log=self.context.log_file)
            path, options = str(sample_path(Path(plan.output.journal), number)), plugins.options.get(ref.key)
            process.send(SourceStart(ref, options, context, path, hooks, slices, series, secrets.texts))
            self._running[str(ref)] = process

    def phase_begins(self, phase: PhasePlan) -> None:
        self._sample(phase.index, BEGIN)

    def phase_began(self, phase: PhasePlan, at_ns: int) -> None:
        for process in self._running.values():
            process.send(Begun(phase.index, at_ns))

    def phase_ended(self, phase: PhasePlan, at_ns: int) -> None:
        self._sample(phase.index, END, at_ns)

    def finish(self) -> None:
        """Let the processes write their last folds and end; doesn't wait for them."""
        for process in self._running.values():
            if not process.backlogged:
                process.let_go()
        self._finish_s = time.monotonic()

    def close(self) -> None:
        """End all processes; a process that doesn't end in time is killed."""
        folding = self._finish_s is not None  # else the run ends before its load, and there are no folds to wait for
        since_s = time.monotonic() if self._finish_s is None else self._finish_s
        for name, process in self._running.items():
            patience_s = _FOLDS_S if folding and name not in self._late else _END_S
            process.end(max(0.0, since_s + patience_s - time.monotonic()))
            self._listen(name, process, 0.0, None)
            process.close()
        self._running.clear()

    def _sample(self, phase: int, edge: str, at_ns: int = 0) -> None:
        """Take samples at an edge of the phase (BEGIN or END); returns when each source has answered or is too slow.

        A source that was too slow is not waited for until it has answered.  *at_ns*: when the phase ended.
        """
        reached = Edge(phase, edge, at_ns)
        for process in self._running.values():
            process.send(reached)
        until = time.monotonic() + self._patience_s
        self._patience_s = _EDGE_S
        for name, process in list(self._running.items()):
            known_late = name in self._late
            if self._listen(name, process, 0.0 if known_late else until, reached):
                continue
            code = process.poll()
            if code is None and known_late:
                continue
            if code is None:
                self._late.add(name)
                self.context.report(f"{name} was too slow for a sample at the {edge} of phase {phase}")
                continue
            del self._running[name]
            process.close()
            self.context.report(f"{name}: its process {fate(code)}; there are no further samples")

    def _listen(self, name: str, process: SideProcess, until: float, wanted: Edge | None) -> bool:
        """Handle replies until *until* (monotonic s); True as soon as *wanted* arrives."""
        arrived = False
        while True:
            left_s = max(0.0, until - time.monotonic())
            ended = process.poll() is not None
            for line in process.receive(0.0 if ended else left_s):
                match decode_reply(line):
                    case SourceTrouble(message, absent):
                        if absent:
                            log.info("%s", message)
                        else:
                            self.context.report(message)
                    case sampled:
                        self._late.discard(name)
                        arrived |= sampled == wanted
            if arrived or ended or left_s == 0.0:
                return arrived


__all__ = ["Telemetry"]
