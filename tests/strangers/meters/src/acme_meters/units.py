"""Units of the meters."""

from __future__ import annotations

from aiperf.sdk.metric import PluginUnit

JOULES = PluginUnit("J", "energy")
KILOJOULES = PluginUnit("kJ", "energy", 1000.0)
PIECES = PluginUnit("pieces")
