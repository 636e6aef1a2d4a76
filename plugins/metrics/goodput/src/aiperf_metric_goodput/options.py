"""What is asked of a server."""

from __future__ import annotations

from aiperf.options import Options, option
from pydantic import field_validator

from aiperf_metric_goodput.slos import read_slos


class GoodputOptions(Options):
    goodput: list[str] = option("--goodput", "-g", default=[], group="Goodput", metavar="TAG:NUMBER",
        place="slos",
        help="Objectives (SLOs) that good requests meet, in the metric's unit: time_to_first_token:250 is at most 250 ms, and"
        " at least where more is better. TAG:p99<NUMBER is one of the whole run.")  # fmt: skip

    @field_validator("goodput")
    @classmethod
    def readable(cls, given: list[str]) -> list[str]:
        read_slos(given)
        return [word for words in given for word in words.split()]
