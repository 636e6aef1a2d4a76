"""What watches a run: its display, or plain log lines once that has failed, and the live views beside it."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from aiperf import logs
from aiperf.cores import level_with_parent, set_session_nice
from aiperf.logs import progress
from aiperf.registry.patience import calls
from aiperf.registry.third_party import load, why
from aiperf.run.diverted import Screen
from aiperf.run.start import Signals
from aiperf.run.terminal_modes import TerminalModes
from aiperf.run.viewing import Began, Logged, PlanEnded, Shown, Stepped, encode
from aiperf.run.views import ViewProcess, Views, heed
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.live import LiveEnd, LiveRun, Step
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.plan import Plan
from aiperf.sdk.snapshot import MOST_LINES, LogLine, Snapshot
from aiperf.sdk.ui import NoUi, Ui

log = logging.getLogger(__name__)

_END_S = 5.0
_HANGS_S = 0.5
"""A display that takes longer for a call may never return."""
_LATE_SNAPSHOTS = 4
"""A display that works apart, and has not read the snapshot before for so many, gets no core."""
_LONGEST_LINE = 500
"""Characters of a line of the log in snapshots, and for live views."""


class Elsewhere(Ui):
    """A display in a process of its own.  Snapshots that it is too slow for are dropped; log lines wait.

    Every method raises PluginError once that process has failed; the terminal is then as it was before.
    """

    def __init__(self, ref: PluginRef, options: EncodedOptions | None) -> None:
        super().__init__(options)
        self._modes = TerminalModes()
        self._view = ViewProcess(ref, options)
        self.screen = Screen()
        self.process = self._view.process
        self._late = 0
        self._apart = True

    def begin(self, run: LiveRun) -> None:
        self._check()
        self._view.begin()
        self._view.send(encode(Began(run)) + b"\n")

    def show(self, snapshot: Snapshot) -> None:
        self._check()
        self._share_cores()
        self._view.show(encode(Shown(snapshot)) + b"\n")

    def step(self, step: Step) -> None:
        self._check()
        self._view.show(encode(Stepped(step)) + b"\n")

    def log(self, line: LogLine) -> None:
        self._check()
        self._view.log(encode(Logged(line)) + b"\n")

    def end(self, end: LiveEnd) -> None:
        self._check()
        self._view.send(encode(PlanEnded(end)) + b"\n")

    def heed(self, signals: Signals) -> None:
        """Do what the display asks for."""
        self._check()
        for line in self.screen.lines():
            self._view.log(encode(Logged(line)) + b"\n")
        for reply in self._view.replies():
            heed(reply, self._view.name, signals, lambda line: self.log(LogLine(line)))

    def close(self) -> None:
        self._view.end(_END_S)
        try:
            self._check()
        finally:
            self._view.close()
            self.screen.give_back()

    def _share_cores(self) -> None:
        """Where others keep the cores busy, let a session of the display's own have its share until it has caught up."""
        late = self.process.unread > 0
        self._late = self._late + 1 if late is self._apart else 0
        if self._late >= _LATE_SNAPSHOTS:
            pid = self.process.pid
            if (level_with_parent(pid) if late else set_session_nice(pid)) is not None:
                self._apart, self._late = not self._apart, 0

    def _check(self) -> None:
        if self.process.poll():
            self._modes.restore()
            self.screen.give_back()
            self._view.check()


