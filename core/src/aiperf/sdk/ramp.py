"""The contract of ramps: how a limit or a rate grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats


class Ramp(Protocol):
    """The growth of a limit or a rate: the share of its rise, 0 to 1, at a share *x* of its time, 0 to 1.

    Vectorised over *x*; never decreasing; 0 at 0 and 1 at 1.  A function of *x* alone.
    """

    def __call__(self, x: Floats) -> Floats: ...


__all__ = ["Ramp"]
