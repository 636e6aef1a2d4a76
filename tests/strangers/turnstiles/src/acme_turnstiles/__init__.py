"""How many requests each server has had: a target for each of them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from aiperf import Options, Reading, SeriesDeclaration, SeriesKind, SeriesTable, TelemetryContext, option
from aiperf.sdk.telemetry import Absent, FetchError, TelemetrySource, TelemetryTarget

TABLE = SeriesTable(
    SeriesDeclaration("visitors", "requests", SeriesKind.COUNTER, help="Requests that came"),
    SeriesDeclaration("inside", "requests"), SeriesDeclaration("open", "s", SeriesKind.COUNTER, flows=True),
)


class TurnstileOptions(Options):
    interval_s: float = option("--turnstiles", default=0.0, ge=0, metavar="SECONDS", help="Count so often; 0 doesn't.")


class Turnstile(TelemetryTarget):
    def __init__(self, url: str, interval_s: float, context: TelemetryContext) -> None:
        self.name, self.interval_s, self.context = url, interval_s, context

    def sample(self) -> Reading:
        try:
            page = self.context.fetch(f"{self.name}/truth?summary=1")
        except FetchError as error:
            if error.status == 404:
                raise Absent(error.message) from error
            raise
        truth = json.loads(page.body)["summary"]
        values = {"visitors": truth["requests"], "inside": truth["in_flight"], "open": page.at_ns / 1e9}
        return Reading([TABLE.point(name, value) for name, value in values.items()], page.sent_ns, page.at_ns)


class Turnstiles(TelemetrySource[TurnstileOptions]):
    def targets(self) -> Sequence[TelemetryTarget]:
        return [Turnstile(url, self.options.interval_s, self.context) for url in self.context.urls]
