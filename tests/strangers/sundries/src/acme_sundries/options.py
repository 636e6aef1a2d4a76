from __future__ import annotations

from aiperf import Options, option


class SundriesOptions(Options):
    beat_s: float | None = option("--metronome-seconds", gt=0, metavar="SECONDS", help="Send a request with every beat.")
    thrift: int | None = option("--thrift", ge=1, metavar="INT", help="The most tokens that any request may ask for.")
