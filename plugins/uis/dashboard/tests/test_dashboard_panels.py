"""What each pane says of a snapshot."""

from __future__ import annotations

import msgspec
import pytest
from aiperf.sdk.snapshot import CellProgress, LiveStatistics, Snapshot
from aiperf_ui_dashboard import panels
from aiperf_ui_dashboard.history import History
from aiperf_ui_dashboard.lines import Line, cells, plain
from aiperf_ui_dashboard.testing import CANARY, LITERAL, REASON, snapshot

EMPTY = Snapshot("warmup", "warmup", 0.0, 0, 0, 0, 0, 0.0)
EXTREME = snapshot(
    5, phase=CANARY * 20, rate=123_456_789.5, eta_s=9e8, share=7.5, unreached_s=12.0, cell=CellProgress(3, 9, CANARY),
    metrics=tuple(
        msgspec.structs.replace(each, title=CANARY, unit=CANARY, so_far=LiveStatistics(1e300, 1e-300, -5.0, 0.0))
        for each in snapshot(5).metrics
    ),
)  # fmt: skip


def text(lines: list[Line]) -> str:
    return "\n".join(plain(line).rstrip() for line in lines)


def history(count: int = 300) -> History:
    made = History()
    for number in range(count):
        made.add(snapshot(number))
    return made


@pytest.mark.parametrize("shown", [EMPTY, snapshot(200), EXTREME], ids=["empty", "ordinary", "extreme"])
@pytest.mark.parametrize("width", [1, 7, 10, 30, 60, 80, 132, 200])
def test_no_line_is_wider_than_its_pane(shown: Snapshot, width: int) -> None:
    lines = panels.header(shown, LITERAL, None, width, unicode=True)
    for pane in (panels.progress, panels.metrics, panels.failures, panels.goodput, panels.workers):
        lines = [*lines, *pane(shown, width)]
    lines += panels.failures(shown, width, whole=True)
    lines += panels.telemetry(shown.series, 3, width)
    lines += panels.charts(history(5), width, 9, unicode=True)
    assert max(cells(plain(line)) for line in lines) <= width
    assert all(plain(line).isprintable() for line in lines)


def test_progress_has_counts_rates_and_the_phases() -> None:
    said = text(panels.progress(snapshot(200, cell=CellProgress(3, 9, "concurrency_4", 60.0)), 80))
    words = (
        "4,000 of 24,000", "200 (5.0 %)", "40.00 req/s", "Rate 10 s    39.80 req/s", "Late      3", "Rec. ETA  0:00",
        "run 3 of 9  concurrency_4  1:00 left", "warmup     Complete   100 %",
        "profiling  Profiling   17 %     1:40  8:20  4,000",
    )  # fmt: skip
    assert [each for each in words if each not in said] == [], said


def test_the_header_begins_with_the_place_in_a_study() -> None:
    placed = snapshot(20, cell=CellProgress(3, 9, "concurrency_4/trial_0002", 130.0))
    for width in (60, 120):
        first, _ = panels.header(placed, "llama  chat", None, width, unicode=True)
        assert plain(first).startswith("aiperf  run 3 of 9  concurrency_4/trial_000")


def test_the_header_says_when_no_connection_is_opened() -> None:
    first, second = panels.header(snapshot(200, unreached_s=13.0), "m  chat", None, 80, unicode=False)
    assert plain(first).startswith("aiperf  m  chat ") and plain(first).endswith("  no connection for 0:13")
    assert plain(second).endswith("  17 %  elapsed 1:40  ETA 8:20") and "profiling  ###" in plain(second)


@pytest.mark.parametrize(
    ("width", "header"),
    [
        (132, "avg     min     max     p99     p90     p50     std        avg     p99     p50"),
        (80, "avg     p99     p90     p50        avg     p99     p50"),
        (60, "p99     p50        p99     p50"),
    ],
)
def test_metrics_name_statistic_and_window_at_each_width(width: int, header: str) -> None:
    windows, names, first, *_ = map(plain, panels.metrics(snapshot(200), width))
    assert windows.split() == ["phase", "so", "far", "last", "10", "s"]
    assert names.endswith(header) and names.startswith("Metric (unit)")
    assert first.startswith("Time to First Token (ms)" if width > 100 else "TTFT (ms)")


def test_headlines_are_the_first_metrics() -> None:
    made = [msgspec.structs.replace(each, headline={"ITL": 1, "Latency": 0}.get(each.short)) for each in snapshot(200).metrics]
    lines = list(map(plain, panels.metrics(snapshot(200, metrics=tuple(made)), 80)))
    assert [line.split()[0] for line in lines[2:6]] == ["Latency", "ITL", "TTFT", "TTST"]


