"""The run's live display, and the process of its own in which it usually is.

    python -m aiperf.run.display REPLIES

A display that fails is reported, and plain log lines take its place.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable

import msgspec

from aiperf import logs
from aiperf.errors import PluginError
from aiperf.logs import progress
from aiperf.processes.local import Inbox, SideProcess, end_with_parent, fate, ignore_endings, send_reply
from aiperf.registry.imports import leave
from aiperf.registry.patience import calls
from aiperf.registry.third_party import load, why
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.ui import NoUi, Snapshot, Step, Ui

log = logging.getLogger(__name__)

_END_S = 2.0
_HANGS_S = 0.5
"""A display that takes longer for a call may never return."""


class Opened(msgspec.Struct, frozen=True, tag=True):
    """The first message to the process: the plugin and its options.  Then come snapshots, steps and log lines."""

    ref: PluginRef
    options: EncodedOptions | None


class Shown(msgspec.Struct, frozen=True, tag=True):
    snapshot: Snapshot


class Stepped(msgspec.Struct, frozen=True, tag=True):
    step: Step


class Logged(msgspec.Struct, frozen=True, tag=True):
    line: str


_decode = msgspec.json.Decoder(Opened | Shown | Stepped | Logged).decode


class Elsewhere(Ui):
    """A display in a process of its own.  Snapshots that it is too slow for are dropped; log lines wait.

    Every method raises PluginError once that process has failed.
    """

    def __init__(self, ref: PluginRef, options: EncodedOptions | None) -> None:
        super().__init__(options)
        self.process = SideProcess("aiperf.run.display", foreground=True)
        self.process.send(Opened(ref, options))

    def show(self, snapshot: Snapshot) -> None:
        self._check()
        if not self.process.backlogged:
            self.process.send(Shown(snapshot))

    def step(self, step: Step) -> None:
        self._check()
        if not self.process.backlogged:
            self.process.send(Stepped(step))

    def log(self, line: str) -> None:
        self._check()
        self.process.send(Logged(line))

    def close(self) -> None:
        self.process.end(_END_S)
        try:
            self._check()
        finally:
            self.process.close()

    def _check(self) -> None:
        code = self.process.poll()
        if code:
            replies = [msgspec.json.decode(line, type=str) for line in self.process.receive()]
            raise PluginError(replies[0] if replies else f"its process {fate(code)}")


class Display:
    """The display of a run, or plain log lines once it has failed.

    The thread of a step may draw while the run closes it, so calls come one at a time.
    """

    def __init__(self, ui: Ui, name: str) -> None:
        self._ui, self._name = ui, name
        self._lock = threading.RLock()
        self._logged: set[str] = set()
        self._drew = False
        self._began_s: float | None = None
        self._later: list[str] = []

    @property
    def draws(self) -> bool:
        """Whether it redraws lines of the terminal in this process."""
        return self._ui.draws

    def show(self, snapshot: Snapshot) -> None:
        self._safely(lambda: self._ui.show(snapshot))

    def step(self, step: Step, *, logged: bool = False) -> None:
        """Show the step; once in the log as well, unless it is drawn, or is *logged* by itself."""
        with self._lock:
            draws = self._drew or self.draws
        self._safely(lambda: self._ui.step(step))
        if not draws and not logged and step.what not in self._logged:
            self._logged.add(step.what)
            progress.info("%s", step.line())

    def log(self, line: str) -> None:
        if not self._safely(lambda: self._ui.log(line)):
            self._ui.log(line)

    def interject(self, line: str) -> None:
        """:meth:`log` for the handler of a signal, which may come while this thread draws: then the line follows."""
        if self._began_s is None:
            self.log(line)
        elif time.monotonic() - self._began_s < _HANGS_S:
            self._later.append(line)
        else:
            logs.print_line(line)

    def close(self) -> None:
        """Leave the terminal.  Further calls do nothing: a step that can't be drawn now must not be logged into the report."""
        with self._lock:
            self._drew |= self._ui.draws
            ui, self._ui = self._ui, NoUi()
            self._safely(ui.close)

    def _safely(self, call: Callable[[], None]) -> bool:
        try:
            with self._lock, calls.of(self._name):
                self._began_s = time.monotonic()
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


def display(ref: PluginRef, options: EncodedOptions | None, *, in_process: bool) -> Display:
    """The display *ref*, in this process or in its own.

    Raises:
        PluginError: The import fails.  In another process it fails at the next call.
    """
    return Display(_made(ref, options) if in_process else Elsewhere(ref, options), str(ref))


def _made(ref: PluginRef, options: EncodedOptions | None) -> Ui:
    ui: Ui = load(ref)(None if options is None else options.decoded())
    return ui


def main(replies: str) -> int:
    """The process: turns each message of the run into a call of the plugin."""
    ignore_endings()
    end_with_parent(int(replies))  # the run reads it when this process has ended
    ui: Ui = NoUi()

    def take(line: bytes) -> None:
        nonlocal ui
        match _decode(line):
            case Opened(ref, options):
                ui = _made(ref, options)
            case Shown(snapshot):
                ui.show(snapshot)
            case Stepped(step):
                ui.step(step)
            case Logged(text):
                ui.log(text)

    inbox = Inbox(take)
    try:
        while not inbox.over:
            inbox.wait(None)
        ui.close()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # code of a plugin
        send_reply(int(replies), why(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(leave(main(*sys.argv[1:])))
