"""Many lines of JSON with the same members, as columns of pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

import msgspec

_encode = msgspec.json.Encoder().encode


class Template:
    """*count* lines, each an object, from left to right."""

    def __init__(self, count: int) -> None:
        self._count, self._columns = count, list[Iterable[bytes]]()
        self._fixed = b"{"
        self._comma = self._opening = b""
        self._doubtful = list[bytes]()

    def begin(self, name: str) -> None:
        """Begin an object that is a member."""
        self._opening = b"%b:{" % _encode(name)
        self._fixed += self._comma + self._opening
        self._comma = b""

    def end(self) -> None:
        self._fixed += b"}"
        self._comma = b","

    def member(self, name: str, value: bytes) -> None:
        """A member that is the same in all lines."""
        self._fixed += b"%b%b:%b" % (self._comma, _encode(name), value)
        self._comma = b","

    def varying_member(self, name: str, values: Sequence[bytes], begin: bytes = b"", end: bytes = b"") -> None:
        """A member with a value in each line, between *begin* and *end*."""
        self.member(name, begin)
        self._differ(values)
        self._fixed = end

    def rare_member(
        self, name: str, values: Sequence[bytes], lines: Sequence[int], begin: bytes = b"", end: bytes = b""
    ) -> None:
        """The same, with values in these *lines* alone."""
        if not self._comma:  # the lines without it have a comma too many behind it
            self._doubtful.append(self._opening)
        key = b",%b:%b" % (_encode(name), begin)
        found = [b""] * self._count
        for line, value in zip(lines, values, strict=True):
            found[line] = b"".join((key, value, end))
        self._differ(found)
        self._comma = b","

    def _differ(self, column: Sequence[bytes]) -> None:
        self._columns += [repeat(self._fixed, self._count), column]
        self._fixed = b""

    def joined(self) -> bytes:
        pieces = zip(*self._columns, repeat(self._fixed + b"}\n", self._count), strict=True)
        joined = b"".join(map(b"".join, pieces))  # in one call for all of them it takes twice as long
        for opening in self._doubtful:  # quotes and all, so it stands in no text
            joined = joined.replace(opening + b",", opening)
        return joined


__all__ = ["Template"]
