"""Shares of right and of unparsed answers, and the numbers of answers that were graded or not.

A failed request is no wrong answer: it counts apart, and so does one that the grader left ungraded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Self

import msgspec
import numpy as np
from aiperf import Column, Metric, Needs, Over, RecordBatch, RunMetric, Totals, Unit
from aiperf.sdk.columns import REPEAT, Floats
from aiperf.sdk.metric import PluginFold, PluginUnit
from aiperf.sdk.summary import Interval
from aiperf_grading.rates import wilson

LEVEL = 0.95
"""The probability with which an interval holds the true share."""
CUT_REASONS = frozenset(("length", "max_tokens", "max_output_tokens", "model_length"))
"""Reasons of an end, in lower case, of answers that were cut at their length."""
_STATES = ("ungraded", "graded", "failed")
_CUT = 4
"""Added to the place of an answer's state where it was cut."""


class _CountedFold(PluginFold):
    """How often each whole number came."""

    def __init__(self, values: dict[int, int] | None = None) -> None:
        self._values = Counter(values or {})

    def add(self, values: Floats) -> None:
        self._values.update(values.astype(np.int64).tolist())

    def merge(self, other: Self) -> None:
        self._values.update(other._values)

    def dump(self) -> bytes:
        return msgspec.msgpack.encode(dict(self._values))

    @classmethod
    def load(cls, data: bytes) -> Self:
        return cls(msgspec.msgpack.decode(data, type=dict[int, int]))


class ShareFold(_CountedFold):
    """The share of ones among zeros and ones, with Wilson's interval.

    A value is ``2 * repeat``, plus 1 for a one.  Answers to one problem are not independent, so the interval is that of as many
    answers as the most frequent repeat has: the problems.
    """

    def _share(self) -> tuple[int, int]:
        ones = sum(count for value, count in self._values.items() if value % 2)
        return ones, self._values.total()

    def interval(self) -> Interval | None:
        ones, total = self._share()
        if not total:
            return None
        problems = Counter[int]()
        for value, count in self._values.items():
            problems[value // 2] += count
        low, high = wilson(ones / total * max(problems.values()), max(problems.values()), LEVEL)
        return Interval(low, high, LEVEL)

    def result(self) -> Mapping[str, float] | None:
        ones, total = self._share()
        return {"avg": ones / total, "sum": ones, "count": total} if total else None


class AnswerStates(_CountedFold):
    """Numbers of answers: graded ones, those of them that were cut at their length, ungraded ones, and failed requests."""

    def counts(self) -> Mapping[str, int]:
        found = dict.fromkeys(("graded", "failed", "ungraded", "cut"), 0)
        for value, count in self._values.items():
            found[_STATES[value % _CUT]] += count
            found["cut"] += count if value >= _CUT else 0
        return found

    def result(self) -> None:
        return None


class AccuracyOverall(Metric):
    """Whether an answer is right; absent where it was not graded."""

    tag, title, short, unit = "accuracy.overall", "Accuracy", "Accuracy", Unit.RATIO
    fold, requires, per_record, larger_is_better = ShareFold, Needs.GRADED, False, True
    by, group_tags = ("task",), {"task": "accuracy.task.{key}"}

    def column(self, batch: RecordBatch) -> Column:
        return _asked(batch, batch["correct"])


class AccuracyUnparsed(Metric):
    """Whether the grader's rules extracted nothing from an answer, right or not."""

    tag, title, short, unit = "accuracy.unparsed", "Unparsed Answers", "Unparsed", Unit.RATIO
    fold, requires, per_record = ShareFold, Needs.GRADED, False
    by, group_tags = ("task",), {"task": "accuracy.unparsed.task.{key}"}

    def column(self, batch: RecordBatch) -> Column:
        return _asked(batch, batch["unparsed"])


class AccuracyAnswers(Metric):
    """What became of each request with an expected answer."""

    tag, title, unit = "accuracy.answers", "Answers", Unit.COUNT
    fold, requires, per_record, over, by = AnswerStates, Needs.GRADED, False, Over.ALL, ("task",)

    def column(self, batch: RecordBatch) -> Column:
        graded = batch["graded"]
        states = np.where(graded == 1, 1.0, np.where(batch.valid, 0.0, 2.0))
        reasons = batch.texts.get("finish_reason") or [None] * len(batch)
        known = {*filter(is_cut, {*reasons})}  # there are few
        cut = np.fromiter(map(known.__contains__, reasons), dtype=bool, count=len(batch))
        return np.where(np.isnan(graded), np.nan, states + _CUT * (cut & (graded == 1)))


class RightAnswerThroughput(RunMetric):
    """Right answers per second."""

    tag, title, short = "right_answer_throughput", "Right Answer Throughput", "Right Answers"
    unit, requires, needs, larger_is_better = PluginUnit("answers/sec"), Needs.GRADED, ("accuracy.overall",), True

    def number(self, run: Totals) -> float | None:
        right = run.sum("accuracy.overall")
        return None if right is None or not run.duration_s else right / run.duration_s


def is_cut(reason: str | None) -> bool:
    """Whether the reason of an end, or one of several, says that the answer was cut at its length."""
    return reason is not None and any(each.strip().lower() in CUT_REASONS for each in reason.split(","))


def _asked(batch: RecordBatch, column: Floats) -> Floats:
    """Zeros and ones of graded answers, each with its repeat."""
    return np.where(batch["graded"] == 1, column + 2 * np.nan_to_num(batch[REPEAT]), np.nan)


__all__ = [
    "CUT_REASONS", "LEVEL", "AccuracyAnswers", "AccuracyOverall", "AccuracyUnparsed", "AnswerStates", "RightAnswerThroughput",
    "ShareFold", "is_cut",
]  # fmt: skip
