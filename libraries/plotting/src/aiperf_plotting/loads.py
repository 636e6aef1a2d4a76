"""Loads of runs: in which order they are joined, and how many GPUs and repeats they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiperf import PlotRun
from aiperf_studies.confidence import confidence
from msgspec import Struct

LOADS = {"rate": "{:g} requests/s", "concurrency": "concurrency {:g}", "users": "{:g} users", "in_flight": "{:.3g} in flight"}
"""Measures of load and how they are written; those that were asked for come first."""

IN_FLIGHT = "in_flight"
"""The measure that was not asked for."""
_OLD_LOADS = {"rate": "request_rate", "concurrency": "concurrency", "users": "num_users"}


def by_load(runs: Sequence[PlotRun]) -> list[PlotRun]:
    """The runs in the order of their load; in the given order where their loads can't be compared."""
    unit = load_unit(runs)
    return list(runs) if unit is None else sorted(runs, key=lambda run: loads(run)[unit])


def load_unit(runs: Sequence[PlotRun]) -> str | None:
    """The measure of load that all of the runs have and that tells most of them apart; None where there is none.

    The requests in flight were not asked for: they count where nothing that was asked for differs.
    """
    measures = [loads(run) for run in runs]
    counts = {
        unit: len({measure[unit] for measure in measures}) for unit in LOADS if all(unit in measure for measure in measures)
    }
    asked = {unit: count for unit, count in counts.items() if unit != IN_FLIGHT and (count > 1 or len(runs) == 1)}
    return max(asked or counts, key=counts.__getitem__, default=None)


def loads(run: PlotRun) -> dict[str, float]:
    """The load that was asked for in the profiling phase, and the requests that were in flight, by measure."""
    configuration = run.summary.get("input_config", {})
    phases = configuration.get("phases", ())
    wanted: Mapping[str, Any] = next((phase for phase in phases if phase.get("kind", "profiling") == "profiling"), {})
    if not phases and isinstance(old := configuration.get("loadgen"), Mapping):  # of the reference before 0.12
        wanted = {unit: old.get(key) for unit, key in _OLD_LOADS.items()}
    asked = {unit: wanted.get(unit) for unit in LOADS} | {IN_FLIGHT: run.number("effective_concurrency")}
    return {unit: float(load) for unit, load in asked.items() if isinstance(load, int | float) and not isinstance(load, bool)}


def load_label(run: PlotRun, unit: str | None) -> str:
    """How the run is named beside its point: with its load, where that is known."""
    return run.label if unit is None else LOADS[unit].format(loads(run)[unit])


def grouped(runs: Sequence[PlotRun], *, by_model: bool = False) -> dict[str, list[PlotRun]]:
    """The runs by group, each group in the order of load; one group where no two runs share one.

    by_model: by model; runs without a group are so in any case, as no line leads from one model to another.
    """
    by_model = by_model or (not any(run.group for run in runs) and len(set(map(model, runs))) > 1)
    found: dict[str, list[PlotRun]] = {}
    for run in runs:
        found.setdefault(model(run) if by_model else run.group, []).append(run)
    if len(found) == len(runs) and not by_model:
        found = {"": list(runs)}
    return {group: by_load(members) for group, members in found.items()}


def model(run: PlotRun) -> str:
    """The run's models; "" where it names none."""
    return ", ".join(models(run))


def models(run: PlotRun) -> tuple[str, ...]:
    """Names of models: as this program and the reference's later versions write them, or its earlier ones."""
    configuration = run.summary.get("input_config", {})
    given = configuration.get("models")
    items = given.get("items", ()) if isinstance(given, Mapping) else given or ()
    named = items if isinstance(items, list | tuple) else [items]
    names = [item.get("name") if isinstance(item, Mapping) else item for item in named]
    endpoint = configuration.get("endpoint")
    if not names and isinstance(endpoint, Mapping):
        names = list(endpoint.get("model_names") or ())
    return tuple(str(name) for name in names if name)


def gpus(run: PlotRun) -> int:
    """GPUs that the run's telemetry names; 0 without telemetry."""
    endpoints = (run.summary.get("telemetry_data") or {}).get("endpoints", {})
    found = [(host, name, about) for host, entry in endpoints.items() for name, about in entry.get("gpus", {}).items()]
    return len({about.get("gpu_uuid") or f"{host} {name}" for host, name, about in found})


def first_repeat(run: PlotRun) -> PlotRun:
    """The run itself, or the first of its repeats: what a picture over time shows of it."""
    return run.parts()[0]


def first_of(runs: Sequence[PlotRun]) -> tuple[str, ...]:
    """A note where pictures over time show one repeat of several."""
    repeats = sorted({len(run.parts()) for run in runs})
    if repeats[-1:] in ([], [1]):
        return ()
    return (f"the first of {repeats[-1]} repeats" if len(repeats) == 1 else f"the first of up to {repeats[-1]} repeats",)


class RepeatInterval(Struct, frozen=True):
    """Mean of a statistic over repeats and its interval; *low* and *high* are the mean of a single run."""

    mean: float
    low: float
    high: float
    count: int


def interval(run: PlotRun, tag: str, statistic: str, level: float = 0.95, per: float = 1.0) -> RepeatInterval | None:
    """Student's interval of a statistic over the repeats of a run, divided by *per*; None where no repeat has it."""
    values = [value / per for part in run.parts() if (value := part.number(tag, statistic)) is not None]
    if not values:
        return None
    found = confidence(values, level)
    return RepeatInterval(found.mean, found.ci_low, found.ci_high, len(values))
