"""The wait for a server that is not there, for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf import Endpoint, HttpRequest, Turn
from aiperf.sdk.descriptor import PluginRef
from aiperf.testing import CompanionContract

from aiperf_companion_readiness import Readiness
from aiperf_companion_readiness.options import ReadinessOptions


class Dialect(Endpoint[None]):
    def encode(self, turn: Turn) -> HttpRequest:
        return HttpRequest("/ask", turn.text.encode())


class ReadinessContract(CompanionContract):
    companion = Readiness
    options = ReadinessOptions(timeout_s=0.2, interval_s=0.05)
    fields = {
        "urls": ("http://127.0.0.1:9",),
        "endpoint": PluginRef("endpoints", "dialect", f"{__name__}:Dialect", "its contract", ""),
    }
