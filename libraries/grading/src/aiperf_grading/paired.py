"""Whether two runs over the same problems differ: McNemar's exact test."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple


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


__all__ = ["PairedResult", "exact_p", "mcnemar"]
