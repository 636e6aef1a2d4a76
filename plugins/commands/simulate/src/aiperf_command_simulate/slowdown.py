"""A time in which the engine takes longer, as under clocks that are held down."""

from __future__ import annotations

from msgspec import Struct


class Slowdown(Struct, frozen=True):
    """From *from_ns* on, for *for_ns*, durations are *by* times as long; ns since the start."""

    from_ns: int = 0
    for_ns: int = 0
    by: float = 1.0

    @property
    def until_ns(self) -> int:
        return self.from_ns + self.for_ns

    def factor(self, since_start_ns: int) -> float:
        """What a duration that begins then is multiplied by."""
        return self.by if self.from_ns <= since_start_ns < self.until_ns else 1.0

    def lasted_ns(self, since_start_ns: int) -> int:
        """How long it has lasted until then."""
        return max(0, min(since_start_ns, self.until_ns) - self.from_ns)


NEVER = Slowdown()
