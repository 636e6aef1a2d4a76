"""``--url`` and ``--url-strategy``: where requests go, and what spreads sessions over several places."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import addresses
from aiperf.descriptor import PluginRef
from aiperf.findings import Findings
from aiperf.selection import Selection

Weights = Sequence[float | None]
"""A weight for each URL, None where none was given."""


def given(findings: Findings) -> tuple[tuple[str, ...], Weights]:
    """Base URLs and their weights; what is wrong with them goes to *findings*."""
    flag = findings.flag("urls")
    if not findings.kernel.urls:
        findings.refuse(f"{flag} is given no URL", "give it as http://host:port")
    found, weights = [], []
    for text in findings.kernel.urls:
        with findings.collected(flag):
            url, weight = addresses.without_weight(text)
            found.append(addresses.base_url(url))
            weights.append(weight)
    return tuple(found), weights


def strategy(select: Selection, weights: Weights, workers: int) -> PluginRef | None:
    """What spreads sessions over several URLs; None where there is one, or something is wrong, which has been said."""
    findings, registry = select.findings, select.registry
    weighted = any(weight is not None for weight in weights)
    if len(weights) < 2 and not weighted and not findings.typed("url_strategy"):
        return None
    ref = select.chosen("url_strategies", findings.kernel.url_strategy, "url_strategy")
    if ref is None:
        return None
    can = registry.descriptor("url_strategies", ref.name).capabilities
    named = f"{findings.flag('url_strategy')} {ref.name}"
    if weighted and not can.get("weights"):
        choices = [one.name for one in registry.all("url_strategies") if one.capabilities.get("weights")]
        findings.refuse(
            f"{findings.flag('urls')} gives weights, and {named} has no use for them",
            f"choose {' or '.join(choices)}, or drop the weights (write %3D for a '=' that belongs to a path)",
        )
    if can.get("uses_load") and workers > 1:
        one = f"{findings.flag('workers_max')} 1"
        findings.warn(f"{named} goes by what each of the {workers} workers has in flight; {one} would count all")
    return ref if len(weights) > 1 else None
