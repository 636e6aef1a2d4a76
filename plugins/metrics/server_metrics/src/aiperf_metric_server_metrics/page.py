"""A page of metrics that is read again and again: what did not change is not read twice."""

from __future__ import annotations

import zlib
from collections import Counter
from itertools import compress, count
from operator import ne

import msgspec
from aiperf.sdk.telemetry import MOST_POINTS, Point

from aiperf_metric_server_metrics.errors import PageError
from aiperf_metric_server_metrics.families import Family, FamilyError
from aiperf_metric_server_metrics.lines import LineError, split

MOST_BYTES = 64 << 20
"""The largest page, also unpacked."""
_GZIP = b"\x1f\x8b"
_OPENMETRICS = "application/openmetrics-text"


class Page:
    """Reads the bodies of one target.  *sentences*: about what was left out of the last body, none twice."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self._told: set[str] = set()
        self._body, self._openmetrics = b"", False
        self._lines: list[str] = []
        self._owners: list[tuple[Family, int, int] | None] = []
        """By line: its family, its place there, and where the family's points begin."""
        self._families: dict[tuple[str, int], Family] = {}
        self._points: list[Point] = []

    def read(self, body: bytes, content_type: str) -> list[Point]:
        """All series of the page; one whose text did not change is the same object as before.

        Raises:
            PageError: The body is no page of metrics.
        """
        self.sentences = []
        openmetrics = content_type.startswith(_OPENMETRICS)
        if body == self._body and openmetrics == self._openmetrics and self._points:
            return self._shown()
        lines = self._checked(body, content_type, openmetrics=openmetrics)
        if openmetrics != self._openmetrics:
            self._lines, self._families, self._openmetrics = [], {}, openmetrics
        if not self._updated(lines):
            self._lay_out(lines)
        self._lines, self._body = lines, body
        return self._shown()

    def _shown(self) -> list[Point]:
        return self._points[:MOST_POINTS]

    def _checked(self, body: bytes, content_type: str, *, openmetrics: bool) -> list[str]:
        """The lines of the body."""
        if body.startswith(_GZIP):
            self._tell("it is compressed though that was not asked for; it is unpacked")
            body = _unpacked(body)
        text = body.decode("utf-8", "replace")
        start = text.lstrip()[:1]
        if not start:
            raise PageError("the page is empty", other=True)
        if start == "<":
            raise PageError("the page is HTML, and has no metrics", other=True)
        if start in "[{" and ("json" in content_type or _is_json(body)):
            raise PageError("the page is JSON, and has no metrics", other=True)
        lines = text.split("\n")
        if lines.pop():  # the text behind the last line end
            raise PageError("the page was cut: its last line has no end")
        if openmetrics and lines[-1].rstrip() != "# EOF":
            raise PageError("the page was cut: it lacks the line # EOF of OpenMetrics")
        return lines

    def _updated(self, lines: list[str]) -> bool:
        """Take the lines where only values changed; False where the page must be laid out again."""
        if len(lines) != len(self._lines):
            return False
        changed: set[tuple[Family, int, int]] = set()
        known = True
        for number in compress(count(), map(ne, lines, self._lines)):
            owner = self._owners[number]
            if owner is None:
                known = False
                break
            family, place, first = owner
            series = family.update(place, lines[number])
            if series is None:
                known = False
                break
            family.lines[place] = lines[number]
            changed.add((family, series, first))
        for family, series, first in changed:  # also where the page is laid out next: its lines are taken
            self._points[first + series] = family.renew(series)
        return known

    def _lay_out(self, lines: list[str]) -> None:
        """Read the families that changed; the others are taken as they were."""
        before, self._families = self._families, {}
        owners: list[tuple[Family, int, int] | None] = [None] * len(lines)
        self._points = []
        blocks = split(lines)
        names = {name for name, _, _ in blocks}
        seen: Counter[str] = Counter()
        bad = 0
        for name, first, end in blocks:
            if name.endswith("_created") and not self._openmetrics and _of_another(name.removesuffix("_created"), names):
                continue
            key = name, seen[name]
            seen[name] += 1
            try:
                family = self._family(before.get(key), name, lines[first:end])
            except (FamilyError, LineError) as error:
                bad += 1
                self._tell(f"{name} is left out: {error}")
                continue
            for sentence in family.sentences:
                self._tell(f"{name} {sentence}")
            self._families[key] = family
            owners[first:end] = [(family, place, len(self._points)) for place in range(end - first)]
            self._points += family.points
        self._owners = owners
        if not self._points:
            why = f"the page has no metrics that can be read{f': {self.sentences[-1]}' if self.sentences else ''}"
            self._body, self._lines, self._families = b"", [], {}
            raise PageError(why, other=True)
        repeated = sorted(name for name, times in seen.items() if times > 1)
        for name in repeated:
            self._tell(f"{name} stands in several places; of two samples of a series the last one counts")
        unknown = sorted({point.name for point in self._points if not point.finite})
        for name in unknown:
            self._tell(f"{name} has values that are no finite numbers; they are left out")

    def _family(self, known: Family | None, name: str, lines: list[str]) -> Family:
        if known is not None and known.fits(lines):
            return known
        return Family(name, lines, openmetrics=self._openmetrics)

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self.sentences.append(sentence)


def _of_another(base: str, names: set[str]) -> bool:
    """Whether the time of creation is that of a family on the page."""
    return base in names or f"{base}_total" in names


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except ValueError:  # UnicodeDecodeError is one, and msgspec's errors are
        return False
    return True


def _unpacked(body: bytes) -> bytes:
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        text = unpacker.decompress(body, MOST_BYTES)
    except zlib.error as error:
        raise PageError(f"the page is compressed, and can't be unpacked: {error}") from error
    if unpacker.unconsumed_tail:
        raise PageError(f"the page has more than {MOST_BYTES:,} bytes")
    if not unpacker.eof:
        raise PageError("the page was cut: it is compressed, and ends too early")
    return text
