"""The option for objectives."""

from __future__ import annotations

from typing import Annotated

from aiperf.sdk.options import After, Options, option

from aiperf_metric_goodput.installed import check
from aiperf_metric_goodput.slos import read_slos


def _readable(words: list[str]) -> list[str]:
    if slos := read_slos(words):
        check(slos)
    return [word for text in words for word in text.split()]


class GoodputOptions(Options):
    goodput: Annotated[list[str], After(_readable)] = option("--goodput", "-g", default=[], group="Goodput",
        metavar="TAG:NUMBER", place="slos",
        help="Objectives (SLOs) that good requests meet, in the metric's unit: time_to_first_token:250, or ttft:250, is at most"
        " 250 ms, and at least where more is better. TAG:p99<NUMBER is one of the whole run.")  # fmt: skip
