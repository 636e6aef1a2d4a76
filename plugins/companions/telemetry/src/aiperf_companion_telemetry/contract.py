"""The companion with a source, for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf import Point, TelemetrySource
from aiperf.sdk.descriptor import PluginRef
from aiperf.testing import CompanionContract

from aiperf_companion_telemetry import Telemetry


class Clock(TelemetrySource[None]):
    """Ticks."""

    def sample(self) -> list[Point]:
        return [Point("tick", 1.0)]


class TelemetryContract(CompanionContract):
    companion = Telemetry
    fields = {"telemetry": (PluginRef("telemetry", "clock", f"{__name__}:Clock", "its contract", ""),)}
