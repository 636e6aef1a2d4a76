"""Options of both views."""

from __future__ import annotations

from aiperf.sdk.options import Options, option


class BrakeOptions(Options):
    bound_ms: float | None = option("--brake-ttft-p99", gt=0, metavar="MS", help="Stop the run once TTFT p99 passes this.")


class MessengerOptions(Options):
    url: str | None = option("--messenger-url", metavar="URL", help="Where the end of a run is posted to.")
