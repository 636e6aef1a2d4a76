"""A widget that shows lines below a title, and draws only those that changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from aiperf_ui_dashboard.layout import Place
from aiperf_ui_dashboard.lines import STYLES, Line, cut, fitted, plain

_STYLES = {name: Style.parse(text) for name, text in STYLES.items()}


@lru_cache(maxsize=512)
def _strip(line: Line, width: int) -> Strip:
    """The line in exactly *width* cells."""
    return Strip([Segment(text, _STYLES[style]) for text, style in line]).adjust_cell_length(width, _STYLES[""])


class Pane(Widget):
    """Lines, some of which may be above or below what is seen.

    title: of the line above them; "" leaves that line out.  follows: it shows the last lines until somebody scrolls up.
    """

    def __init__(self, name: str, title: str = "", *, follows: bool = False, unicode: bool = True) -> None:
        super().__init__(id=name)
        self.title, self.note = title, ""
        self.lines: Sequence[Line] = ()
        self.place = Place(0, 0, 0, 0)
        self._top, self._fixed = 0, 0
        self._follows, self._at_end = follows, follows
        self._rule = "─" if unicode else "-"
        self._drawn: list[Line] = []

    def put(self, place: Place | None) -> None:
        """Move it to *place*; None hides it."""
        self.display = place is not None
        if place is not None and place != self.place:
            self.place, self._drawn = place, []
            self.styles.offset = (place.x, place.y)
            self.styles.width, self.styles.height = place.width, place.height
            self._keep()

    def show(self, lines: Sequence[Line], *, fixed: int = 0) -> None:
        """Show *lines*, the first *fixed* of which stay when the others scroll."""
        self.lines, self._fixed = lines, fixed
        self._keep()
        self._draw()

    def scroll(self, lines: int) -> None:
        """Scroll down by *lines*, up where negative."""
        self._top = max(0, min(self._top + lines, self._last_top()))
        self._at_end = self._follows and self._top == self._last_top()
        self._draw()

    @property
    def rows(self) -> int:
        """Lines that it can show."""
        return max(0, self.place.height - bool(self.title))

    def text(self) -> str:
        """Its title and all its lines as text."""
        return "\n".join([*([self.title] if self.title else []), *(plain(line).rstrip() for line in self.lines)])

    def render_line(self, y: int) -> Strip:
        if not self._drawn:
            self._drawn = self._seen()
        return _strip(self._drawn[y] if y < len(self._drawn) else (), self.size.width)

    def _seen(self) -> list[Line]:
        lines = [] if not self.title else [self._title_line()]
        for y in range(self.rows):
            at = y if y < self._fixed else y + self._top
            lines.append(self.lines[at] if at < len(self.lines) else ())
        return [cut(line, self.place.width) for line in lines]

    def _title_line(self) -> Line:
        width, below = self.place.width, max(0, self._last_top() - self._top)
        more = "  ".join([f"{self._top:,} above"] * bool(self._top) + [f"{below:,} below"] * bool(below))
        note = "  ".join(text for text in (self.note, more) if text)
        note = f" {note} " if note and width > len(self.title) + len(note) + 8 else ""
        name = f"{self._rule} "
        blank = max(0, width - len(name) - len(self.title) - 1 - len(note) - 1)
        line = ((name, "dim"), (self.title, "head"), (" " + self._rule * blank + note + self._rule, "dim"))
        return fitted(line, width)

    def _keep(self) -> None:
        self._top = self._last_top() if self._at_end else min(self._top, self._last_top())

    def _last_top(self) -> int:
        return max(0, len(self.lines) - self.rows)

    def _draw(self) -> None:
        """Draw the lines that are not as they were drawn last."""
        if not self.display or not self.place.height:
            return
        before, self._drawn = self._drawn, self._seen()
        if not before:
            self.refresh()
            return
        changed = [y for y, (old, new) in enumerate(zip(before, self._drawn, strict=True)) if old != new]
        if changed:
            self.refresh(*(Region(0, y, self.place.width, 1) for y in changed))


__all__ = ["Pane"]
