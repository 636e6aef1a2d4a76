"""Problems that were asked several times: the chance that one of k answers is right, and the answer of the majority."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import blake2b
from statistics import fmean

import msgspec
import numpy as np
from aiperf import Analysis, Column, Metric, Needs, RawValues, RecordBatch, Result, Unit
from aiperf.sdk.columns import REPEAT, Floats
from aiperf_grading.rates import majority, pass_at

_BITS = 52
"""Of a text's number: a float holds it exactly."""
_NOTHING = -1.0
"""Instead of what the grader extracted, where it extracted nothing."""


class _Extracted(msgspec.Struct):
    extracted: str | None = None


class _Grade(msgspec.Struct):
    grade: _Extracted | None = None


_read = msgspec.json.Decoder(_Grade).decode


class AccuracyProblem(Metric):
    """A number of each problem that is asked several times, the same for its repeats."""

    tag, title, unit, hidden, requires, per_record = "accuracy_problem", "Problem", Unit.COUNT, True, Needs.GRADED, False

    def column(self, batch: RecordBatch) -> Column:
        if not _several(batch):
            return np.full(len(batch), np.nan)
        ids = (f"{name}\n{turn:g}" for name, turn in zip(batch.texts["conversation_id"], batch["turn"].tolist(), strict=True))
        return np.where(np.isnan(batch[REPEAT]), np.nan, np.fromiter(map(number_of, ids), np.float64, len(batch)))


class AccuracyExtracted(Metric):
    """A number of what the grader extracted from an answer to such a problem; -1 where that is nothing."""

    tag, title, unit, hidden, requires, per_record = "accuracy_extracted", "Extracted", Unit.COUNT, True, Needs.GRADED, False

    def column(self, batch: RecordBatch) -> Column:
        grades = batch.texts.get("grade")
        if grades is None or not _several(batch):
            return np.full(len(batch), np.nan)
        numbers = np.fromiter(map(_extracted, grades), np.float64, len(batch))
        return np.where(batch["graded"] == 1, numbers, np.nan)


class AccuracyRepeats(Analysis):
    """pass@k for k = 1, 2, 4 … and the number of repeats, and the majority's accuracy; nothing where problems are asked once.

    pass@k is the mean over problems with k graded answers of 1 - C(n - c, k) / C(n, k), where c of n answers are right (Chen et
    al., Evaluating large language models trained on code, 2021).
    """

    tag, title, requires = "accuracy_repeats", "Repeats", Needs.GRADED
    needs = ("accuracy_problem", "accuracy_extracted")
    keeps = ("accuracy_problem", "accuracy_extracted", REPEAT, "graded", "correct", "ended_ns")

    def results(self, kept: RawValues, windows: Sequence[tuple[float, float]]) -> list[list[Result]]:
        columns = {name: kept.column(name) for name in self.keeps}
        found = []
        for begin, end in windows:
            wanted = (columns["graded"] == 1) & np.isfinite(columns["accuracy_problem"])
            wanted &= (columns["ended_ns"] >= begin) & (columns["ended_ns"] <= end)
            found.append([*_results({name: column[wanted] for name, column in columns.items()})])
        return found


def _results(columns: dict[str, Floats]) -> Iterator[Result]:
    """The results of graded answers."""
    if not len(columns["graded"]):
        return
    order = np.lexsort((columns[REPEAT], columns["accuracy_problem"]))
    problems, right, extracted = (columns[name][order] for name in ("accuracy_problem", "correct", "accuracy_extracted"))
    edges = np.flatnonzero(np.diff(problems)) + 1
    rights, texts = np.split(right, edges), np.split(extracted, edges)
    most = int(columns[REPEAT].max()) + 1
    for k in sorted({2**power for power in range(most.bit_length()) if 2**power <= most} | {most}):
        chances = [pass_at(k, int(each.sum()), len(each)) for each in rights]
        known = [chance for chance in chances if chance is not None]
        if known:
            yield _result(f"accuracy.pass_at_{k}", f"pass@{k}", fmean(known), len(known))
    votes = [_majority_is_right(own.tolist(), said.tolist()) for own, said in zip(rights, texts, strict=True)]
    yield _result("accuracy.majority", f"maj@{most}", fmean(votes), len(votes))


def _majority_is_right(right: list[float], extracted: list[float]) -> bool:
    """Whether what most answers to a problem give, in the order of its repeats, is right; False where none gives anything."""
    said = [None if number == _NOTHING else str(number) for number in extracted]
    chosen = majority(said)
    return chosen is not None and right[said.index(chosen)] == 1


def _result(tag: str, title: str, value: float, count: int) -> Result:
    return Result(tag, title, Unit.RATIO.value, {"avg": value, "count": count})


def _several(batch: RecordBatch) -> bool:
    return bool(np.isfinite(batch[REPEAT]).any())


def _extracted(grade: str | None) -> float:
    found = None if grade is None else _read(grade.encode()).grade
    return _NOTHING if found is None or found.extracted is None else number_of(found.extracted)


@cache
def number_of(text: str) -> float:
    """A number of a text from 0 to 2^52 - 1; different texts have different ones, but for a chance of 1 in 2^52."""
    return float(int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()) >> (64 - _BITS))


__all__ = ["AccuracyExtracted", "AccuracyProblem", "AccuracyRepeats", "number_of"]
