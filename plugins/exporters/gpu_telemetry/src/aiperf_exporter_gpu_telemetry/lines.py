"""The samples of GPUs, from the journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf.parts.samples import read_samples, sample_files
from aiperf.sdk.series import Sample, SeriesHeader, SourceHeader, whole_samples
from aiperf_gpus import SOURCES
from aiperf_gpus.series import CODE

_NAMES = {
    "uuid": "gpu_uuid", "model": "gpu_model_name", "pci_bus_id": "pci_bus_id", "device": "device", "hostname": "hostname",
    "namespace": "namespace", "pod": "pod_name", "mig": "mig_instance",
}  # fmt: skip
"""Labels, and their keys in the file, in its order behind the index."""


def lines(journal: Path) -> Iterator[dict[str, Any]]:
    """A line for each GPU of each sample, in the order of time of each source."""
    for path in sample_files(journal):
        yield from _of_source(path)


def _of_source(path: Path) -> Iterator[dict[str, Any]]:
    targets: list[str] = []
    series: dict[int, SeriesHeader] = {}
    gpus: dict[int, tuple[tuple[str, str], ...]] = {}
    for line in whole_samples(read_samples(path)):
        match line:
            case SourceHeader(ref):
                if ref.name not in SOURCES:
                    return
                targets = [target.name for target in line.targets] or [ref.name]
            case SeriesHeader():
                series[line.id] = line
                gpus[line.id] = tuple(sorted((name, text) for name, text in line.labels.items() if name != CODE))
            case Sample():
                by_gpu: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
                for number, value in line.values.items():
                    known = series[number]
                    code = known.labels.get(CODE)
                    if not isinstance(value, list):
                        by_gpu.setdefault(gpus[number], {})[known.name] = value if code is None else float(code)
                for labels, values in by_gpu.items():
                    yield _line(dict(labels), line, targets[line.target], values)


def _line(labels: dict[str, str], sample: Sample, target: str, values: dict[str, float]) -> dict[str, Any]:
    index = labels.get("gpu", "")
    about = {"gpu_index": int(index) if index.isdecimal() else 0}
    known = {ours: labels[name] for name, ours in _NAMES.items() if name in labels}
    return {
        **about, **known, "platform": labels.get("platform", "unknown"), "timestamp_ns": sample.moment.wall_ns,
        "telemetry_source_url": target, "telemetry_data": values,
    }  # fmt: skip


__all__ = ["lines"]
