"""What a run says of failed requests while it goes on."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable

from aiperf.sdk.reducer import Ended

FIRST, LAST = 10, 100
"""Requests at the begin of a phase, and the latest ones: where all of those, or half of these failed, the run says so."""
_ANOTHER = 2 / 3
"""Share of the latest failures from which another cause than the one told is told; causes that alternate are told once."""


class Failing:
    """Follows the requests of all reducers: many failures are one sentence, and another where their cause changes."""

    def __init__(self) -> None:
        self._phase, self._told = -1, ""
        self._last: list[tuple[int, str, str]] = []

    def follow(self, ended: Iterable[Ended]) -> str | None:
        """Take note of requests; a sentence that is due."""
        for each in ended:
            if each.phase > self._phase:
                self._phase, self._last = each.phase, []
            if each.phase == self._phase:
                insort(self._last, (each.at_ns, *(each.cause or ("", ""))))
                del self._last[:-LAST]
        return self._due()

    def causes(self) -> tuple[str, ...]:
        """The kinds of the latest failures, those of most first; none where a request succeeded among them."""
        kinds = Counter(kind for _, kind, _ in self._last)
        return () if "" in kinds else tuple(kind for kind, _ in kinds.most_common())

    def _due(self) -> str | None:
        failures = [(kind, sentence) for _, kind, sentence in self._last if kind]
        if len(self._last) == LAST:
            due, which = len(failures) * 2 >= LAST, f"{len(failures)} of the last {LAST} requests"
        else:  # these are all of the phase
            first = self._last[:FIRST]
            due, which = len(first) == FIRST and all(kind for _, kind, _ in first), f"the first {FIRST} requests"
        if not due:
            return None
        kind, count = Counter(kind for kind, _ in failures).most_common(1)[0]
        if kind == self._told or (self._told and count < _ANOTHER * len(failures)):
            return None
        self._told = kind
        cause = next(sentence for each, sentence in reversed(failures) if each == kind)
        return "".join(character if character.isprintable() else " " for character in f"{which} failed: {cause}")
