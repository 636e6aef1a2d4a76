"""Why a body is no page of metrics."""

from __future__ import annotations

from aiperf.sdk.errors import AiperfError


class PageError(AiperfError):
    """A body is no page of metrics.  other: it is whole, and of another kind."""

    def __init__(self, why: str, *, other: bool = False) -> None:
        super().__init__(why)
        self.other = other
