"""The screen: panes, keys, and what of a snapshot goes where."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from aiperf.sdk.snapshot import LiveSeries, LogLine, Snapshot, clock
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.events import Resize

from aiperf_ui_dashboard import panels
from aiperf_ui_dashboard.history import History
from aiperf_ui_dashboard.layout import (
    CHARTS,
    FAILURES,
    FOOTER,
    GOODPUT,
    HEADER,
    KEYS,
    LOG,
    METRICS,
    OVERVIEW,
    PROGRESS,
    TELEMETRY,
    WORKERS,
    arranged,
)  # fmt: skip
from aiperf_ui_dashboard.lines import Line, Span, fitted, folded, literal, plain
from aiperf_ui_dashboard.pane import Pane

LOG_LINES, LOG_CHARACTERS = 2000, 500
"""The longest log, and its longest line."""
TITLES = {
    PROGRESS: "2 Progress", METRICS: "3 Metrics", WORKERS: "4 Workers", TELEMETRY: "5 Telemetry", LOG: "6 Log",
    FAILURES: "7 Failures", GOODPUT: "8 Goodput and measurement", CHARTS: "9 Curves", KEYS: "Keys",
}  # fmt: skip
HELP = (
    ("1, Esc", "overview"), ("2", "progress of the phases"), ("3", "metrics"), ("4", "workers"),
    ("5", "telemetry; again: its next source"), ("6", "log"), ("7", "failures by kind"),
    ("8", "goodput by objective, and the measurement so far"), ("9", "curves of the last two minutes"),
    ("Tab, Shift+Tab", "next and previous pane"), ("Up, Down, PgUp, PgDn", "scroll"), ("Home, End", "first and last line"),
    ("l", "show or hide the log in the overview"), ("c", "copy the pane, in the overview the log, to the clipboard"),
    ("Ctrl+S", "write the screen as an SVG file"), ("Ctrl+L", "draw the screen again"),
    ("Ctrl+C", "stop: nothing more is sent, results are written; again: cancel at once"), ("?", "these keys"),
)  # fmt: skip
_ORDER = (OVERVIEW, PROGRESS, METRICS, WORKERS, TELEMETRY, LOG, FAILURES, GOODPUT, CHARTS)
_DIGITS = {str(at + 1): view for at, view in enumerate(_ORDER)}
_LEVELS = ((40, "bad"), (30, "warn"), (20, ""), (0, "dim"))
_WORDS = (
    (112, "1 overview  2 progress  3 metrics  4 workers  5 telemetry  6 log  7 failures  8 goodput  9 curves"
        "  ? keys  ^C stop"),
    (50, "1-9 panes  Tab next  l log  c copy  ? keys  ^C stop"), (0, "1-9 panes  ? keys  ^C stop"),
)  # fmt: skip
"""What the last line says from a width on."""
_NOTE_S = 5.0
_LOG_S = 0.1
_MOST_SOURCES = 20
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts that Rich fetches."""


def _keys() -> list[BindingType]:
    """Keys work wherever the focus is."""
    keys = {digit: f"view('{view}')" for digit, view in _DIGITS.items()} | {
        "escape": f"view('{OVERVIEW}')", "question_mark": f"view('{KEYS}')", "l": "toggle_log", "c": "copy",
        "ctrl+s": "picture", "ctrl+l": "draw_again", "ctrl+c": "end", "tab": "next(1)", "shift+tab": "next(-1)",
        "up": "scroll_lines(-1)", "down": "scroll_lines(1)", "pageup": "scroll_pages(-1)", "pagedown": "scroll_pages(1)",
        "home": "scroll_lines(-100000)", "end": "scroll_lines(100000)",
    }  # fmt: skip
    return [Binding(key, action, show=False, priority=True) for key, action in keys.items()]


