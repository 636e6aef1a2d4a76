"""The run's live display, as the run sees it: one that fails is reported, and replaced by plain log lines."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from aiperf.aside import Aside
from aiperf.descriptor import PluginRef
from aiperf.errors import PluginError
from aiperf.progress import Snapshot
from aiperf.strangers import load, who, why
from aiperf.ui import NoUi, Ui
from aiperf.uiprocess import Logged, Opened, Shown

log = logging.getLogger(__name__)

_END_S = 2.0


class Elsewhere(Ui):
    """A display in a process of its own.  What it is too slow for is left out, but for the log.

    Raises PluginError from its methods when that process is gone.
    """

    def __init__(self, ref: PluginRef, options: dict[str, Any] | None) -> None:
        super().__init__(options)
        self._aside = Aside("aiperf.uiprocess", foreground=True)
        self._aside.tell(Opened(ref, options))

    def show(self, snapshot: Snapshot) -> None:
        self._check()
        if not self._aside.behind:
            self._aside.tell(Shown(snapshot))

    def log(self, line: str) -> None:
        self._check()
        self._aside.tell(Logged(line))

    def close(self) -> None:
        self._aside.end(_END_S)
        try:
            self._check()
        finally:
            self._aside.close()

    def _check(self) -> None:
        code = self._aside.poll()
        if code:
            said = [msgspec.json.decode(line, type=str) for line in self._aside.heard()]
            raise PluginError(said[0] if said else f"its process ended with {code}")


class Display:
    """The display of a run, and what stands in for it once it has failed."""

    def __init__(self, ui: Ui, name: str) -> None:
        self._ui, self._name = ui, name

    def show(self, snapshot: Snapshot) -> None:
        self._safely(lambda: self._ui.show(snapshot))

    def log(self, line: str) -> None:
        if not self._safely(lambda: self._ui.log(line)):
            self._ui.log(line)

    def close(self) -> None:
        """Leave the terminal to what follows; further calls of anything do no harm."""
        ui, self._ui = self._ui, NoUi()
        self._safely(ui.close)

    def _safely(self, call: Callable[[], None]) -> bool:
        try:
            call()
        except Exception as error:  # noqa: BLE001  # strangers' code
            self._ui = NoUi()
            log.warning("%s failed, and is left out: %s", self._name, error if isinstance(error, PluginError) else why(error))
            return False
        return True


def display(ref: PluginRef, options: dict[str, Any] | None, *, in_process: bool) -> Display:
    """The display of that name.

    Raises:
        PluginError: It can't be imported; of one in another process that is noticed later.
    """
    if not in_process:
        return Display(Elsewhere(ref, options), who(ref))
    from types import SimpleNamespace

    return Display(load(ref)(None if options is None else SimpleNamespace(**options)), who(ref))
