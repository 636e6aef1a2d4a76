"""Samples of GPUs and servers beside the requests: gauges as they are, counters as rates."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from aiperf import PlotRun
from aiperf.sdk.columns import Floats
from aiperf.sdk.plot import TelemetrySeries
from msgspec import Struct

from aiperf_plotting.times import since

_TOLD = ("gpu", "gpu_index", "mig", "engine", "hostname", "model_name", "pod_name")
"""Labels that tell series apart, where they differ."""


class Sampled(Struct, frozen=True):
    """A series over time.  at_s: since the first request.  values: of a counter its rate per second."""

    name: str
    unit: str
    at_s: Floats
    values: Floats


def sampled(run: PlotRun, metric: str, begin_ns: float) -> list[Sampled]:
    """The series of the run called *metric*, each named by the labels in which it differs from the others."""
    return named_series([series for series in run.telemetry() if series.name == metric], begin_ns)


def named_series(found: Iterable[TelemetrySeries], begin_ns: float) -> list[Sampled]:
    """The series, named by what tells them apart; those without two samples of a counter, or with none, are left out."""
    every = list(found)
    names = [{"": series.name, "target": series.target or series.source, **series.labels} for series in every]
    differing = [
        key for key in dict.fromkeys(key for each in names for key in each)
        if len({each.get(key, "") for each in names}) > 1 and (key in ("", "target", *_TOLD) or len(every) > len(_TOLD))
    ]  # fmt: skip
    made: dict[str, Sampled] = {}
    for series, about in zip(every, names, strict=True):
        label = ", ".join(f"{key} {about[key]}".strip() for key in differing if key in about) or series.name
        at, values = rated(series)
        if not len(at):
            continue
        while label in made:
            label += " "
        unit = f"{series.unit}/s" if series.kind == "counter" else series.unit
        made[label] = Sampled(label, unit, since(at, begin_ns), values)
    return list(made.values())


def rated(series: TelemetrySeries) -> tuple[Floats, Floats]:
    """Instants in ns and values; of a counter the rate between two samples, at the later one, without steps back (resets)."""
    at, values = series.at_ns.astype(np.float64), series.values
    rows = np.flatnonzero(np.isfinite(values))
    at, values = at[rows], values[rows]
    order = np.argsort(at, kind="stable")
    at, values = at[order], values[order]
    if series.kind != "counter":
        return at, values
    gaps, steps = np.diff(at) / 1e9, np.diff(values)
    rows = np.flatnonzero((gaps > 0) & (steps >= 0))
    return at[1:][rows], steps[rows] / gaps[rows]