class Board(App[None], inherit_bindings=False):
    """Shows snapshots and log lines, in the thread of its loop.

    ask: called with ``stop`` at the first Ctrl-C, with ``cancel`` at each further one.  metrics_s: how often the table of
    metrics changes.  pictures: the directory of the SVG files.
    """
    # More than 20 attributes: one screen has what its panes share

    CSS = "Screen { layout: vertical; overflow: hidden; } Pane { position: absolute; }"
    BINDINGS: ClassVar[list[BindingType]] = _keys()
    ENABLE_COMMAND_PALETTE = False
    TITLE = "aiperf"

    def __init__(
        self, ask: Callable[[str], None], *, metrics_s: float = 5.0, unicode: bool = True,
        driver_class: type[Driver] | None = None, pictures: Callable[[], str] = lambda: ".",
    ) -> None:  # fmt: skip
        super().__init__(driver_class=driver_class, ansi_color=True)
        self.subject = ""
        self.failure: Exception | None = None
        self._ask, self._metrics_s, self._unicode, self._pictures = ask, metrics_s, unicode, pictures
        self._view, self._moved, self._log_shown, self._asked = LOG, False, True, 0
        self._panes = {name: Pane(name, TITLES.get(name, ""), follows=name == LOG, unicode=unicode)
            for name in (HEADER, FOOTER, *TITLES)}  # fmt: skip
        self._snapshot: Snapshot | None = None
        self._history = History()
        self._charted, self._table_s = (-1, 0, 0), -1e9
        self._source = ""
        self._first, self._wanted = OVERVIEW, ""
        """The view of the first snapshot, and how the name of the source begins that it shows, until there is one."""
        self._lines = deque[Line](maxlen=LOG_LINES)
        self._log_changed = False
        self._note: Span | None = None
        self._area: tuple[int, int] | None = None

    def compose(self) -> ComposeResult:
        yield from self._panes.values()

    def on_mount(self) -> None:
        self.animation_level = "none"
        self._arrange()

    def on_resize(self, event: Resize) -> None:
        self._area = (event.size.width, event.size.height)  # the app's own size follows later
        self._arrange()

    # What comes from the run.

    def take(self, snapshot: Snapshot) -> None:
        """Show a snapshot."""
        first = self._snapshot is None
        new_phase = first or (self._snapshot is not None and self._snapshot.phase != snapshot.phase)
        self._snapshot = snapshot
        self._history.add(snapshot)
        if first and not self._moved:
            self._view = self._first
        if new_phase or snapshot.last:
            self._table_s = -1e9
        if first:
            self._arrange()
        else:
            self._refresh_panes()

    def open_telemetry(self, source: str) -> None:
        """Begin with the view of telemetry, and of the source whose name begins so."""
        self._first, self._wanted = TELEMETRY, source

    def say(self, text: str, style: str = "warn", *, lasting: bool = False) -> None:
        """Show a sentence at the top right, for some seconds or until the next one."""
        self._note = (literal(text), style)
        self._show_header()
        if not lasting:
            self.set_timer(_NOTE_S, self._drop_note)

    def log_line(self, line: LogLine) -> None:
        """Add a line of the log; drawn ten times a second at most."""
        style = next(style for level, style in _LEVELS if line.level >= level)
        self._lines.append(((literal(line.text, LOG_CHARACTERS), style),))
        if not self._log_changed:
            self._log_changed = True
            self.set_timer(_LOG_S, self._show_log)

    def next_run(self, subject: str) -> None:
        """Forget the numbers of the run before: those of another plan come.  subject: what it measures."""
        self.subject = literal(subject)
        self._snapshot, self._history, self._asked, self._note = None, History(), 0, None
        self._charted, self._table_s = (-1, 0, 0), -1e9
        for name in (PROGRESS, METRICS, WORKERS, TELEMETRY, FAILURES, GOODPUT, CHARTS):
            self._panes[name].show(())
        self._show_header()

    def picture(self) -> str:
        """The screen as SVG, which asks no other host for anything."""
        return _FONT.sub("", self.export_screenshot(simplify=True))

    def draw_again(self) -> None:
        """Draw the whole screen: the terminal's is not what was drawn."""
        self.screen.refresh(layout=True)
        for pane in self._panes.values():
            pane.refresh()

    # Keys.

    def action_view(self, view: str) -> None:
        if view == TELEMETRY and self._view == TELEMETRY:
            self._next_source()
        self._moved = True
        self._view = OVERVIEW if view == self._view == KEYS else view
        self._arrange()

    def action_next(self, step: int) -> None:
        at = _ORDER.index(self._view) if self._view in _ORDER else 0
        self.action_view(_ORDER[(at + step) % len(_ORDER)])

    def action_toggle_log(self) -> None:
        self._log_shown = not self._log_shown
        self._arrange()

    def action_copy(self) -> None:
        if self._view in (LOG, OVERVIEW):
            lines = [plain(line) for line in self._lines]
        else:
            lines = self._panes[self._view].text().split("\n")
        self.copy_to_clipboard("\n".join(lines))
        self.say(f"copied {len(lines):,} lines", "ok")

    def action_picture(self) -> None:
        path = Path(self._pictures()) / f"aiperf-{datetime.now():%Y%m%d-%H%M%S}.svg"
        try:
            path.write_text(self.picture(), "utf-8")
        except OSError as error:
            self.say(f"no picture: {error.strerror or error}", "bad")
        else:
            self.say(f"wrote {path}", "ok")

    def action_draw_again(self) -> None:
        self.draw_again()

    def action_end(self) -> None:
        self._asked += 1
        self._ask("stop" if self._asked == 1 else "cancel")
        self.say("stopping; ^C again cancels" if self._asked == 1 else "cancelling", "bad", lasting=True)

    def action_scroll_lines(self, lines: int) -> None:
        self._panes[METRICS if self._view == OVERVIEW else self._view].scroll(lines)

    def action_scroll_pages(self, pages: int) -> None:
        pane = self._panes[METRICS if self._view == OVERVIEW else self._view]
        pane.scroll(pages * max(1, pane.rows - 1))

    # Drawing.

    def _arrange(self) -> None:
        width, height = self._area or self.size
        lines = 8 if self._snapshot is None else 2 + sum(each.order is not None for each in self._snapshot.metrics)
        places = arranged(self._view, width, height, log=self._log_shown, metrics=max(8, lines))
        with self.batch_update():
            for name, pane in self._panes.items():
                pane.put(places.get(name))
            self._charted, self._table_s = (-1, 0, 0), -1e9
            words = next(text for least, text in _WORDS if width >= least)
            self._panes[FOOTER].show([fitted(((words, "dim"),), width)])
            self._panes[KEYS].show(_help(width))
            self._log_changed = True
            self._show_log()
            self._refresh_panes()

    def _refresh_panes(self) -> None:
        self._show_header()
        snapshot = self._snapshot
        if snapshot is None:
            return
        for name, lines in ((PROGRESS, panels.progress), (WORKERS, panels.workers), (GOODPUT, panels.goodput)):
            pane = self._panes[name]
            if pane.display:
                pane.show(lines(snapshot, pane.place.width), fixed=2 if name == WORKERS else 0)
        pane = self._panes[FAILURES]
        if pane.display:
            pane.show(panels.failures(snapshot, pane.place.width, whole=self._view == FAILURES))
        if self._panes[TELEMETRY].display:
            self._show_telemetry(snapshot)
        self._show_metrics(snapshot)
        self._show_charts()

    def _show_header(self) -> None:
        pane = self._panes[HEADER]
        pane.show(panels.header(self._snapshot, self.subject, self._note, pane.place.width, unicode=self._unicode))

    def _show_metrics(self, snapshot: Snapshot) -> None:
        """The table changes every few seconds only, so that it can be read."""
        pane, now_s = self._panes[METRICS], snapshot.at_ns / 1e9
        if pane.display and now_s - self._table_s >= self._metrics_s:
            if snapshot.metrics:
                self._table_s = now_s
            pane.note = f"at {clock(snapshot.elapsed_s)}, every {self._metrics_s:g} s"
            pane.show(panels.metrics(snapshot, pane.place.width), fixed=2)

    def _show_charts(self) -> None:
        """Curves move when one of their columns is full."""
        pane = self._panes[CHARTS]
        if not pane.display:
            return
        width, height = pane.place.width, pane.rows
        step_s = self._history.columns(panels.columns_of(width))[0]
        key = (int(self._history.now_s // step_s), width, height)
        if key != self._charted:
            self._charted = key
            pane.note = panels.charts_note(width)
            pane.show(panels.charts(self._history, width, height, unicode=self._unicode))

    def _show_telemetry(self, snapshot: Snapshot) -> None:
        pane, sources = self._panes[TELEMETRY], _by_source(snapshot.series)
        if not sources:
            pane.show([(("No telemetry source has sent a number yet.", "dim"),)])
            return
        wanted = next((name for name in sources if self._wanted and name.startswith(self._wanted)), "")
        if wanted:
            self._source, self._wanted = wanted, ""
        if self._source not in sources:
            self._source = next(iter(sources))
        at = list(sources).index(self._source)
        pane.title = f"5 Telemetry: {literal(self._source, 40)}"
        pane.note = f"source {at + 1} of {len(sources)}" + ("; 5: the next" if len(sources) > 1 else "")
        pane.show(panels.telemetry(sources[self._source], snapshot.further_series, pane.place.width), fixed=2)

    def _next_source(self) -> None:
        sources = list(_by_source(self._snapshot.series)) if self._snapshot is not None else []
        if sources:
            at = sources.index(self._source) if self._source in sources else -1
            self._source = sources[(at + 1) % len(sources)]

    def _show_log(self) -> None:
        pane = self._panes[LOG]
        if self._log_changed and pane.display:
            self._log_changed = False
            pane.show(list(self._lines) if self._view == OVERVIEW else _whole(self._lines, pane.place.width))

    def _drop_note(self) -> None:
        if not self._asked:
            self._note = None
            self._show_header()

    def _handle_exception(self, error: Exception) -> None:
        """Keep the error for the run, which reports it; Textual would print local variables."""
        self.failure = self.failure or error
        self._return_code = 1
        self._close_messages_no_wait()


def _by_source(series: tuple[LiveSeries, ...]) -> dict[str, list[LiveSeries]]:
    sources: dict[str, list[LiveSeries]] = {}
    for each in series:
        if each.source in sources or len(sources) < _MOST_SOURCES:
            sources.setdefault(each.source, []).append(each)
    return sources


def _help(width: int) -> list[Line]:
    lines: list[Line] = []
    for keys, what in HELP:
        pieces = folded(what, max(12, width - 21), "")
        lines += [((f"{keys if not at else '':<21}", "key"), (piece, "")) for at, piece in enumerate(pieces)]
    return lines


def _whole(log: Iterable[Line], width: int) -> list[Line]:
    """The lines of the log, long ones in several."""
    lines: list[Line] = []
    for line in log:
        text, style = line[0]
        if len(text) <= width // 2:  # wide characters take two cells
            lines.append(line)
        else:
            lines += [((piece, style),) for piece in folded(text, width, "  ")]
    return lines


__all__ = ["HELP", "TITLES", "Board"]
