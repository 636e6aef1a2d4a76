"""A reducer process: it follows the journal's segments, and writes columns and folded metrics.

    python -m aiperf.run.reducer_process ADDRESS INDEX

The segments are its queue: it may lag, die and start again.  It ends with the parent, at once; ``aiperf report`` reduces the
rest then.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from aiperf import environment, logs
from aiperf.errors import AiperfError
from aiperf.processes import control
from aiperf.processes.leftovers import Leftovers
from aiperf.processes.local import end_with_parent, ignore_endings
from aiperf.registry.patience import calls, no_exit
from aiperf.registry.third_party import blamed, endpoint_of, failure, why
from aiperf.rundir.journal import load_run
from aiperf.rundir.reducing import reducer_of
from aiperf.sdk.plan import Plan, Secrets
from aiperf.sdk.reducer import Live, ReducerJob, RunningReduction
from aiperf.sdk.snapshot import Snapshot, VerdictSoFar

_IDLE_MS = 50
_LIVE_S = 0.5


class ReducerProcess:
    """A plan in this process: handles messages, and lets the plan's reducer work between them."""

    def __init__(self, line: control.Line, index: int, journal: Path) -> None:
        self.line, self.index, self.journal = line, index, journal
        self.reduction: RunningReduction | None = None
        self.secrets, self.watched, self.lines_s = Secrets(), False, dict[int, float]()
        self.looked, self._asked = False, False
        self.over = self.released = self.hurry = self._guarded = False
        self._failure: str | None = None
        self._rest_ms, self._told_s, self._work_told_s = _IDLE_MS, 0.0, 0.0
        self._warnings = logs.PluginWarnings()

    def run(self) -> bool:
        """Whether another plan may follow."""
        with self._warnings.kept(), calls.watched(environment.plugin_s()), no_exit(self._warn):
            self._preload()
            while not self.over:
                message = self.line.receive(self._rest_ms)
                if message is not None:
                    self._handle(message)
                    continue
                if _parent_gone():
                    return False
                if self._failure is None and (failed := self._trouble(self._step)) is not None:
                    self._failure, self._rest_ms = failed, _IDLE_MS
                    self.line.send(control.Trouble(failed))  # there would be no results
        return self.released

    def _preload(self) -> None:
        """What can be done while another process makes the data set; what fails without a refusal is reported by Load."""
        plan = load_run(self.journal)[0]
        self.who = plan.plugins.reducer
        self._trouble(lambda: self._check(plan))
        self._trouble(lambda: reducer_of(plan).preload(plan))

    def _step(self) -> None:
        self._rest_ms = _IDLE_MS if self.reduction is None else self.reduction.step()
        self._tell_live()

    def _handle(self, message: control.Message) -> None:
        match message:
            case control.Load():
                self.secrets, self.watched, self.lines_s = message.secrets, message.watched, message.lines_s
                self.looked = message.looked
                self._warnings.secrets = message.secrets.texts
                logs.scrub_output(message.secrets.texts)
                self.line.send(control.Ready("reducer", self.index, self._trouble(self._load)))
            case control.Finish():
                trouble = self._failure or (self._trouble(self.reduction.finish) if self.reduction else None)
                self._tell_warnings()
                self._told_s = -_LIVE_S  # the latest requests come before the last word on them
                trouble = trouble or self._trouble(self._tell_live)
                rows_wait = self.reduction is not None and self.reduction.rows_wait
                self.line.send(control.Reduced(self.index, trouble, rows_wait))
            case control.Judge(snapshot) if self.reduction is not None:
                self._judge(self.reduction, snapshot)
            case control.TakeParts(parts) if self.reduction is not None:
                reduction = self.reduction
                if (failed := self._trouble(lambda: _take(reduction, parts))) is not None:
                    self.line.send(control.LogLines(30, [f"live numbers are not of all reducers: {failed}"], once=True))
            case control.TellFigures():
                self._asked, self._told_s = True, -_LIVE_S
            case control.PrepareSummary():
                if self.reduction is not None and self._failure is None:
                    self._failure = self._trouble(self.reduction.prepare_summary)
            case control.Summarize():
                self._told_s = -_LIVE_S  # the parts of all reducers have come
                self._trouble(self._tell_live)
                self.line.send(control.Summarized(self._failure or self._trouble(self._summarize)))
            case control.WriteRows():
                failures: list[str] = []
                failed = self._trouble(lambda: failures.extend(self.reduction.write_rows() if self.reduction else ()))
                failures += [] if failed is None else [failed]
                self._tell_warnings()
                self.line.send(control.RowsWritten(self.index, failures))
            case control.Hurry():
                self.hurry = True
            case control.Exit() | control.Release():
                self.over, self.released = True, isinstance(message, control.Release) and not self._guarded

    def _judge(self, reduction: RunningReduction, snapshot: Snapshot) -> None:
        told: list[VerdictSoFar | None] = []
        if (failed := self._trouble(lambda: told.append(reduction.judge(snapshot)))) is not None:
            self.line.send(control.LogLines(30, [f"there is no verdict so far: {failed}"], once=True))
        self.line.send(control.Judged(told[0] if told else None))

    def _check(self, plan: Plan) -> None:
        """Tell the parent of metrics whose options contradict each other, before anything is sent."""
        if self.index:
            return  # the first reducer speaks for all
        with contextlib.suppress(AiperfError):  # the builder of the data set reports it
            endpoint = endpoint_of(plan)
            try:
                with blamed(self.who, "can't be used"):
                    reducer_of(plan).check(plan, endpoint)
            except AiperfError as error:
                self.line.send(control.Refused(error.lines(), error.exit_code))

    def _load(self) -> None:
        plan, clock = load_run(self.journal)
        job = ReducerJob(
            self.secrets.restored(plan), self.journal, self.index, clock, self.secrets,
            say=lambda level, lines: self.line.send(control.LogLines(level, lines)),
            trouble=lambda sentence: self.line.send(control.Trouble(sentence)),
            moved=self._tell_live, warned=lambda: self._warnings.sentences,
            far=self._tell_work, hurried=self._hurried, watched=self.watched, looked=self.looked,
            lines_s=self.lines_s,
        )  # fmt: skip
        self.reduction = reducer_of(job.plan).begin(job)

    def _summarize(self) -> None:
        assert self.reduction is not None, "the plan is loaded"
        if self.reduction.slow:
            self._guarded = True  # by a thread that goes on until this process ends
            threading.Thread(target=_end_with_parent, daemon=True).start()
        self.reduction.summarize()

    def _trouble(self, work: Callable[[], None]) -> str | None:
        """Do the work; why it failed, None if it did not."""
        try:
            work()
        except AiperfError as error:
            return "\n".join(error.lines())
        except OSError as error:
            return why(error)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # code of a plugin
            return failure(self.who, "failed", error).message
        return None

    def _warn(self, sentence: str) -> None:
        self._warnings.sentences[sentence] = None

    def _tell_warnings(self) -> None:
        self._warnings.sentences |= dict.fromkeys(() if self.reduction is None else self.reduction.warned)
        for sentence in self._warnings.sentences:
            self.line.send(control.Notice(sentence))

    def _hurried(self) -> bool:
        """Whether the run wants its summary soon; what else has come is handled, too."""
        while (message := self.line.receive()) is not None:
            self._handle(message)
        return self.hurry

    def _tell_work(self, what: str, done: int, of: int, unit: str) -> None:
        if time.monotonic() - self._work_told_s >= _LIVE_S:
            self._work_told_s = time.monotonic()
            self.line.send(control.Working(what, done, of, unit))

    def _tell_live(self) -> None:
        if self.reduction is None or time.monotonic() - self._told_s < _LIVE_S:
            return
        whole, self._asked, self._told_s = self.looked or self._asked, False, time.monotonic()
        live = self.reduction.live if whole else Live(self.reduction.done)
        self.line.send(control.LiveFigures(self.index, live, list(self.reduction.ended())))


def _take(reduction: RunningReduction, parts: Iterable[bytes]) -> None:
    for part in parts:
        reduction.take_part(part)


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def _parent_gone() -> bool:
    return bool(select.select([0], [], [], 0)[0]) and not os.read(0, 4096)


def main(words: list[str]) -> None:
    address, index = words
    ignore_endings()
    end_with_parent()
    line = control.Line(address, f"reducer-{index}")
    line.send(control.Hello("reducer", int(index)))
    collect = Leftovers().collect
    while (prepare := line.next_plan()) and ReducerProcess(line, int(index), Path(prepare.journal)).run():
        collect()
        line.send(control.Released("reducer", int(index)))
    line.close()
    sys.stderr.flush()
    os._exit(0)  # all is written, and the teardown of this interpreter takes long


if __name__ == "__main__":
    main(sys.argv[1:])
