"""The contract of arrival patterns: how the gaps between arrivals are spread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats


class GapFunction(Protocol):
    """An arrival pattern: the first *count* gaps of a block (at most BLOCK), of mean 1, in units of the mean gap.

    A function of its arguments alone; gaps are never negative; *smoothness* > 0 is ``--arrival-smoothness``.
    """

    def __call__(self, seed: int, stream: str, block: int, count: int, smoothness: float) -> Floats: ...


__all__ = ["GapFunction"]
