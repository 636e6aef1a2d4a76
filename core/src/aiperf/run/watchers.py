"""What watches the plans of a run: the display's process, and the live views, from the first plan to the last."""

from __future__ import annotations

import msgspec

from aiperf.run.display import Display, Elsewhere, display
from aiperf.run.diverted import Screen
from aiperf.run.start import Signals
from aiperf.run.views import Views
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.plan import Plan
from aiperf.sdk.ui import NoUi


class Watchers:
    """Displays that are kept for further plans, and live views.

    signals: of the plan under way; None while none is.
    """

    def __init__(self) -> None:
        self.views = Views()
        self.signals: Signals | None = None
        self._kept: tuple[tuple[PluginRef, bytes], Elsewhere] | None = None
        self._shown: Display | None = None

    def display_of(self, plan: Plan, *, in_process: bool, kept: bool) -> Display:
        """The display that the plan names.  *kept*: another plan may show itself in the same process.

        Raises:
            PluginError: It can't be imported.  In another process that fails at the next call.
        """
        ref = plan.plugins.ui
        if ref is None:
            self._shown = Display(NoUi(), "", self.views)
            return self._shown
        options = plan.plugins.options.get(ref.key)
        key = ref, msgspec.json.encode(options)
        if self._kept is not None and (not kept or self._kept[0] != key):
            self._end_kept()
        if in_process or not kept:
            self._shown = display(ref, options, in_process=in_process, views=self.views)
            return self._shown
        if self._kept is None:
            self._kept = key, Elsewhere(ref, options)
        self._shown = Display(self._kept[1], str(ref), self.views, kept=True)
        return self._shown

    def heed(self, signals: Signals) -> None:
        """Between two plans: do what displays, views and the calling program ask for."""
        if self._shown is not None:
            self._shown.heed(signals)

    def say(self, line: str) -> bool:
        """Show a line between two plans; whether a display that is kept has shown it."""
        if self._kept is None:
            return False
        Display(self._kept[1], str(self._kept[0][0]), self.views, kept=True).log(line)
        return True

    @property
    def screen(self) -> Screen | None:
        """The terminal while a display that is kept has it."""
        return None if self._kept is None else self._kept[1].screen

    def close(self) -> None:
        """End all.  May be called again."""
        self._end_kept()
        self.views.close()

    def _end_kept(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            Display(kept[1], str(kept[0][0])).close()
