"""The console, the JSON and the CSV of one run say the same numbers."""

import csv
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from aiperf import Measurement, Result, Summary, Target
from aiperf.sdk.summary import STATISTICS, Arrivals, DeliveredLoad, PhaseSummary, Quantiles
from aiperf_exporter_console import Console
from aiperf_exporter_csv import SummaryCsv
from aiperf_exporter_json import SummaryJson

Written = tuple[dict[str, Any], str, list[list[str]]]
"""The JSON, what the console printed, and the rows of the CSV."""

_COLUMNS = ("avg", "min", "max", "p99", "p90", "p50", "std")


def _summary(seed: int) -> Summary:
    draw = random.Random(seed)

    def spread() -> Quantiles:
        return Quantiles(draw.random(), draw.uniform(1, 5), draw.uniform(5, 5000))

    results = {}
    for number in range(12):
        tag = f"metric_{number:02d}"
        scale = 10 ** draw.randint(-3, 6)
        names = (*STATISTICS, "count") if number % 3 else ("avg",)
        stats = {name: draw.random() * scale for name in names}
        unit = draw.choice(("ms", "tokens/sec", "requests"))
        results[tag] = Result(tag, f"Metric Number {number}", unit, stats, order=number)
    results["benchmark_duration"] = Result("benchmark_duration", "Benchmark Duration", "sec", {"avg": draw.random() * 100})
    return Summary(
        run_id="be4a9683ef6c", version="0", results=results, errors=(),
        phases=(PhaseSummary("profiling", "profiling", 0, 0, draw.randrange(10**12), {}, valid=draw.randrange(10**6)),),
        measurement=Measurement(
            "kernel", True, Arrivals(*(draw.randrange(10**5) for _ in range(10))), "trustworthy", (),
            spread(), spread(), spread(), worker_cpu_pct=(draw.random() * 100,),
        ),
        delivered=DeliveredLoad(draw.random() * 1e4, draw.random(), draw.randrange(9), draw.random() * 1e4, 0.01, 3.5),
        plugins=(), start_ns=0, end_ns=1, title="LLM Metrics", command="aiperf profile", config={}, valid=1,
    )  # fmt: skip


@pytest.fixture(params=range(5))
def written(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Written:
    summary = _summary(request.param)
    target = Target(tmp_path, verbose=True)
    for exporter in (Console, SummaryJson, SummaryCsv):
        exporter(target).export(summary)
    table = list(csv.reader((tmp_path / "profile_export_aiperf.csv").read_text().splitlines()))
    return json.loads((tmp_path / "profile_export_aiperf.json").read_text()), capsys.readouterr().out, table


def _cells(text: str) -> dict[str, list[str]]:
    """Cells of every table's rows, by the first."""
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if line.startswith("│")]
    return {row[0]: row[1:] for row in rows}


def _rounded(value: float) -> str:
    """With two decimals, and two digits where these would be 0."""
    return f"{value:,.2f}" if value == 0 or abs(value) > 0.005 else f"{value:.2g}"


def test_every_metric_on_the_console_is_the_jsons_rounded(written: Written) -> None:
    content, text, _ = written
    rows = _cells(text)
    for number in range(12):
        stats = content[f"metric_{number:02d}"]
        expected = [_rounded(stats[name]) if name in stats else "N/A" for name in _COLUMNS]
        assert rows[f"Metric Number {number} ({stats['unit']})"] == expected
    assert f"Benchmark Duration: {content['benchmark_duration']['avg']:,.2f} sec" in text


def test_every_number_of_the_measurement_is_the_jsons_rounded(written: Written) -> None:
    content, text, _ = written
    rows, measurement = _cells(text), content["measurement"]
    for name in ("client_error_ms", "schedule_slip_ms", "loop_lag_ms"):
        label = name.removesuffix("_ms").replace("_", " ").capitalize()
        assert rows[f"{label} (ms)"] == [f"{measurement[name][key]:,.3f}" for key in ("p50", "p99", "max")]
    for name, count in measurement["arrivals"].items():
        label = f"Arrivals {name.replace('_', ' ')}"
        if name in ("cut", "damaged", "unknown", "overflowed", "truncated", "released") and not count:  # an intact run
            assert label not in rows
        else:
            assert rows[label] == [f"{count:,}"]
    assert rows["Worker 0 CPU (%)"] == [f"{measurement['worker_cpu_pct'][0]:,.1f}"]


def test_load_and_phases_on_the_console_are_the_jsons(written: Written) -> None:
    content, text, _ = written
    load = content["delivered_load"]
    (line,) = (line for line in text.splitlines() if line.startswith("Delivered load"))
    assert re.findall(r"[\d,.]*\d", line.replace("p50", "").replace("p99", "")) == [
        f"{load['asked_rate']:,.2f}", f"{load['sent_rate']:,.2f}", f"{100 * load['on_time_share']:,.2f}",
        f"{load['late_p50_ms']:,.3f}", f"{load['late_p99_ms']:,.3f}", str(load["never_sent"]),
    ]  # fmt: skip
    (phase,) = content["phases"]
    assert f"{phase['valid']:,} succeeded, {phase['failed']:,} failed, {phase['duration']['avg']:,.2f} sec" in text


def test_every_cell_of_the_csv_is_the_jsons_rounded(written: Written) -> None:
    content, _, table = written
    found = {row[0]: row[1:] for row in table if row}
    for number in range(12):
        stats = content[f"metric_{number:02d}"]
        unit = "" if stats["unit"] == "requests" else f" ({stats['unit']})"
        names = STATISTICS if "p50" in stats else ("avg",)
        assert found[f"Metric Number {number}{unit}"] == [f"{stats[name]:.2f}" for name in names]
