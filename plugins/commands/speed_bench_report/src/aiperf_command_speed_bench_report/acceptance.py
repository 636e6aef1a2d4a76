"""How much of its drafts a run's server accepted: from its own series, else from what it said in each answer."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aiperf import AiperfError
from aiperf_results import FinishedRun
from msgspec import Struct

_FILE = "server_metrics"
_SOURCE = "server_metrics"
"""Of the series in the summary."""
_TOTAL = "_total"
"""The end of a counter's name on the server's page, which the reference cuts off."""


class Acceptance(Struct, frozen=True):
    """A number, and where it comes from, in words."""

    value: float
    origin: str


class Quantity(Struct, frozen=True):
    """What servers call it.  gauges: the first that is there counts.  quotients: pairs of counters, and *plus* is added.

    words: parts of the name of a gauge of an unknown engine.  client: the metric of requests, and *scale* makes our unit of it.
    """

    title: str
    gauges: tuple[str, ...]
    quotients: tuple[tuple[str, str], ...]
    plus: float
    words: tuple[str, ...]
    client: str
    scale: float = 1.0


LENGTH = Quantity(
    "acceptance length",
    ("sglang:spec_accept_length", "vllm:spec_decode_mean_accepted_length", "trtllm:spec_accept_length",
     "trtllm_spec_decode_acceptance_length"),
    (("vllm:spec_decode_num_accepted_tokens", "vllm:spec_decode_num_drafts"),),
    1.0, ("spec", "accept", "length"), "spec_decode_acceptance_length",
)  # fmt: skip
"""Tokens of a verify step, its own included."""
RATE = Quantity(
    "acceptance rate",
    ("sglang:spec_accept_rate", "vllm:spec_decode_draft_acceptance_rate", "trtllm:spec_accept_rate"),
    (("vllm:spec_decode_num_accepted_tokens", "vllm:spec_decode_num_draft_tokens"),
     ("trtllm_spec_decode_num_accepted_tokens", "trtllm_spec_decode_num_draft_tokens")),
    0.0, (), "spec_decode_draft_acceptance_rate", 0.01,
)  # fmt: skip
"""Accepted share of the draft tokens, from 0 to 1."""


def acceptance(run: FinishedRun, quantity: Quantity) -> Acceptance | None:
    """The quantity of the run's profiling phase; None where neither servers nor requests tell it.

    Raises:
        AiperfError: The summary or the file of server metrics can't be read.
    """
    for place, series in (("", _of_file(run)), (" in the summary", _of_summary(run))):
        if (found := _from_series(series, quantity)) is not None:
            return Acceptance(found.value, f"{found.origin} of the servers{place}")
    value = run.number(quantity.client)
    return None if value is None else Acceptance(value * quantity.scale, f"{quantity.client} of the requests")


_Series = Mapping[str, list[Mapping[str, Any]]]
"""By name, the statistics of each series."""


def _from_series(series: _Series, quantity: Quantity) -> Acceptance | None:
    for name in quantity.gauges:
        if (value := _mean(series.get(name, []))) is not None:
            return Acceptance(value, name)
    for part, whole in quantity.quotients:
        above, below = _sum(series, part), _sum(series, whole)
        if above is not None and below:
            return Acceptance(above / below + quantity.plus, f"{part} / {whole.partition(':')[2] or whole}")
    if quantity.words:
        for name, stats in series.items():
            if all(word in name.lower() for word in quantity.words) and (value := _mean(stats)) is not None:
                return Acceptance(value, name)
    return None


def _mean(stats: Iterable[Mapping[str, Any]]) -> float | None:
    values = [value for each in stats if (value := _number(each, "avg")) is not None]
    return math.fsum(values) / len(values) if values else None


def _sum(series: _Series, name: str) -> float | None:
    """The total over all series of the counter, under either of its names."""
    stats = series.get(name) or series.get(f"{name}{_TOTAL}", [])
    values = [value for each in stats if (value := _number(each, "total")) is not None]
    return math.fsum(values) if values else None


def _number(entry: object, statistic: str) -> float | None:
    value = entry.get(statistic) if isinstance(entry, Mapping) else None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return float(value)


def _of_file(run: FinishedRun) -> _Series:
    prefix = run.target.prefix
    path = run.directory / (f"{_FILE}_export.json" if prefix is None else f"{prefix}_{_FILE}.json")
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise AiperfError(f"{path} can't be read: {error}") from error
    metrics = document.get("metrics") if isinstance(document, dict) else None
    named = metrics.items() if isinstance(metrics, dict) else ()
    return {name: list(_stats(entry.get("series"))) for name, entry in named if isinstance(entry, dict)}


def _of_summary(run: FinishedRun) -> _Series:
    """Series of the profiling phase."""
    phases = {each.get("index") for each in _objects(run.summary.get("phases")) if each.get("kind") == "profiling"}
    found: dict[str, list[Mapping[str, Any]]] = {}
    for source in _objects(run.summary.get("telemetry")):
        for series in _objects(source.get("series")) if source.get("source") == _SOURCE else ():
            if series.get("phase") in phases and isinstance(series.get("stats"), dict):
                found.setdefault(str(series.get("name")), []).append(series["stats"])
    return found


def _stats(series: object) -> Iterator[Mapping[str, Any]]:
    return (each["stats"] for each in _objects(series) if isinstance(each.get("stats"), dict))


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


__all__ = ["LENGTH", "RATE", "Acceptance", "Quantity", "acceptance"]
