"""What became of requests, told in several places of the summary: it must add up."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from aiperf_command_validate.faults import Faults

_ARRIVALS = {
    "completed": ("completed",),
    "errors": ("failed", "cut", "empty"),
    "cancelled": ("cancelled",),
    "aborted_in_flight": ("aborted",),
    "unfinished": ("unfinished",),
}
"""The kinds of outcome that each count of arrivals is the sum of."""


def add_up(summary: dict[str, Any], name: str, faults: Faults) -> None:
    """Outcomes are the arrivals' ends; requests, outcomes and throughput of all URLs are the run's."""
    arrivals, outcomes = summary.get("measurement", {}).get("arrivals", {}), summary.get("outcomes")
    if isinstance(outcomes, dict) and arrivals:
        for end, kinds in _ARRIVALS.items():
            told = sum(outcomes.get(kind, 0) for kind in kinds)
            if told != arrivals.get(end, 0):
                faults.add(name, f"outcomes has {told:,} {' + '.join(kinds)}, the arrivals {arrivals.get(end, 0):,} {end}")
    urls = [one for one in summary.get("urls", ()) if isinstance(one, dict)]
    if urls:
        _of_urls(summary, urls, name, faults)


def _of_urls(summary: dict[str, Any], urls: list[dict[str, Any]], name: str, faults: Faults) -> None:
    started, sent = sum(one.get("started", 0) for one in urls), summary.get("measurement", {}).get("arrivals", {}).get("sent")
    if sent is not None and started != sent:
        faults.add(name, f"the URLs' started requests are {started:,}, those sent {sent:,}")
    together: Counter[str] = Counter()
    for one in urls:
        together.update(one.get("outcomes", {}))
    outcomes = summary.get("outcomes", {})
    for kind in sorted(together.keys() | outcomes.keys()):
        if together[kind] != outcomes.get(kind, 0):
            faults.add(name, f"the URLs' {kind} requests are {together[kind]:,}, the run's {outcomes.get(kind, 0):,}")
    rates = [one.get("metrics", {}).get("request_throughput", {}).get("avg", 0.0) for one in urls]
    whole = summary.get("request_throughput", {}).get("avg")
    if whole is not None and not math.isclose(sum(rates), whole, rel_tol=1e-6):
        faults.add(name, f"the URLs' request_throughput adds up to {sum(rates):g}, the run's is {whole:g}")
