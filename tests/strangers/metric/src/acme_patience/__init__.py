"""How much of a request is waiting for its first token."""

from __future__ import annotations

from aiperf import Needs, PerRequestMetric, RequestView, Unit


class Patience(PerRequestMetric):
    tag, title, unit, order = "patience", "Patience", Unit.PERCENT, 950
    needs = ("time_to_first_token", "request_latency")
    requires, rises = Needs.STREAMING, ("time_to_first_token",)

    def value(self, request: RequestView) -> float | list[float] | None:
        first, whole = request["time_to_first_token"], request["request_latency"]
        return 100.0 * first / whole if isinstance(first, float) and isinstance(whole, float) and whole else None
