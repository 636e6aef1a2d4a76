"""Faults, with file and line."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

MOST = 20
"""Faults of one kind that are listed; the others are counted."""


class Fault(Struct, frozen=True, omit_defaults=True):
    """*file* is relative to the directory.  *line* counts from 1; None: the whole file."""

    file: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message}"


class Faults:
    """Collects them.  *kind* tells faults apart that are counted together."""

    def __init__(self) -> None:
        self._found: list[Fault] = []
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, file: str, message: str, line: int | None = None, *, kind: str = "") -> None:
        self._counts[file, kind] += 1
        if not kind or self._counts[file, kind] <= MOST:
            self._found.append(Fault(file, message, line))

    def all(self) -> list[Fault]:
        """Faults in the order of discovery; the number of unlisted ones comes last."""
        more = [
            Fault(file, f"{count - MOST:,} more faults of this kind: {kind}")
            for (file, kind), count in self._counts.items()
            if kind and count > MOST
        ]
        return self._found + more
