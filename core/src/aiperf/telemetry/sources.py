"""The run's telemetry sources, as the run sees them: a process for each, told of the edges of phases, never in the way."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from aiperf.addresses import without_secrets
from aiperf.aside import Aside
from aiperf.plan import Plan
from aiperf.strangers import who
from aiperf.telemetry import TelemetryContext
from aiperf.telemetry.process import BEGIN, END, Edge, Opened, Sampled, Trouble, decode_reply
from aiperf.telemetry.samples import sample_path

log = logging.getLogger(__name__)

_START_S = 10.0
_EDGE_S = 2.0
_END_S = 2.0


class Sources:
    """Starts them, asks for samples at the edges, and ends them.  *report* is told of what goes wrong."""

    def __init__(self, plan: Plan, log_file: Path, report: Callable[[str], None]) -> None:
        self._report = report
        self._patience_s = _START_S  # the first answer comes from a source that has yet to start
        self._running: dict[str, Aside] = {}
        hooks = tuple((ref, plan.options.get(f"{ref.category}:{ref.name}")) for ref in plan.hooks)
        context = TelemetryContext(tuple(without_secrets(url) for url in plan.urls), plan.models)
        for number, ref in enumerate(plan.telemetry):
            with log_file.open("ab") as output:
                process = Aside("aiperf.telemetry.process", output=output)
            path = str(sample_path(Path(plan.journal), number))
            process.tell(Opened(ref, plan.options.get(f"{ref.category}:{ref.name}"), context, path, hooks))
            self._running[who(ref)] = process

    def begin(self, phase: int) -> None:
        """The phase is about to begin: return when each has its sample, or is too slow for it."""
        self._edge(phase, BEGIN)

    def end(self, phase: int) -> None:
        """Likewise when it has ended."""
        self._edge(phase, END)

    def close(self) -> None:
        """End them all; those that don't end are killed."""
        for name, process in self._running.items():
            process.end(_END_S)
            self._listen(name, process, 0.0, None)
            process.close()
        self._running.clear()

    def _edge(self, phase: int, edge: str) -> None:
        for process in self._running.values():
            process.tell(Edge(phase, edge))
        until = time.monotonic() + self._patience_s
        self._patience_s = _EDGE_S
        for name, process in list(self._running.items()):
            if not self._listen(name, process, until, Sampled(phase, edge)):
                self._lost(name, process, phase, edge)

    def _listen(self, name: str, process: Aside, until: float, wanted: Sampled | None) -> bool:
        """Take in what it says; whether that was said which is *wanted* before *until*."""
        while True:
            left_s = max(0.0, until - time.monotonic())
            ended = process.poll() is not None
            for line in process.heard(0.0 if ended else left_s):
                match decode_reply(line):
                    case Trouble(message, absent):
                        if absent:
                            log.info("%s", message)
                        else:
                            self._report(message)
                    case sampled if sampled == wanted:
                        return True
            if ended or left_s == 0.0:
                return False

    def _lost(self, name: str, process: Aside, phase: int, edge: str) -> None:
        code = process.poll()
        if code is None:
            self._report(f"{name} was too slow for a sample at the {edge} of phase {phase}")
            return
        del self._running[name]
        process.close()
        self._report(f"{name}: its process ended with {code}; there are no further samples")
