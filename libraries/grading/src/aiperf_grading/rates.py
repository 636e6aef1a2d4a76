"""Shares of right answers: intervals, and repeated answers to the same problem."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import NormalDist


def wilson(right: float, total: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a share, 0 to 1; (0, 1) where nothing was graded.

    right, total: counts, or those of as many independent answers.  level: the confidence, above 0 and below 1.
    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, 1927.

    Raises:
        ValueError: *right* is not from 0 to *total*, or *level* not between 0 and 1.
    """
    if not 0 <= right <= total or not 0 < level < 1:
        raise ValueError(f"{right} of {total} at the level {level} is no share")
    if total == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, weight = right / total, z * z / total
    middle = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / total + weight / (4 * total)) / (1 + weight)
    low = 0.0 if right == 0 else max(0.0, middle - half)
    return low, 1.0 if right == total else min(1.0, middle + half)


def pass_at(k: int, right: int, answers: int) -> float | None:
    """The probability that one of *k* answers to a problem is right, without bias; None where there are fewer than *k* answers.

    right: how many of the *answers* are.  1 - C(answers - right, k) / C(answers, k).
    """
    if k < 1 or not 0 <= right <= answers or answers < k:
        return None
    return 1 - math.comb(answers - right, k) / math.comb(answers, k)


def majority(extracted: Sequence[str | None]) -> str | None:
    """What most answers to a problem give; of several that are equally frequent the one that came first.

    None where no answer has anything.
    """
    counts = Counter(each for each in extracted if each)
    return counts.most_common(1)[0][0] if counts else None


__all__ = ["majority", "pass_at", "wilson"]
