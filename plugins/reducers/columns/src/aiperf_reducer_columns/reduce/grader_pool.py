"""Processes of a slow grader, each with one answer at a time, and a time limit per answer.

An answer on which the grader raises, hangs or ends its process costs its own grade alone: the process is replaced.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree

import msgspec
from aiperf.parts.loading import why
from aiperf.parts.processes import SideProcess, fate
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.grader import Case
from aiperf.sdk.options import EncodedOptions

from aiperf_reducer_columns.reduce.grader_process import Ask, Open, Reply
from aiperf_reducer_columns.reduce.outcomes import Key

_START_S = 60.0
"""The longest start of a process, with the imports of the plugin."""
_END_S = 2.0
_MOST_STARTS = 3
"""After so many starts in a row that fail, the grader can't be used."""
_FULL_PIPE_S = 0.05
"""How often a case is sent on that the pipe could not hold."""


class _Slot:
    """A process, and the answer that it grades; None while it starts or waits.  until_s: when it is given up."""

    def __init__(self, process: SideProcess) -> None:
        self.process, self.key, self.until_s, self.limit_s = process, None, time.monotonic() + _START_S, _START_S
        self.open = False

    key: Key | None

    @property
    def free(self) -> bool:
        return self.open and self.key is None

    def ask(self, key: Key, case: Case, limit_s: float) -> None:
        """Send the case.

        Raises:
            msgspec.MsgspecError, ValueError, TypeError: It has a value that can't be sent.
        """
        self.process.send(Ask(case))
        self.key, self.limit_s, self.until_s = key, limit_s, time.monotonic() + limit_s

    def reply(self) -> tuple[Reply | None, bool]:
        """What the process replied, None for nothing yet; and whether the process is lost."""
        code = self.process.poll()  # before the replies are read: a process that has ended may have replied
        if lines := self.process.receive():
            return msgspec.json.decode(lines[0], type=Reply), False
        if code is not None:
            return Reply(failed=f"the grader's process {fate(code)}"), True
        if time.monotonic() > self.until_s:
            return Reply(failed=f"the grader took longer than {self.limit_s:g} s"), True
        return None, False

    def end(self) -> None:
        self.process.let_go()  # it kills its group, with the processes that the grader has started
        if self.process.wait(_END_S) is None:
            self.process.kill()
        self.process.close()


class GraderPool:
    """Grades answers in up to *most* processes.  limit_s: the longest time for an answer.

    scratch: a folder for the processes' temporary files, which :meth:`stop` removes with what is in it.
    broken: why the grader can't be used, None while it can: no process of it starts.
    """

    def __init__(
        self, ref: PluginRef, options: EncodedOptions | None, log: Path, scratch: Path, *, most: int, limit_s: float
    ) -> None:  # fmt: skip
        self._open, self._log, self._most, self._limit_s = Open(ref, options, str(scratch)), log, most, limit_s
        self._scratch = scratch
        rmtree(scratch, ignore_errors=True)  # of a run that was killed
        scratch.mkdir(mode=0o700, parents=True)
        self._slots: list[_Slot] = []
        self._waiting: deque[tuple[Key, Callable[[], Case]]] = deque()
        self._failed_starts = 0
        self.broken: str | None = None

    def add(self, key: Key, case: Callable[[], Case]) -> None:
        """Grade an answer.  *case* is made when a process is free for it."""
        self._waiting.append((key, case))

    def replies(self, wait_s: float, *, more: bool = True) -> Iterator[tuple[Key, Reply]]:
        """What came of answers, in any order; waits up to *wait_s* for the first.  *more*: grade those that wait, too."""
        if more:
            yield from self._hand_out()
        if wait_s and self._slots:
            full = any(slot.process.backlogged for slot in self._slots)
            nearest_s = min(slot.until_s for slot in self._slots if not slot.free) if self._busy else 0.0
            left_s = max(0.0, min(wait_s, nearest_s - time.monotonic()))
            select.select([slot.process.replies for slot in self._slots], [], [], min(left_s, _FULL_PIPE_S) if full else left_s)
        for slot in [each for each in self._slots if not each.free]:
            reply, lost = slot.reply()
            if reply is None:
                if slot.process.ended_replies:
                    slot.process.wait(_FULL_PIPE_S)  # it is about to end
                continue
            key, slot.key = slot.key, None
            if lost:
                self._drop(slot)
            if key is not None:
                yield key, reply
            elif lost or reply.failed is not None:
                self._note_failed_start(slot, reply, lost=lost)
            else:
                slot.open, self._failed_starts = True, 0
        if more:
            yield from self._hand_out()

    def stop(self) -> None:
        """End every process.  What is not graded by then is dropped."""
        self._waiting.clear()
        while self._slots:
            self._drop(self._slots[-1])
        rmtree(self._scratch, ignore_errors=True)  # a process that is killed removes nothing

    @property
    def _busy(self) -> bool:
        return any(not slot.free for slot in self._slots)

    def _hand_out(self) -> Iterator[tuple[Key, Reply]]:
        """Give each free process an answer, and start one for each answer beyond."""
        free = [slot for slot in self._slots if slot.free]
        while self._waiting and (free or self.broken is not None):
            key, case = self._waiting.popleft()
            if self.broken is not None:
                yield key, Reply(failed=self.broken)
                continue
            try:
                free[-1].ask(key, case(), self._limit_s)
            except (msgspec.MsgspecError, ValueError, TypeError) as error:
                yield key, Reply(failed=f"the answer can't be sent to the grader: {why(error)}")
            else:
                free.pop()
        starting = sum(not slot.open for slot in self._slots)
        for _ in range(min(self._most - len(self._slots), len(self._waiting) - starting)):
            slot = _Slot(SideProcess("aiperf_reducer_columns.reduce.grader_process", log=self._log))
            slot.process.send(self._open)
            self._slots.append(slot)

    def _note_failed_start(self, slot: _Slot, reply: Reply, *, lost: bool) -> None:
        if not lost:
            self._drop(slot)
        self._failed_starts += 1
        if self._failed_starts >= _MOST_STARTS:
            self.broken = reply.failed

    def _drop(self, slot: _Slot) -> None:
        self._slots.remove(slot)
        slot.end()
