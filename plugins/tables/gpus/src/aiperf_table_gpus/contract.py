"""The contract of tables with GPUs for this one.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.sdk.summary import SeriesSummary, SourceSummary, TargetSummary
from aiperf.sdk.verdict import Evidence
from aiperf.testing import TablesContract, sample_evidence
from aiperf_gpus.series import CODE, NVIDIA, Fold

from aiperf_table_gpus import GpuTables

URL = "http://node:9400/metrics"


def series(name: str, value: float, gpu: int = 0, source: str = "gpu_dcgm", **more: str) -> SeriesSummary:
    """A series of a GPU in the profiling phase with this mean, or increase; of a code, that it was seen."""
    quantity = NVIDIA[name]
    labels = {"gpu": str(gpu), "uuid": f"GPU-{gpu}", "model": "H100", "platform": "nvidia", "hostname": "node", **more}
    if quantity.fold is Fold.CODE:
        labels[CODE] = f"{value:.0f}"
        return SeriesSummary(source, 0, name, "info", "", labels, quantity.title, {"count": 3.0}, target=URL)
    middle = dict.fromkeys(("avg", "p50", "p90", "p99"), value)
    stats = {**middle, "min": value / 2, "max": 2 * value, "std": 0.0, "count": 3.0}
    if quantity.fold is Fold.GROWTH:
        stats = {"total": value, "rate": value / 2, "count": 3.0}
    return SeriesSummary(source, 0, name, quantity.fold.value, quantity.unit, labels, quantity.title, stats, target=URL)


def evidence(*all_series: SeriesSummary) -> Evidence:
    targets = TargetSummary(URL, 0.333, 3), TargetSummary("http://localhost:9401/metrics", 0.333)
    source = SourceSummary("gpu_dcgm", "aiperf-metric-gpu-dcgm", "0.1.0", 0.333, 3, 0, 0, all_series, targets=targets)
    return sample_evidence(telemetry=(source,))


class GpuTablesContract(TablesContract):
    tables = GpuTables
    cases = (
        (evidence(series("nvidia_power_usage", 300.0), series("nvidia_xid_errors", 31)), ("gpu_0", "gpu_totals")),
        (evidence(), ()),
    )