def test_a_metric_that_is_one_number_shows_it_once_a_window() -> None:
    line = next(line for line in map(plain, panels.metrics(snapshot(200), 80)) if line.startswith("TPS (tokens/s)"))
    assert line.split()[2:] == ["2,000", "1,810"]


def test_failures_have_kind_share_and_first_text() -> None:
    said = text(panels.failures(snapshot(9), 120))
    assert "9  47.4 %  –     Timeout        no answer within 30 s" in said
    assert f"3  15.8 %  503   HTTPError      {LITERAL}" in said
    assert "7  36.8 %        further kinds" in said
    assert text(panels.failures(snapshot(9), 60, whole=True)).count("within") == 4, "the whole text stands below each other"


def test_goodput_is_told_for_each_objective_beside_the_verdict() -> None:
    said = text(panels.goodput(snapshot(200), 120))
    rows = {line.split("  ")[0]: line.split("  ", 1)[1].split() for line in said.splitlines()[1:4]}
    assert rows["TTFT ≤ 200 ms"] == ["100.0", "%", "100.0", "%", "3,800", "3,800", "380", "380"]
    assert rows["ITL ≤ 20 ms"] == rows["all objectives"] == ["80.0", "%", "78.9", "%", "3,040", "3,800", "300", "380"]
    assert "Measurement so far: suspect  at 1:40" in said and REASON in said
    assert "slip 0.2100 ms, reading 0.0500 ms" in said
    assert "name them with --goodput" in text(panels.goodput(EMPTY, 80)) and "not judged yet" in text(panels.goodput(EMPTY, 80))


def test_workers_are_counted_by_status_and_listed() -> None:
    lines = list(map(plain, panels.workers(snapshot(200), 80)))
    assert lines[0].split() == ["1", "healthy", "1", "high", "load", "1", "error", "1", "idle", "1", "stale"]
    assert lines[3].split() == ["1", "high", "load", "4", "950", "50", "13", "%", "50", "MB", "1.8", "MB", "4001"]


def test_the_site_of_a_worker_stands_beside_its_number() -> None:
    workers = tuple(msgspec.structs.replace(each, site=("attic", "barn")[each.index % 2]) for each in snapshot(200).workers)
    lines = list(map(plain, panels.workers(snapshot(200, workers=workers), 80)))
    assert lines[1].split()[:3] == ["#", "site", "status"]
    assert lines[3].split()[:3] == ["1", "barn", "high"] and lines[4].split()[:3] == ["2", "attic", "idle"]


def test_telemetry_says_what_the_number_of_a_series_is() -> None:
    series = [each for each in snapshot(200).series if each.source == "acme"]
    lines = list(map(plain, panels.telemetry(series, 12, 120)))
    assert lines[1] == "target http://127.0.0.1:8000/metrics"
    assert lines[2].split() == ["acme:number_01", "3.000", "requests", "increase/s", "gpu=1"]
    assert lines[-1] == "12 further series are not shown."


def test_curves_move_in_columns_of_equal_time() -> None:
    made = history(241)
    step_s, curves = made.columns(60)
    assert step_s == 2.0 and all(len(values) == 60 for values in curves)
    assert {round(value) for value in curves[0] if value is not None} == {40}
    before = made.columns(60)
    made.add(snapshot(241))
    assert made.columns(60) == before, "the newest column isn't full yet"


def test_rates_of_a_phase_begin_with_it() -> None:
    made = History()
    made.add(snapshot(10, elapsed_s=0.5, completed=30, errors=0))
    made.add(snapshot(11, phase="next", elapsed_s=0.25, completed=2, errors=0))
    made.add(snapshot(12, phase="next", elapsed_s=0.75, completed=5, errors=0))
    made.add(snapshot(14, phase="next", elapsed_s=1.75, completed=25, errors=0))
    assert [value for value in made.columns(240)[1][0] if value is not None] == [60.0, 8.0, 6.0]


def test_curves_of_rates_sum_to_all_requests() -> None:
    made = history(0)
    for number in range(1, 201):
        made.add(snapshot(number))
    made.add(snapshot(202, completed=snapshot(200).completed, errors=snapshot(200).errors))
    step_s, curves = made.columns(240)
    last = snapshot(200)
    assert sum(value * step_s for value in curves[0] if value is not None) == pytest.approx(last.completed + last.errors)
    assert sum(value * step_s for value in curves[2] if value is not None) == pytest.approx(last.failed)
