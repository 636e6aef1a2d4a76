"""What a picture says of its runs: name, model, number of requests, failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiperf import PlotRun
from msgspec import Struct

MOST = 4
"""Runs with a line each; more share one."""


class RunFacts(Struct, frozen=True):
    """requests: that ended, failed ones included; None where the results do not say it."""

    name: str
    models: tuple[str, ...]
    requests: int | None
    failed: int
    cut_off: int = 0

    def __str__(self) -> str:
        requests = "n unknown" if self.requests is None else f"n = {self.requests:,}"
        cut_off = f", {self.cut_off:,} cut off" if self.cut_off else ""
        return f"{self.name}: {_models(self.models)}, {requests}, {self.failed:,} failed{cut_off}"


def facts(run: PlotRun) -> RunFacts:
    good, failed = run.number("request_count"), round(run.number("error_request_count") or 0)
    arrivals = run.summary.get("measurement", {}).get("arrivals", {})
    cut_off = int(arrivals.get("aborted_in_flight", 0) + arrivals.get("unfinished", 0))
    requests = None if good is None and not failed else round(good or 0) + failed
    return RunFacts(run.label, _names(run.summary.get("input_config", {})), requests, failed, cut_off)


def caption_of(runs: Sequence[PlotRun]) -> list[str]:
    """A line for each run; one for all where there are many."""
    known = [facts(run) for run in runs]
    if len(known) <= MOST:
        return [str(each) for each in known]
    models = tuple(dict.fromkeys(model for each in known for model in each.models))
    counts = [each.requests for each in known if each.requests is not None]
    requests = f"n = {_between(counts)}" if counts else "n unknown"
    lost = f"{_between([each.failed for each in known])} failed"
    return [f"{len(known)} runs, {known[0].name} to {known[-1].name}: {_models(models)}, {requests} each, {lost}"]


def _between(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _models(names: Sequence[str]) -> str:
    return "model unknown" if not names else f"model{'' if len(names) == 1 else 's'} {', '.join(names)}"


def _names(configuration: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of models: as this program and the reference's later versions write them, or its earlier ones."""
    models = configuration.get("models")
    items = models.get("items", ()) if isinstance(models, Mapping) else models or ()
    names = [item.get("name") if isinstance(item, Mapping) else item for item in items]
    endpoint = configuration.get("endpoint")
    if not names and isinstance(endpoint, Mapping):
        names = list(endpoint.get("model_names") or ())
    return tuple(str(name) for name in names if name)
