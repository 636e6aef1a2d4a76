"""Live numbers, as the parent sees them a few times a second."""

from __future__ import annotations

from msgspec import Struct


class Snapshot(Struct, frozen=True):
    """Where a phase stands.

    share: of the stop condition, 0 to 1, None where there is none.  elapsed_s, eta_s: seconds; eta None if unknown.
    ttft_ms, itl_ms: means so far, from what the reducer has seen; None before the first.
    """

    phase: str
    kind: str
    elapsed_s: float
    sent: int
    completed: int
    errors: int
    in_flight: int
    rate: float
    share: float | None = None
    eta_s: float | None = None
    ttft_ms: float | None = None
    itl_ms: float | None = None
