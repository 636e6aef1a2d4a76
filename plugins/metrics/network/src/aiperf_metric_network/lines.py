"""Each probe of the network, a line of JSON: ``profile_export_network_latency.jsonl``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from aiperf import Artifact, Summary, SummaryExporter, atomic
from aiperf.sdk.exporter import visible

from aiperf_metric_network.options import NetworkOptions

_KIND = "network_latency.jsonl"
_NS_PER_MS = 1e6


class ProbeLines(SummaryExporter[NetworkOptions]):
    """Written where the round trip was measured; a file of an earlier run is taken away where not."""

    files = {_KIND: "{prefix}_network_latency.jsonl"}

    def planned(self) -> Collection[str]:
        return self.files if self.options is not None and self.options.probing else ()

    def export(self, summary: Summary) -> Sequence[Artifact]:
        path = self.target.file(_KIND)
        if self.target.journal is None or not any(source.name == "network" for source in summary.telemetry):
            path.unlink(missing_ok=True)
            return []
        with atomic(path) as draft, draft.open("wb") as file:
            file.writelines(visible(msgspec.json.encode(line)) + b"\n" for line in probe_lines(self.target.journal))
        return [Artifact("Network Latency JSONL Export", path)]


def probe_lines(journal: Path) -> Iterator[dict[str, Any]]:
    """A line for each probe, in the order of time of each server."""
    from aiperf.parts.samples import read_samples, sample_files
    from aiperf.sdk.series import Sample, SeriesHeader, SourceHeader, whole_samples

    for path in sample_files(journal):
        series: dict[int, SeriesHeader] = {}
        for line in whole_samples(read_samples(path)):
            match line:
                case SourceHeader(ref):
                    if ref.name != "network":
                        break
                case SeriesHeader():
                    series[line.id] = line
                case Sample():
                    for number, value in line.values.items():
                        if isinstance(value, int | float):
                            yield _line(series[number], value, line.moment.wall_ns)


def _line(series: Any, value: float, wall_ns: int) -> dict[str, Any]:
    labels = series.labels
    about = {
        "timestamp_ns": wall_ns, "target_url": labels["url"], "target_host": labels["host"],
        "target_port": int(labels["port"]), "probe_type": "tcp_connect",
    }  # fmt: skip
    if "error" in labels:
        return {**about, "success": False, "error": labels["error"]}
    return {**about, "rtt_ns": round(value * _NS_PER_MS), "success": True}


__all__ = ["ProbeLines", "probe_lines"]
