"""Definitions side by side: one run's stored columns, read each way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct

from aiperf import journal
from aiperf.columns import Floats, RecordBatch
from aiperf.definition import Definition, Readings
from aiperf.errors import BadJournal
from aiperf.reduce import batches
from aiperf.rundir import load_run
from aiperf.strangers import why


class Spread(Struct, frozen=True):
    """Of a duration, in ms."""

    mean: float
    p50: float
    p99: float


class Numbers(Struct, frozen=True):
    """A run by one definition; None is absent."""

    title: str
    source: str
    differs: str
    ttft_ms: Spread | None
    itl_ms: Spread | None
    tpot_ms: Spread | None
    requests_per_s: float | None
    output_tokens_per_s: float | None


def compare(directory: Path, definitions: Mapping[str, Definition]) -> tuple[dict[str, Numbers], dict[str, str]]:
    """The profiling phase of a run by each definition; and of those that failed, what they raised.

    Raises:
        BadJournal: The directory holds no run, or its columns are not written yet.
    """
    where = directory / "journal"
    plan, _ = load_run(where)
    if not journal.numbered(where, "columns-*.*"):
        raise BadJournal(f"{directory} holds no columns yet", f"make its results first: aiperf report {directory}")
    phase = next(each.index for each in plan.phases if each.kind == "profiling")
    seen: dict[str, list[Readings]] = {name: [] for name in definitions}
    failed: dict[str, str] = {}
    for batch in batches(where, plan):
        mine = batch.select(batch["phase"] == phase)
        for name in seen.keys() - failed.keys():
            try:
                seen[name].append(definitions[name].read(mine))
            except Exception as error:  # noqa: BLE001  # strangers' code
                failed[name] = why(error)
    return {name: _numbers(definitions[name], parts) for name, parts in seen.items() if name not in failed}, failed


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
    """Of values that weigh the same; a quantile lies between two of them."""
    values = np.concatenate([each for each, _ in parts] or [np.empty(0)])
    values = values[~np.isnan(values)] / 1e6
    if not len(values):
        return None
    p50, p99 = np.quantile(values, (0.5, 0.99)).tolist()
    return Spread(float(values.mean()), p50, p99)


def _occurring(parts: list[_Part]) -> Spread | None:
    """Of weighted values; a quantile is the first of them that so much of the weight doesn't exceed."""
    values = np.concatenate([each for each, _ in parts] or [np.empty(0)])
    weights = np.concatenate([np.ones(len(each)) if given is None else given for each, given in parts] or [np.empty(0)])
    there = ~np.isnan(values) & (weights > 0)
    values, weights = values[there] / 1e6, weights[there]
    if not len(values):
        return None
    order = np.argsort(values, kind="stable")
    values, upto = values[order], np.cumsum(weights[order])
    p50, p99 = (float(values[np.searchsorted(upto, share * upto[-1] * (1 - 1e-12))]) for share in (0.5, 0.99))
    return Spread(float((values * weights[order]).sum() / upto[-1]), p50, p99)
