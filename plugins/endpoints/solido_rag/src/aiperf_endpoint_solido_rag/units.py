"""Units of the dialect's numbers."""

from __future__ import annotations

from aiperf.sdk.metric import PluginUnit

SOURCES = PluginUnit("sources")
