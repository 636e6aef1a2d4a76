"""Outcomes of requests, which several sections of the summary count: the sums must agree."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from aiperf_command_validate.faults import Faults

_ARRIVALS = {
    "completed": ("completed",),
    "errors": ("failed", "empty", "client_limit"),
    "cut": ("cut",),
    "cancelled": ("cancelled",),
    "aborted_in_flight": ("aborted",),
    "unfinished": ("unfinished",),
    "damaged": ("damaged",),
    "overflowed": ("overflowed",),
}
"""The kinds of outcome that each count of arrivals is the sum of."""


def add_up(summary: dict[str, Any], name: str, faults: Faults) -> None:
    """Outcomes are the arrivals' ends; requests, outcomes and throughput of all URLs are the run's."""
    arrivals, outcomes = summary.get("measurement", {}).get("arrivals", {}), summary.get("outcomes")
    if isinstance(outcomes, dict) and arrivals:
        for end, kinds in _ARRIVALS.items():
            total = sum(outcomes.get(kind, 0) for kind in kinds)
            if total != arrivals.get(end, 0):
                faults.add(name, f"outcomes has {total:,} {' + '.join(kinds)}, the arrivals {arrivals.get(end, 0):,} {end}")
    urls = [url for url in summary.get("urls", ()) if isinstance(url, dict)]
    if urls:
        _of_urls(summary, urls, name, faults)


def _of_urls(summary: dict[str, Any], urls: list[dict[str, Any]], name: str, faults: Faults) -> None:
    started, sent = sum(url.get("started", 0) for url in urls), summary.get("measurement", {}).get("arrivals", {}).get("sent")
    if sent is not None and started != sent:
        faults.add(name, f"the URLs' started requests are {started:,}, those sent {sent:,}")
    by_kind: Counter[str] = Counter()
    for url in urls:
        by_kind.update(url.get("outcomes", {}))
    outcomes = summary.get("outcomes", {})
    for kind in sorted(by_kind.keys() | outcomes.keys()):
        if by_kind[kind] != outcomes.get(kind, 0):
            faults.add(name, f"the URLs' {kind} requests are {by_kind[kind]:,}, the run's {outcomes.get(kind, 0):,}")
    rates = [url.get("metrics", {}).get("request_throughput", {}).get("avg", 0.0) for url in urls]
    whole = summary.get("request_throughput", {}).get("avg")
    if whole is not None and not math.isclose(sum(rates), whole, rel_tol=1e-6):
        faults.add(name, f"the URLs' request_throughput adds up to {sum(rates):g}, the run's is {whole:g}")
