"""Slow graders: after the load, in processes of their own, with a time limit per answer and one for all.

The columns keep the answers, so grading delays neither latencies nor the display.  Each outcome goes to ``grades``, a file of
JSON lines in the journal, as soon as it is known, and a report goes on where an earlier one ended.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType

import msgspec
from aiperf.parts.journal import Store
from aiperf.sdk.plan import Plan
from aiperf.sdk.redaction import private
from msgspec import Struct
from msgspec.structs import replace

from aiperf_reducer_columns.reduce.batches import StoredBatch
from aiperf_reducer_columns.reduce.grader_pool import GraderPool
from aiperf_reducer_columns.reduce.grading import NOT_YET, Graded, case_of
from aiperf_reducer_columns.reduce.outcomes import GRADES, Key, Outcome, read_outcomes

AGAIN = "grades-again"
"""The file of a report with another grader, which begins it anew."""
_MOST_HELD_BYTES = 64 << 20
"""Batches that are read ahead of those that wait for a grade."""
_STEP_S = 0.5
_MOST_NAMED = 3
"""Problems that a sentence names for each reason."""


class GradingWatch(Struct, frozen=True):
    """Who waits for the grades.

    over: whether they want the end now.  tell: gets the number of answers that are done, and of those that are known of.
    total: number of answers, None where it isn't known before.
    """

    over: Callable[[], bool] = bool
    tell: Callable[[int, int], None] = lambda done, known: None
    total: int | None = None


class _Held(Struct):
    """A batch with its answers, by row; the keys of those that have no outcome yet."""

    stored: StoredBatch
    keys: dict[int, Key]
    missing: set[Key]
    size: int


class SlowGrading:
    """Grades the pending answers of a finished run; a context manager, so that no process is left.

    left: answers that are not graded because the end was wanted, or the time is over; a report grades them.
    """

    def __init__(self, plan: Plan, journal: Path, store: Store, watch: GradingWatch) -> None:
        assert plan.plugins.grader is not None and plan.plugins.grading_timeout_s is not None
        self._ref, self._limit_s = plan.plugins.grader, plan.plugins.grading_limit_s
        self._store, self._watch = store, watch
        self._pool = GraderPool(
            self._ref, plan.plugins.options.get(self._ref.key), journal / "grader.log", journal / "grading",
            most=plan.plugins.grading_processes, limit_s=plan.plugins.grading_timeout_s,
        )  # fmt: skip
        self._until_s = time.monotonic() + self._limit_s
        self._over: str | None = None
        self._held: deque[_Held] = deque()
        self._waiting: dict[Key, _Held] = {}
        self._answers = self._done = self.left = 0
        self._reasons: dict[str, list[str]] = {}
        path = journal / (AGAIN if plan.plugins.grading_again else GRADES)
        self._known, half = read_outcomes(path)
        self._file = private(path).open("ab")
        self._file.truncate(self._file.tell() - half)  # a report was killed in the middle of a line

    def __enter__(self) -> SlowGrading:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._pool.stop()
        self._file.close()

    def through(self, stored: StoredBatch) -> Iterator[StoredBatch]:
        """Take a batch; the batches whose answers are done by now, in the order in which they were taken."""
        self._take(stored)
        while True:
            self._step(0.0)
            yield from self._finished()
            if sum(held.size for held in self._held) <= _MOST_HELD_BYTES:
                return
            self._step(_STEP_S)

    def rest(self) -> Iterator[StoredBatch]:
        """The batches that wait, once their answers are graded or the time is over."""
        while self._held:
            self._step(_STEP_S)
            yield from self._finished()

    @property
    def sentence(self) -> str | None:
        """The ungraded answers with their reasons and problems; None where all are graded, or wait for a report."""
        if not self._reasons:
            return None
        reasons = "; ".join(f"{reason} ({_named(problems)})" for reason, problems in self._reasons.items())
        count = sum(map(len, self._reasons.values()))
        return f"{self._ref} left {count:,} of {self._answers:,} answers ungraded: {reasons}"

    def _take(self, stored: StoredBatch) -> None:
        waiting = [row for row, grade in stored.grades.items() if grade.pending is not None]
        columns = stored.columns() if waiting else {}
        numbers = {row: [int(columns[name][row]) for name in ("shard", "request", "entry", "turn")] for row in waiting}
        keys: dict[int, Key] = {row: (shard, request) for row, (shard, request, *_) in numbers.items()}
        missing = {key for key in keys.values() if key not in self._known}
        size = len(stored.numbers) + len(stored.stamps) + sum(len(stored.grades[row].response) for row in waiting)
        held = _Held(stored, keys, missing, size)
        self._held.append(held)
        self._answers += len(waiting)
        self._done += len(waiting) - len(missing)
        for row, key in keys.items():
            if key not in missing:
                continue
            self._waiting[key] = held
            pending, (_, _, entry, turn) = stored.grades[row].pending, numbers[row]
            assert pending is not None
            self._pool.add(key, partial(case_of, self._store, entry, turn, pending))

    def _step(self, wait_s: float) -> None:
        """Let the processes go on, and take what they have graded."""
        if not self._waiting:
            return
        if self._over is None and (self._watch.over() or time.monotonic() > self._until_s):
            late = f"the {self._limit_s:g} s of --grading-timeout were over, and aiperf report goes on"
            self._over = NOT_YET if self._watch.over() else late
        if self._over is not None:
            for key, reply in self._pool.replies(0.0, more=False):  # what is graded is kept
                self._note(key, Outcome(*key, reply.grade, reply.failed), kept=self._pool.broken is None)
            self._pool.stop()
            for key in list(self._waiting):
                self._note(key, Outcome(*key, ungraded=self._over), kept=False)
            return
        for key, reply in self._pool.replies(min(wait_s, max(0.0, self._until_s - time.monotonic()))):
            self._note(key, Outcome(*key, reply.grade, reply.failed), kept=self._pool.broken is None)
        self._watch.tell(self._done, max(self._answers, self._watch.total or 0))

    def _note(self, key: Key, outcome: Outcome, *, kept: bool) -> None:
        """An answer is done.  *kept*: a report does not grade it again."""
        self._known[key] = outcome
        self._waiting.pop(key).missing.discard(key)
        self._done += 1
        if kept:
            self._file.write(msgspec.json.encode(outcome) + b"\n")
            self._file.flush()

    def _finished(self) -> Iterator[StoredBatch]:
        while self._held and not self._held[0].missing:
            held = self._held.popleft()
            yield replace(held.stored, grades=self._graded(held)) if held.keys else held.stored

    def _graded(self, held: _Held) -> dict[int, Graded]:
        grades, columns = dict(held.stored.grades), held.stored.columns()
        for row, key in held.keys.items():
            outcome = self._known.pop(key)
            grades[row] = outcome.of(grades[row])
            if outcome.ungraded == NOT_YET:
                self.left += 1
            elif outcome.ungraded is not None:
                problem = self._store.conversation(int(columns["entry"][row])).id
                self._reasons.setdefault(outcome.ungraded, []).append(problem)
        return grades


def _named(problems: list[str]) -> str:
    """The number of answers, and the first problems by id."""
    several = list(dict.fromkeys(problems))
    names = ", ".join(several[:_MOST_NAMED])
    return f"{len(problems):,}: {names}{', …' if len(several) > _MOST_NAMED else ''}"
