"""A table of each GPU, and one of what energy and cost were divided by."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from aiperf import Evidence
from aiperf.sdk.summary import Summary
from aiperf.sdk.table import Cell, SummaryTable, TableColumn, Tables, WhenShown
from aiperf_gpus.energy import VENDORS, FleetEnergy, energy
from aiperf_gpus.fleet import Gpu, fleet
from aiperf_gpus.items import DASHBOARD
from aiperf_gpus.series import AMD, NVIDIA

from aiperf_table_gpus.codes import reasons
from aiperf_table_gpus.options import TableOptions

_STATISTICS = ("avg", "min", "max", "p99", "p90", "p50", "std")
_COLUMNS = (TableColumn("quantity"), TableColumn("unit"), *map(TableColumn, _STATISTICS))
_TOTALS = (TableColumn("quantity"), TableColumn("unit"), TableColumn("value"))
_COUNTED = (
    ("output tokens", "tokens", "total_osl"), ("input tokens", "tokens", "total_isl"),
    ("requests", "requests", "request_count"),
    ("cost of a million output tokens", "", "cost_per_million_output_tokens"),
    ("cost of a million tokens", "", "cost_per_million_total_tokens"), ("cost of a request", "", "cost_per_request"),
)  # fmt: skip
"""Rows of results of the run: for people, unit and tag."""
_ORDER = {name: place for place, name in enumerate([*NVIDIA, *AMD])}
_LOCAL = ("gpu_nvml", "gpu_amd")
"""Sources of this machine's GPUs."""
_HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # no address to listen on


class GpuTables(Tables[TableOptions]):
    """Shown with ``--gpu-telemetry``, else with ``-v``; files have them always."""

    def tables(self, evidence: Evidence) -> Iterator[SummaryTable]:
        summary, phase = evidence.summary, evidence.phase.index
        series = [each for source in summary.telemetry for each in source.series if each.phase == phase]
        gpus = fleet(series)
        asked = self.options is not None and self.options.gpu_telemetry is not None
        shown = WhenShown.ALWAYS if asked else WhenShown.VERBOSE
        for number, gpu in enumerate(gpus):
            yield SummaryTable(f"gpu_{number}", gpu.title, _COLUMNS, tuple(_rows(gpu)), tuple(_seen(gpu)), shown)
        if gpus:
            yield self._totals(evidence, gpus, shown)

    def _totals(self, evidence: Evidence, gpus: list[Gpu], shown: WhenShown) -> SummaryTable:
        summary = evidence.summary
        (phase,) = (each for each in summary.phases if each.index == evidence.phase.index)
        seconds = (phase.end_ns - phase.start_ns) / 1e9
        rows: list[tuple[Cell, ...]] = [("length of the phase", "s", seconds)]
        notes = [*_exporters(summary), *_elsewhere(evidence, gpus)]
        ui = evidence.plan.plugins.ui
        if self.options is not None and self.options.items.dashboard and (ui is None or ui.name != DASHBOARD):
            notes.append("The dashboard of GPUs is a part of --ui dashboard; without it these tables come at the end.")
        for vendor in VENDORS:
            found = energy(gpus, vendor, seconds)
            if found is not None:
                rows += [(f"{vendor} GPUs", "", len(found.gpus)), (f"energy of {vendor} GPUs", "J", found.joules)]
                notes += _notes(found)
        results = summary.results
        rows += [(name, unit, results[tag].stats.get("avg")) for name, unit, tag in _COUNTED if tag in results]
        return SummaryTable("gpu_totals", "GPUs in all", _TOTALS, tuple(rows), tuple(notes), shown)


def _rows(gpu: Gpu) -> Iterator[tuple[Cell, ...]]:
    """A row a series, in the order of the reference; a counter has its increase under ``avg``."""
    for name in sorted(gpu.series, key=lambda name: (_ORDER.get(name, len(_ORDER)), name)):
        series = gpu.series[name]
        statistics = {**series.stats, **({"avg": series.stats["total"]} if "total" in series.stats else {})}
        yield series.help or name, series.unit, *(statistics.get(each) for each in _STATISTICS)


def _seen(gpu: Gpu) -> Iterator[str]:
    for name, codes in gpu.codes.items():
        if name == "nvidia_throttle_reasons":
            if text := reasons(codes):
                yield f"Clocks were held down: {text}."
        elif errors := [str(code) for code in codes if code]:
            yield f"{NVIDIA[name].title if name in NVIDIA else name} seen: {', '.join(errors)}."
    again = [series.help or series.name for series in gpu.series.values() if series.stats.get("resets")]
    if again:
        yield f"Began again in the phase, as after a reset of the GPU: {', '.join(again)}."


def _exporters(summary: Summary) -> Iterator[str]:
    """Which exporters answered."""
    targets = [target for source in summary.telemetry if source.name == "gpu_dcgm" for target in source.targets]
    if targets:
        answered = sum(1 for target in targets if target.samples)
        marks = ", ".join(f"{'✔' if target.samples else '✘'} {target.name}" for target in targets)
        yield f"{answered} of {len(targets)} exporters answered: {marks}"


def _elsewhere(evidence: Evidence, gpus: list[Gpu]) -> Iterator[str]:
    """Where the GPUs are this machine's, and the server is on another one."""
    hosts = {urlsplit(url).hostname or "" for url in evidence.plan.target.urls} - {*_HERE, ""}
    if hosts and any(gpu.source in _LOCAL for gpu in gpus):
        yield f"These are the GPUs of this machine, and the server is at {', '.join(sorted(hosts))}."


def _notes(found: FleetEnergy) -> Iterator[str]:
    def named(gpus: tuple[Gpu, ...]) -> str:
        return ", ".join(gpu.title for gpu in gpus)

    if found.estimated:
        yield f"Energy from mean power, for want of a counter: {named(found.estimated)}."
    if found.unknown:
        yield f"Neither power nor energy, and not in the total: {named(found.unknown)}."
    if found.partial:
        parts = ", ".join(f"{gpu.title} ({span_s:.1f} of {found.seconds:.1f} s)" for gpu, span_s in found.partial)
        yield f"Energy of a part of the phase, and more was drawn: {parts}."
    if found.idle:
        yield f"Idle all the time, and in the total: {named(found.idle)}."


__all__ = ["GpuTables"]
