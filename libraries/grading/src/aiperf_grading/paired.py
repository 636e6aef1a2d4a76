"""Whether two runs over the same problems differ: McNemar's exact test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from aiperf.sdk.columns import REPEAT

if TYPE_CHECKING:
    from aiperf.sdk.columns import RecordBatch


class PairedResult(NamedTuple):
    """Two runs over the same problems.

    both, neither: problems that both runs, or none, answered right.  only_first, only_second: those that one answered right and
    the other wrong.  unpaired_first, unpaired_second: those that one run graded alone, which the test leaves out.
    p_value: of the two-sided exact test, 0 to 1: how probable a difference at least as large is where both are equally good.
    """

    both: int
    neither: int
    only_first: int
    only_second: int
    unpaired_first: int
    unpaired_second: int
    p_value: float


def exact_p(only_first: int, only_second: int) -> float:
    """The two-sided p-value of McNemar's exact test: the binomial test of the discordant pairs against one half."""
    pairs, fewer = only_first + only_second, min(only_first, only_second)
    if pairs == 0 or only_first == only_second:
        return 1.0
    tail, term = 0, 1
    for number in range(fewer + 1):
        tail += term
        term = term * (pairs - number) // (number + 1)
    # 2 * tail / 2**pairs, of which both are larger than a float for many pairs.
    shift = max(tail.bit_length() - 64, 0)
    return min(1.0, math.ldexp(tail >> shift, shift + 1 - pairs))


def right_answers(batches: Iterable[RecordBatch], phase: int) -> dict[str, bool]:
    """Whether each graded answer of a phase was right, for :func:`mcnemar`.

    batches: of a finished run (``open_run(directory).batches()``).  phase: the index of the profiling phase.  The keys are the
    problem's id, its turn and its repeat, which two runs of the same data set share; ungraded and failed requests are absent.
    """
    right: dict[str, bool] = {}
    for batch in batches:
        ids, repeats = batch.texts["conversation_id"], batch[REPEAT]
        wanted = (batch["phase"] == phase) & (batch["graded"] == 1)
        for row in wanted.nonzero()[0].tolist():
            repeat = 0 if repeats[row] != repeats[row] else int(repeats[row])  # NaN: each problem comes once
            right[f"{ids[row]} {int(batch['turn'][row])} {repeat}"] = bool(batch["correct"][row])
    return right


def mcnemar(first: Mapping[str, bool], second: Mapping[str, bool]) -> PairedResult:
    """Compare the grades of two runs.

    first, second: whether the answer was right, by the problem's id; ungraded problems are absent.
    """
    common = first.keys() & second.keys()
    cells = [0, 0, 0, 0]
    for problem in common:
        cells[2 * first[problem] + second[problem]] += 1
    neither, only_second, only_first, both = cells
    unpaired = len(first) - len(common), len(second) - len(common)
    return PairedResult(both, neither, only_first, only_second, *unpaired, exact_p(only_first, only_second))


__all__ = ["PairedResult", "exact_p", "mcnemar", "right_answers"]