class Display:
    """What watches a run: its display, or plain log lines once that has failed, and its live views.

    The thread of a step may draw while the run closes it, so calls come one at a time.

    *kept*: the process of the display goes on behind the plan.  tail: the latest lines of the log; logged: how many there were.
    """

    def __init__(self, ui: Ui, name: str, views: Views | None = None, *, kept: bool = False) -> None:
        self._ui, self._name, self._kept = ui, name, kept
        self.views = Views() if views is None else views
        self._lock = threading.RLock()
        self._logged: set[str] = set()
        self._drew = False
        self._began_s: float | None = None
        self._later: list[str] = []
        self.tail: deque[LogLine] = deque(maxlen=MOST_LINES)
        self.logged = 0

    @property
    def draws(self) -> bool:
        """Whether it redraws lines of the terminal in this process."""
        return self._ui.draws

    @property
    def screen(self) -> Screen | None:
        """The terminal that it has taken from this process; None where it runs in this one, or has failed."""
        return self._ui.screen if isinstance(self._ui, Elsewhere) else None

    @property
    def looks(self) -> bool:
        """Whether anybody looks at live numbers."""
        return bool(self.views) or not isinstance(self._ui, NoUi)

    def begin(self, plan: Plan, run: LiveRun, log_file: Path) -> None:
        """The plan begins: its live views start, where they don't run yet."""
        self._safely(lambda: self._ui.begin(run), lambda: self.views.begin(plan, run, log_file))

    def show(self, snapshot: Snapshot) -> None:
        self._safely(lambda: self._ui.show(snapshot), lambda: self.views.show(snapshot))

    def step(self, step: Step, *, logged: bool = False) -> None:
        """Show the step; once in the log as well, unless it is drawn, or is *logged* by itself."""
        with self._lock:
            draws = self._drew or self.draws
        self._safely(lambda: self._ui.step(step), lambda: self.views.step(step))
        if not draws and not logged and step.what not in self._logged:
            self._logged.add(step.what)
            progress.info("%s", step.line())

    def log(self, line: str) -> None:
        short = LogLine.of(line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…")
        self.tail.append(short)
        self.logged += 1
        whole = LogLine(line, short.level)
        if not self._safely(lambda: self._ui.log(whole), lambda: self.views.log(short)):
            self._ui.log(whole)

    def end(self, end: LiveEnd) -> None:
        """The plan has ended; its display may have left the terminal."""
        self._safely(lambda: self._ui.end(end), lambda: self.views.end(end))

    def heed(self, signals: Signals) -> None:
        """Do what the display, the live views and the calling program ask for; to be called often."""
        ui, unlogged = self._ui, list[LogLine]()

        def show(line: str) -> None:
            unlogged.append(LogLine(line))

        self._safely(
            lambda: ui.heed(signals) if isinstance(ui, Elsewhere) else None, lambda: self.views.heed(signals, show)
        )
        for line in unlogged:
            if not self._safely(lambda line=line: self._ui.log(line), lambda: None):  # type: ignore[misc]  # bound here
                self._ui.log(line)
        signals.heed()

    def interject(self, line: str) -> None:
        """:meth:`log` for the handler of a signal, which may come while this thread draws: then the line follows."""
        if self._began_s is None:
            self.log(line)
        elif time.monotonic() - self._began_s < _HANGS_S:
            self._later.append(line)
        else:
            logs.print_line(line)

    def close(self) -> None:
        """Leave the terminal.  Further calls show nothing: a step that can't be drawn now must not be logged into the report.

        Live views go on.
        """
        with self._lock:
            self._drew |= self._ui.draws
            ui, self._ui = self._ui, NoUi()
            if not self._kept:
                self._safely(ui.close, lambda: None)

    def _safely(self, call: Callable[[], object], views: Callable[[], object]) -> bool:
        """Call the display, and the live views, which report by themselves; whether the display took it."""
        try:
            with self._lock, calls.of(self._name):
                self._began_s = time.monotonic()
                views()
                call()
        except (Exception, SystemExit) as error:  # noqa: BLE001  # code of a plugin
            self._ui = NoUi()
            log.warning("%s failed, and is left out: %s", self._name, why(error).removeprefix(f"{self._name} "))
            return False
        finally:
            self._began_s = None
            while self._later:
                self.log(self._later.pop(0))
        return True


def display(
    ref: PluginRef, options: EncodedOptions | None, *, in_process: bool, views: Views | None = None
) -> Display:
    """The display *ref*, in this process or in its own.

    Raises:
        PluginError: The import fails.  In another process it fails at the next call.
    """
    return Display(_made(ref, options) if in_process else Elsewhere(ref, options), str(ref), views)


def _made(ref: PluginRef, options: EncodedOptions | None) -> Ui:
    ui: Ui = load(ref)(None if options is None else options.decoded())
    return ui
