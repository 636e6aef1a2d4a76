"""Definitions side by side: one run's stored columns, read each way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from aiperf import Definition, Readings, RecordBatch
from aiperf.sdk.columns import Floats
from aiperf_results import open_run
from msgspec import Struct


class Spread(Struct, frozen=True):
    """Statistics of a duration, in ms."""

    mean: float
    p50: float
    p99: float


class Numbers(Struct, frozen=True):
    """The numbers of a run by one definition; None is absent."""

    title: str
    version: str
    source: str
    differs: str
    ttft_ms: Spread | None
    itl_ms: Spread | None
    tpot_ms: Spread | None
    requests_per_s: float | None
    output_tokens_per_s: float | None


def compare(directory: Path, definitions: Mapping[str, Definition]) -> tuple[dict[str, Numbers], dict[str, str]]:
    """The profiling phase of a run by each definition, and the error of each definition that failed.

    Raises:
        BadJournal: The directory holds no run, or its columns are not written yet.
    """
    run = open_run(directory)
    phase = next(phase.index for phase in run.plan.load.phases if phase.kind == "profiling")
    readings: dict[str, list[Readings]] = {name: [] for name in definitions}
    failed: dict[str, str] = {}
    for batch in run.batches():
        profiling = batch.select(batch["phase"] == phase)
        for name in readings.keys() - failed.keys():
            try:
                readings[name].append(definitions[name].read(profiling))
            except Exception as error:  # noqa: BLE001  # strangers' code
                failed[name] = f"{type(error).__name__}: {error}"
    return {name: _numbers(definitions[name], parts) for name, parts in readings.items() if name not in failed}, failed


def numbers(definition: Definition, batch: RecordBatch) -> Numbers:
    """One batch by one definition."""
    return _numbers(definition, [definition.read(batch)])


def _numbers(definition: Definition, parts: list[Readings]) -> Numbers:
    begins = [part.begin_ns for part in parts if part.begin_ns == part.begin_ns]
    ends = [part.end_ns for part in parts if part.end_ns == part.end_ns]
    span_s = (max(ends) - min(begins)) / 1e9 if begins and ends else 0.0
    spread = _mixed if definition.quantiles == "linear" else _occurring
    return Numbers(
        definition.title,
        definition.version,
        definition.source,
        definition.differs,
        spread([(part.ttft_ns, None) for part in parts]),
        spread([(part.itl_ns, part.itl_weights) for part in parts]),
        spread([(part.tpot_ns, part.tpot_weights) for part in parts]),
        sum(part.requests for part in parts) / span_s if span_s > 0 else None,
        sum(part.tokens for part in parts) / span_s if span_s > 0 else None,
    )


_Part = tuple[Floats, Floats | None]
"""Values in ns, and their weights."""


def _mixed(parts: list[_Part]) -> Spread | None:
    """Statistics of values of equal weight; a quantile lies between two values."""
    values = np.concatenate([values for values, _ in parts] or [np.empty(0)])
    values = values[~np.isnan(values)] / 1e6
    if not len(values):
        return None
    p50, p99 = np.quantile(values, (0.5, 0.99)).tolist()
    return Spread(float(values.mean()), p50, p99)


def _occurring(parts: list[_Part]) -> Spread | None:
    """Statistics of weighted values; a quantile is the first value that reaches its share of the weight."""
    values = np.concatenate([values for values, _ in parts] or [np.empty(0)])
    weights = np.concatenate([np.ones(len(values)) if given is None else given for values, given in parts] or [np.empty(0)])
    there = ~np.isnan(values) & (weights > 0)
    values, weights = values[there] / 1e6, weights[there]
    if not len(values):
        return None
    order = np.argsort(values, kind="stable")
    values, upto = values[order], np.cumsum(weights[order])
    p50, p99 = (float(values[np.searchsorted(upto, share * upto[-1] * (1 - 1e-12))]) for share in (0.5, 0.99))
    return Spread(float((values * weights[order]).sum() / upto[-1]), p50, p99)
