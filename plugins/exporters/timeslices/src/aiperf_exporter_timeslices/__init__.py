"""The metrics of each time slice, where ``--slice-duration`` asks for any."""

from __future__ import annotations

import csv
import math
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from aiperf import Artifact, Summary, SummaryExporter, atomic
from aiperf.sdk.exporter import visible
from aiperf.sdk.summary import STATISTICS, Slice


class _Slices(SummaryExporter):
    """A file about slices; not written where there are none, and one of an earlier run is taken away."""

    label: ClassVar[str]
    kind: ClassVar[str]
    early = True

    def planned(self) -> Collection[str]:
        return self.files if self.target.config.get("artifacts", {}).get("slice_duration") else ()

    def export(self, summary: Summary) -> Sequence[Artifact]:
        path = self.target.file(self.kind)
        if not summary.slices:
            path.unlink(missing_ok=True)
            return []
        with atomic(path) as draft:
            self.write(draft, summary)
        return [Artifact(self.label, path)]

    @abstractmethod
    def write(self, path: Path, summary: Summary) -> None:
        """The file; there are slices."""


class SlicesJson(_Slices):
    """``profile_export_aiperf_timeslices.json``."""

    label, kind = "Timeslice JSON Export", "timeslices.json"
    files = {kind: "{prefix_aiperf}_timeslices.json"}

    def write(self, path: Path, summary: Summary) -> None:
        slices = [entry(one, *sampled(summary, number)) for number, one in enumerate(summary.slices)]
        document = {"timeslices": slices, "input_config": summary.config}
        path.write_bytes(visible(msgspec.json.format(msgspec.json.encode(document), indent=2)) + b"\n")


class SlicesCsv(_Slices):
    """``profile_export_aiperf_timeslices.csv``."""

    label, kind = "Timeslice CSV Export", "timeslices.csv"
    files = {kind: "{prefix_aiperf}_timeslices.csv"}

    def write(self, path: Path, summary: Summary) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\r\n").writerows(
                table(summary.slices, self.target.statistics(STATISTICS))
            )


def sampled(summary: Summary, number: int) -> Iterator[dict[str, Any]]:
    """Telemetry of a slice, a series each."""
    for source in summary.telemetry:
        for series in source.slices[number] if number < len(source.slices) else ():
            yield {"source": source.name, **series.entry()}


def entry(one: Slice, *telemetry: dict[str, Any]) -> dict[str, Any]:
    """A slice as the reference writes it, then what is ours."""
    edges: dict[str, Any] = {"start_ns": one.start_ns, "end_ns": one.end_ns}
    if not one.complete:
        edges["is_complete"] = False
    metrics = {tag: found for tag in sorted(one.results) if (found := one.results[tag].entry())}
    ours = {"started": one.started, "outcomes": one.outcomes}
    return {**edges, **metrics, **ours, **({"telemetry": telemetry} if telemetry else {})}


def table(slices: Sequence[Slice], columns: Sequence[str] = STATISTICS) -> Iterator[list[str]]:
    """A row for each statistic, metrics sorted by tag, two decimals."""
    yield ["Timeslice", "Start_NS", "End_NS", "Metric", "Unit", "Stat", "Value"]
    for number, one in enumerate(slices):
        edges = [str(number), str(one.start_ns), str(one.end_ns)]
        for tag in sorted(one.results):
            result = one.results[tag]
            about = [*edges, result.title, result.unit]
            known = ((name, result.stats[name]) for name in columns if name in result.stats)
            yield from ([*about, name, f"{value:.2f}"] for name, value in known if math.isfinite(value))
