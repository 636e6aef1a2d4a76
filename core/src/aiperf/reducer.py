"""A reducer process: follows the journal's segments and turns them into columns and folded metrics.

    python -m aiperf.reducer ADDRESS INDEX REDUCERS JOURNAL

It may lag, die and start again: the file is the queue.  When standard input ends the parent is gone, and what is not
reduced yet waits for ``aiperf report``.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf.engine import control
from aiperf.errors import AiperfError
from aiperf.plan import Secrets

if TYPE_CHECKING:
    from aiperf.reduce import Reducer

_STEP_S = 0.1
_SHARED_STEP_S = 0.02
_SHARED_REST = 2
_IDLE_MS = 50
_LIVE_S = 0.5


class Process:
    """Messages in, steps of work in between."""

    def __init__(self, line: control.Line, index: int, of: int, journal: Path) -> None:
        self.line, self.index, self.of, self.journal = line, index, of, journal
        self.reducer: Reducer | None = None
        self.over = False
        self.trouble: str | None = None
        self.secrets = Secrets()
        self.crowded = False
        self._told_s = 0.0
        self._done = -1

    def run(self) -> None:
        self.line.send(control.Hello("reducer", self.index, os.getpid()))
        self._preload()
        rest_ms = _IDLE_MS
        while not self.over:
            message = self.line.receive(rest_ms)
            if message is not None:
                self._handle(message)
                continue
            if _parent_gone():
                return
            rest_ms = self._step()
            self._tell_live()

    def _step(self) -> int:
        """Reduce what is new; how long to rest then, in ms.  A disk that takes nothing more ends it, not the process."""
        if self.reducer is None or self.trouble is not None:
            return _IDLE_MS
        began = time.monotonic()
        try:
            found = self.reducer.step(_SHARED_STEP_S if self.crowded else _STEP_S)
        except OSError as error:
            self.trouble = f"results can't be written: {error.strerror or error}"
            self.line.send(control.Trouble("reducer", self.index, self.trouble))
            return _IDLE_MS
        if not found:
            return _IDLE_MS
        return round((time.monotonic() - began) * 1000 * _SHARED_REST) if self.crowded else 0

    def _preload(self) -> None:
        """Import, and read the tokenizer's table, while the data set is still being built."""
        from aiperf import reduce as _imported  # noqa: F401
        from aiperf.build import open_tokenizer
        from aiperf.rundir import load_run

        with contextlib.suppress(AiperfError):  # said, with its cause, by who builds the data set
            open_tokenizer(load_run(self.journal)[0])

    def _handle(self, message: control.Message) -> None:
        match message:
            case control.Load():
                self.secrets = message.secrets or self.secrets
                self.line.send(control.Ready("reducer", self.index, self._trouble(self._load)))
            case control.Finish():
                self.line.send(control.Finished(self.index, self._trouble(self._finish)))
            case control.Summarize():
                self.line.send(control.Finished(self.index, self._trouble(lambda: self._summarize(message))))
            case control.Exit():
                self.over = True
            case _:  # Advance: there is something to read, which the next step finds
                pass

    @staticmethod
    def _trouble(work: object) -> str | None:
        try:
            work()  # type: ignore[operator]
        except (OSError, AiperfError) as error:
            return "\n".join(error.lines()) if isinstance(error, AiperfError) else str(error)
        return None

    def _load(self) -> None:
        from aiperf.reduce import RARELY, Reducer
        from aiperf.rundir import load_run

        gc.set_threshold(*RARELY)
        plan, clock = load_run(self.journal)
        plan = self.secrets.restored(plan)
        # Without a core of its own for each of us, the server and the parent, even idle time isn't free: caches and memory
        # are shared.  A worker at its limit sent 65,000 requests/s with the reducer stopped, 47,000 beside it on two cores.
        self.crowded = (os.cpu_count() or 1) < plan.workers + plan.reducers + 2
        self.reducer = Reducer(plan, self.journal, self.index, self.of, clock=clock)
        yield_to_measuring()

    def _finish(self) -> None:
        if self.trouble is not None:
            raise AiperfError(self.trouble)
        take_part()
        if self.reducer is not None:
            self.reducer.finish()

    def _summarize(self, message: control.Summarize) -> None:
        from aiperf.report import write_summary

        write_summary(
            self.journal,
            cancelled=message.cancelled,
            incomplete_reason=message.incomplete_reason,
            warnings=message.warnings,
            secrets=self.secrets,
        )

    def _tell_live(self) -> None:
        now = time.monotonic()
        if self.reducer is None or now - self._told_s < _LIVE_S:
            return
        self._told_s = now
        live = self.reducer.live()
        if live.done != self._done:
            self._done = live.done
            self.line.send(control.Live(self.index, live.done, live.ttft_ms, live.itl_ms))


def _parent_gone() -> bool:
    readable, _, _ = select.select([0], [], [], 0)
    return bool(readable) and not os.read(0, 4096)


def yield_to_measuring() -> None:
    """Run only where the measuring loop, or the server under test, leaves a core idle: the file is the queue.

    A low priority alone isn't enough: a running process keeps its core for a slice of about 3 ms when another wakes.
    """
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def take_part() -> None:
    """Ordinary scheduling again, where this user may ask for it: nothing is being measured any more."""
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def main(arguments: list[str]) -> None:
    address, index, of, journal = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    line = control.Line(address, f"reducer-{index}")
    Process(line, int(index), int(of), Path(journal)).run()
    line.close()
    sys.stderr.flush()
    os._exit(0)  # nothing is left to do, and tearing an interpreter of this size down takes long


if __name__ == "__main__":
    main(sys.argv[1:])
