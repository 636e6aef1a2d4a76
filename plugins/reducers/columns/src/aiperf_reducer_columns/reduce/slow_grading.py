"""Slow graders: after the load, in a process of their own, with a time limit per answer.

    python -m aiperf_reducer_columns.reduce.slow_grading REPLIES

The columns keep the answers, so grading delays neither latencies nor the display.  One answer is graded at a time; each outcome
goes to ``grades``, a file of JSON lines in the journal, and a report goes on where an earlier one ended.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from types import TracebackType

import msgspec
from aiperf.parts.journal import Store
from aiperf.parts.loading import made, why
from aiperf.parts.processes import SideProcess, fate, ignore_endings, send_reply
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.grader import Case, Grade, Grader, takes_case
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.plan import Plan
from aiperf.sdk.redaction import private
from msgspec import Struct
from msgspec.structs import replace

from aiperf_reducer_columns.reduce.grading import Graded, case_of, checked_grade

AGAIN = "grades-again"
"""The file of a report with another grader, which begins it anew."""
_START_S = 60.0
"""The longest start of the process, with the imports of the plugin."""
_END_S = 2.0
_MOST_LOST = 3
"""After so many processes in a row that hang or die, the rest stays ungraded."""


class _Open(Struct, frozen=True, tag=True):
    ref: PluginRef
    options: EncodedOptions | None


class _Ask(Struct, frozen=True, tag=True):
    case: Case


class _Reply(Struct, frozen=True):
    """A grade, or why there is none; neither after a start."""

    grade: Grade | None = None
    failed: str | None = None


class _Outcome(Struct, frozen=True, omit_defaults=True):
    """A line of ``grades``."""

    shard: int
    request: int
    grade: Grade | None = None
    ungraded: str | None = None


class SlowGrading:
    """Grades the pending answers of a finished run; a context manager, so that no process is left."""

    def __init__(self, plan: Plan, journal: Path, store: Store) -> None:
        assert plan.plugins.grader is not None and plan.plugins.grading_timeout_s is not None
        self._ref, self._limit_s = plan.plugins.grader, plan.plugins.grading_timeout_s
        self._options = plan.plugins.options.get(self._ref.key)
        self._store, self._journal = store, journal
        self._process: SideProcess | None = None
        self._lost = self._answers = 0
        self._reasons: dict[str, int] = {}
        self._known: dict[tuple[int, int], _Outcome] = {}
        path = journal / (AGAIN if plan.plugins.grading_again else "grades")
        self._file = private(path).open("ab")
        *lines, half = path.read_bytes().split(b"\n")
        for line in lines:
            outcome = msgspec.json.decode(line, type=_Outcome)
            self._known[outcome.shard, outcome.request] = outcome
        self._file.truncate(self._file.tell() - len(half))  # a report was killed in the middle of a line

    def __enter__(self) -> SlowGrading:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end_process()
        self._file.close()

    def graded(self, pending: Graded, shard: int, request: int, entry: int, turn: int) -> Graded:
        """The grade of a pending answer, or why it has none."""
        self._answers += 1
        outcome = self._known.get((shard, request))
        if outcome is None:
            assert pending.pending is not None
            reply = self._ask(case_of(self._store, entry, turn, pending.pending))
            outcome = _Outcome(shard, request, reply.grade, reply.failed)
            self._file.write(msgspec.json.encode(outcome) + b"\n")
            self._file.flush()
        if outcome.ungraded is not None:
            self._reasons[outcome.ungraded] = self._reasons.get(outcome.ungraded, 0) + 1
        return replace(pending, grade=outcome.grade, ungraded=outcome.ungraded, pending=None)

    @property
    def sentence(self) -> str | None:
        """The ungraded answers with their reasons; None where all are graded."""
        if not self._reasons:
            return None
        reasons = "; ".join(f"{reason} ({count:,})" for reason, count in self._reasons.items())
        return f"{self._ref} left {sum(self._reasons.values()):,} of {self._answers:,} answers ungraded: {reasons}"

    def _ask(self, case: Case) -> _Reply:
        if self._lost >= _MOST_LOST:
            return _Reply(failed=f"the grader was given up after {_MOST_LOST} processes in a row were lost")
        if self._process is None:
            self._process = SideProcess("aiperf_reducer_columns.reduce.slow_grading", log=self._journal / "grader.log")
            self._process.send(_Open(self._ref, self._options))
            if (opened := self._reply(_START_S)).failed is not None:
                self._lose()
                return opened
        try:
            self._process.send(_Ask(case))
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            return _Reply(failed=f"the answer can't be sent to the grader: {why(error)}")
        reply = self._reply(self._limit_s)
        self._lost = 0 if self._process is not None else self._lost
        return reply

    def _reply(self, limit_s: float) -> _Reply:
        """The process's next reply.  A process that hangs or dies is replaced for the next answer."""
        assert self._process is not None
        process, until = self._process, time.monotonic() + limit_s
        while (left := until - time.monotonic()) > 0:
            code = process.poll()
            # The pipe of a big case may be full: sending goes on here.
            lines = process.receive(min(left, 0.05 if process.backlogged else 0.5))
            if lines:
                return msgspec.json.decode(lines[0], type=_Reply)
            if code is not None:
                self._lose()
                return _Reply(failed=f"the grader's process {fate(code)}")
            if process.ended_replies:
                process.wait(min(left, 0.5))
        self._lose()
        return _Reply(failed=f"the grader took longer than {limit_s:g} s")

    def _lose(self) -> None:
        self._lost += 1
        self._end_process()

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.let_go()  # it kills its group, with the processes that the grader has started
            if process.wait(_END_S) is None:
                process.kill()
            process.close()


def main(replies: str) -> None:
    """The process: grades case by case.  It ends with the run, even in the middle of a case."""
    ignore_endings()
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    # A descriptor of its own: code of a plugin that reads the standard input gets its end.
    source, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    threading.Thread(target=_listen, args=(source, lines), daemon=True).start()
    decode = msgspec.json.Decoder(_Open | _Ask).decode
    grader: Grader | None = None
    while True:
        try:
            match decode(lines.get()):
                case _Open(ref, options):
                    grader = made(ref, None if options is None else options.decoded())
                    reply = _Reply()
                case _Ask(case):
                    assert grader is not None
                    reply = _Reply(checked_grade(grader, case, whole=takes_case(grader)))
        except Exception as error:  # noqa: BLE001  # code of a plugin
            reply = _Reply(failed=f"the grader failed: {why(error)}")
        sys.stdout.flush()  # the process will be killed: what the grader printed is in the log before its reply
        send_reply(int(replies), reply)


def _listen(source: int, lines: queue.SimpleQueue[bytes]) -> None:
    part = b""
    while piece := os.read(source, 1 << 16):
        *whole, part = (part + piece).split(b"\n")
        for line in whole:
            lines.put(line)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
