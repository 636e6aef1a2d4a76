"""The run's metrics as two tables of comma-separated values, and a third one of its GPUs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence

from aiperf import Artifact, Result, Summary, SummaryExporter, atomic
from aiperf.sdk.summary import STATISTICS
from aiperf_gpus import csv_rows, has_gpus

_UNITLESS = ("count", "requests")


class SummaryCsv(SummaryExporter):
    """``profile_export_aiperf.csv``: metrics with percentiles, metrics with one value, intervals, why answers ended, GPUs.

    An empty line stands between them, and two before GPUs.
    """

    files = {"aiperf.csv": "{prefix_aiperf}.csv"}
    early = True

    def export(self, summary: Summary) -> Sequence[Artifact]:
        path = self.target.file("aiperf.csv")
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\r\n").writerows(table(summary, self.target.statistics(STATISTICS)))
        with atomic(path) as draft:
            draft.write_bytes(text.getvalue().encode())
        return [Artifact("CSV Export", path)]


def table(summary: Summary, columns: Sequence[str] = STATISTICS) -> Iterator[list[str]]:
    """The file's rows; a section that has none is left out.  *columns*: statistics of metrics with percentiles."""
    results = [summary.results[tag] for tag in sorted(summary.results) if summary.results[tag].stats]
    spread = [result for result in results if result.distribution]
    single = [result for result in results if not result.distribution]
    if spread:
        yield ["Metric", *columns]
        yield from ([name(result), *(cell(result.stats.get(key)) for key in columns)] for result in spread)
    if spread and single:
        yield []
    if single:
        yield ["Metric", "Value"]
        yield from ([name(result), cell(result.stats.get("avg"))] for result in single)
    if intervals := [(result, result.interval) for result in results if result.interval is not None]:
        yield []
        yield ["Metric", "ci_low", "ci_high", "ci_level"]
        yield from ([name(result), f"{one.low:.4f}", f"{one.high:.4f}", f"{one.level:g}"] for result, one in intervals)
    if summary.finish_reasons:
        if results:
            yield []
        yield ["Finish Reason", "Requests"]
        yield from ([reason, str(count)] for reason, count in summary.finish_reasons.items())
    if has_gpus(summary) and (gpus := list(csv_rows(summary))):
        yield from ([], [], *gpus)


def name(result: Result) -> str:
    return result.title if result.unit in _UNITLESS else f"{result.title} ({result.unit})"


def cell(value: float | None) -> str:
    """Integers plain, floats with two decimals; empty for what is missing or not finite."""
    if value is None or not math.isfinite(value):
        return ""
    return str(value) if isinstance(value, int) else f"{value:.2f}"
