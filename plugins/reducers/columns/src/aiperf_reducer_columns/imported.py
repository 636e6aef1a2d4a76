"""Plugins that are imported before they are used, while there is time."""

from __future__ import annotations

import contextlib

from aiperf import AiperfError
from aiperf.parts.loading import load
from aiperf.sdk.descriptor import PluginRef


def imported(*plugins: PluginRef) -> None:
    """Import plugins early; who uses them reports a failure."""
    for plugin in plugins:
        with contextlib.suppress(AiperfError):
            load(plugin)
