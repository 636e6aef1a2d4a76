import io
import math
import os
import re
import shutil
from pathlib import Path

import pytest
from aiperf import ErrorDetails, Measurement, Result, Summary, Target
from aiperf.sdk.engine import SiteClock
from aiperf.sdk.scenario import ScenarioVerdict
from aiperf.sdk.summary import (
    Arrivals,
    DeliveredLoad,
    ErrorCount,
    PhaseSummary,
    PluginUsed,
    Quantiles,
    SeriesSummary,
    SourceSummary,
    UrlSummary,
)
from aiperf_exporter_console import Console, say
from aiperf_exporter_console.report import report
from aiperf_exporter_console.table import BOX, PLAIN, Look, cells_of, wrap
from msgspec.structs import replace

SPREAD = {
    "avg": 1528.871, "min": 3.3548, "max": 12380.02, "sum": 92.51, "p1": 3.4, "p5": 3.58, "p10": 3.65, "p25": 3.92,
    "p50": 4.1843, "p75": 4.63, "p90": 7.085, "p95": 7.17, "p99": 7.196, "std": 1.1975, "count": 20,
}  # fmt: skip


def result(tag: str, title: str, unit: str, stats: dict, order: int | None, group: str = "") -> Result:
    return Result(tag, title, unit, stats, order=order, group=group)


SUMMARY = Summary(
    run_id="be4a9683ef6c",
    version="0.1.0",
    results={
        "request_count": result("request_count", "Request Count", "requests", {"avg": 20.0}, 1100),
        "benchmark_duration": result("benchmark_duration", "Benchmark Duration", "sec", {"avg": 0.4337}, None),
        "output_token_throughput_per_user": result(
            "output_token_throughput_per_user", "Output Token Throughput Per User", "tokens/sec/user", SPREAD, 500
        ),
        "time_to_first_token": result("time_to_first_token", "Time to First Token", "ms", SPREAD, 100),
        "effective_concurrency": result(
            "effective_concurrency", "Effective Concurrency", "requests", {"avg": 3.72}, 1, "effective"
        ),
    },
    errors=(
        ErrorCount(ErrorDetails('{"error": "limit"}', "Too Many Requests", 429), 1204),
        ErrorCount(ErrorDetails("gone"), 1),
    ),
    phases=(
        PhaseSummary("warmup", "warmup", 0, 0, 50_000_000, {}, valid=2),
        PhaseSummary("load", "profiling", 1, 0, 1_234_500_000, {}, valid=20, failed=1205),
    ),
    measurement=Measurement(
        "kernel", True, Arrivals(1225, 1225, 3, 20, 1205), "trustworthy", (),
        Quantiles(0.0104, 0.02, 0.3), Quantiles(0.002, 0.4, 1.5), Quantiles(0.1, 0.2, 0.25), 7,
        worker_cpu_pct=(12.54, 3.0), notes=("A note.",), reader="compiled", reader_pauses=2, merged_first=1,
        first_stamp_share=0.99999, chunk_stamp_share=0.9954,
    ),
    delivered=DeliveredLoad(19.984, 0.9951, 4, 20.0, 0.0123, 0.4),
    plugins=(PluginUsed("endpoints", "chat", "aiperf-endpoint-chat", "0.1.0"),),
    start_ns=0,
    end_ns=1,
    title="LLM Metrics",
    command="aiperf profile  -m mock",
    config={},
    valid=20,
    failed=1205,
)  # fmt: skip


def render(summary: Summary, width: int, *, verbose: bool = False, look: Look | None = None) -> str:
    return report(summary, look or Look(BOX), width, verbose=verbose)


def grid(text: str, title: str) -> list[list[str]]:
    """The cells of the table of this title, wrapped cells joined."""
    lines = text.split(f"{title}\n", 1)[1].splitlines()[3:]
    rows: list[list[str]] = []
    for line in lines:
        if not line.startswith("│"):
            break
        cells = [cell.strip() for cell in line.strip("│").split("│")]
        if any(cells[1:]):
            rows.append(cells)
        else:
            rows[-1][0] += f" {cells[0]}"
    return rows


def test_the_report_at_140_columns_is_as_it_always_was():
    golden = Path(__file__).parent / "golden" / "report-140.txt"
    assert render(SUMMARY, 140) == golden.read_text(encoding="utf-8")


def test_the_report_at_80_columns_is_as_it_always_was():
    golden = Path(__file__).parent / "golden" / "report-80.txt"
    assert render(SUMMARY, 80, look=Look(PLAIN), verbose=True) == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [50, 60, 80, 100, 140, 200])
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_wider_than_asked(width, verbose):
    lines = render(SUMMARY, width, verbose=verbose).splitlines()
    assert max(cells_of(line) for line in lines if not line.startswith("CLI Command")) <= width


@pytest.mark.parametrize("width", [50, 60, 80, 140])
def test_every_number_of_the_tables_is_the_summarys_rounded(width):
    text = render(SUMMARY, width)
    header = re.search(r"│ Metric +│(.*)│\n", text.split("LLM Metrics\n")[1])
    assert header is not None
    columns = header[1].replace(" ", "").split("│")
    rows = grid(text, " LLM Metrics")
    titles = {f"{one.title} ({one.unit})": one for one in SUMMARY.results.values()}
    assert [row[0] for row in rows] == [
        "Time to First Token (ms)", "Output Token Throughput Per User (tokens/sec/user)", "Request Count (requests)"
    ]  # fmt: skip
    for label, *cells in rows:
        stats = titles[label].stats
        assert cells == [f"{stats[column]:,.2f}" if column in stats else "N/A" for column in columns]


def test_a_narrow_table_keeps_what_matters_and_says_what_it_left_out():
    text = render(SUMMARY, 60)
    assert "Metric" in text and "p99" in text.split("LLM Metrics\n")[1].splitlines()[1]
    assert re.search(r"Too narrow for .*std.*: see the JSON\.", text)
    assert "Too narrow" not in render(SUMMARY, 140)


def test_a_narrow_table_leaves_out_what_it_has_no_number_of():
    lame = result("adj_lame", "Lame", "ms", {"min": 3.0, "count": 9}, 3)
    shown = with_results(result("ttft", "TTFT", "ms", SPREAD, 1), lame)
    assert [row[0] for row in grid(render(shown, 50), "LLM Metrics")] == ["TTFT (ms)"]
    assert [row[0] for row in grid(render(shown, 140), "LLM Metrics")] == ["TTFT (ms)", "Lame (ms)"]


def test_latency_comes_first_groups_behind_it_and_unordered_metrics_are_hidden():
    text = render(SUMMARY, 140)
    assert "Benchmark Duration (sec)" not in text
    assert text.index(" LLM Metrics\n") < text.index("LLM Metrics: Effective")


def with_results(*results: Result) -> Summary:
    return replace(SUMMARY, results={one.tag: one for one in results})


def test_groups_come_in_the_references_order_others_behind_them():
    tags = {"zeta": 1, "usage": 2, "effective": 3, "": 4, "active": 5}
    text = render(with_results(*(result(f"t{order}", "T", "ms", SPREAD, order, group) for group, order in tags.items())), 140)
    titles = [f"LLM Metrics: {name}\n" for name in ("Effective", "Active", "Usage", "Zeta")]
    places = [text.index(title) for title in (" LLM Metrics\n", *titles)]
    assert places == sorted(places)


@pytest.mark.parametrize("group", ["http trace", "HTTP Trace", "http_trace"])
def test_parts_of_http_requests_are_shown_only_when_asked_behind_the_rest(group):
    blocked = result("http_req_blocked", "HTTP Blocked", "ms", SPREAD, 2000, group)
    summary = with_results(blocked, SUMMARY.results["request_count"])
    assert "HTTP" not in render(summary, 140)
    text = report(summary, Look(BOX), 140, verbose=False, trace=True)
    assert text.index("LLM Metrics\n") < text.index("HTTP Trace Timing")
    assert "HTTP Blocked (ms)" in text


@pytest.mark.parametrize(("p99", "shown"), [(0.9, False), (1.1, True)])
def test_latencies_from_the_due_time_are_shown_once_requests_are_late(p99, shown):
    rows = [
        result("schedule_slip", "Schedule Slip", "ms", {**SPREAD, "p99": p99}, 310),
        result("response_latency", "Response Latency", "ms", {**SPREAD, "p50": 5.0}, 320),
        result("request_latency", "Request Latency", "ms", SPREAD, 300),
    ]
    text = render(with_results(*rows), 140)
    assert "Request Latency (ms)" in text
    assert ("Schedule Slip (ms)" in text, "Response Latency (ms)" in text) == (shown, shown)


def test_warnings_are_listed_behind_the_tables():
    text = render(replace(SUMMARY, warnings=("the server was cold " * 8, "two\nlines")), 80)
    block = next(block for block in text.split("\n\n") if block.startswith("Warnings"))
    assert block.splitlines()[1].startswith("  - the server was cold")
    assert block.splitlines()[2].startswith("    ")
    assert block.splitlines()[-1] == "  - two lines"
    assert text.index("LLM Metrics\n") < text.index("Warnings\n") < text.index("Delivered load")


def test_latencies_that_requests_in_flight_would_change_stand_below_the_plain_ones():
    plain = result("request_latency", "Request Latency", "ms", {"avg": 9.0, "p50": 10.0, "p99": 20.0, "count": 20}, 300)
    longer = result("request_latency", "Request Latency", "ms", {"p50": 10.5, "count": 22, "censored": 2}, 300)
    same = replace(longer, stats={"p50": 10.05, "p99": 20.1, "count": 22, "censored": 2})
    assert "in flight" not in render(replace(with_results(plain), survival={"request_latency": same}), 140)
    text = render(replace(with_results(plain), survival={"request_latency": longer}), 140)
    (row,) = grid(text, "With 2 requests in flight at the end as lasting at least so long (Kaplan-Meier, interpolated)")
    assert row == ["Request Latency (ms)", "10.50"], "columns without a number are left out"
    nothing = replace(longer, stats={"count": 2, "censored": 2})
    assert "in flight" not in render(replace(with_results(plain), survival={"request_latency": nothing}), 140)


def test_several_servers_have_a_row_each():
    found = {
        "request_throughput": result("request_throughput", "T", "requests/sec", {"avg": 12.5}, 1),
        "time_to_first_token": result("time_to_first_token", "T", "ms", SPREAD, 1),
    }
    one = UrlSummary("http://a:8000", found, 1500, {"completed": 1490, "failed": 6, "cut": 3, "cancelled": 1, "aborted": 5})
    text = render(replace(SUMMARY, urls=(one, UrlSummary("http://b:8000", {}, 2, {"failed": 2}))), 140)
    assert grid(text, "Servers") == [
        ["http://a:8000", "1,500", "1,490", "10", "12.50", "4.18", "7.20", "N/A"],
        ["http://b:8000", "2", "0", "2", "N/A", "N/A", "N/A", "N/A"],
    ]


def series(name: str, kind: str, stats: dict, *, phase: int = 1, **more: dict) -> SeriesSummary:
    return SeriesSummary("vitals", phase, name, kind, "s", {"gpu": "0"}, "", stats, estimates=more.get("estimates", {}))


def sampled(*shown: SeriesSummary, failed: int = 0) -> Summary:
    return replace(SUMMARY, telemetry=(SourceSummary("vitals", "acme", "1", 0.5, 7, failed, 2 * failed, shown),))


def test_a_telemetry_source_has_a_short_table_of_the_profiling_phase():
    gauge = series("load", "gauge", {"avg": 0.00012345, "min": 0.0, "max": 12345.6, "p50": 0.5, "p99": 2.0, "count": 7})
    counter = series("spent", "counter", {"total": 4.0, "rate": 2.0})
    histogram = series("wait", "histogram", {"count": 4, "avg": 0.5, "rate": 1}, estimates={"p50_estimate": 0.4})
    others = series("machine", "info", {"count": 3}), series("warmup", "gauge", {}, phase=0)
    text = render(sampled(gauge, counter, histogram, *others), 120)
    assert re.search(r"│ Series +│ +avg │ +min │ +max │ +p50 │ +p99 │ +total │ +rate/s │", text)
    assert grid(text, "Telemetry: vitals") == [
        ["load gpu=0 (s)", "0.0001234", "0", "12,346", "0.5", "2", "", ""],
        ["spent gpu=0 (s)", "", "", "", "", "", "4", "2"],
        ["wait gpu=0 (s)", "0.5", "", "", "0.4", "", "", "1"],
    ]
    assert "machine" not in text and "of its samples failed" not in text


def test_a_telemetry_table_is_cut_fits_and_names_failed_samples():
    stats = {"avg": 1e9, "min": 1e9, "max": 1e9, "p99": 1e9}
    many = [series(f"a_series_of_a_long_name_{n}", "gauge", stats) for n in range(403)]
    text = render(sampled(*many, failed=3), 60, verbose=True)
    assert max(map(cells_of, text.splitlines())) <= 60
    assert len([line for line in text.splitlines() if "1,000,000,000" in line]) == 400
    assert "3 further series stand in the JSON." in text
    text = render(sampled(*many, failed=3), 60)
    assert "Telemetry: vitals: 403 series; -v shows them." in text and "a_series" not in text
    assert "3 of its samples failed, 6 were missed for want of time." in text
    assert "Telemetry" not in render(sampled(series("machine", "info", {"count": 3})), 80)


def test_requests_are_told_by_what_became_of_them():
    text = render(replace(SUMMARY, outcomes={"completed": 1200, "failed": 3, "cut": 1}), 140)
    assert "Requests: 1,200 completed, 4 failed (3 with an error, 1 cut)\n" in text


def test_a_trustworthy_verdict_is_the_last_line():
    assert render(SUMMARY, 140).splitlines()[-1] == "Verdict: trustworthy"


def test_a_scenario_says_whether_the_run_counts_and_why_not():
    good = render(replace(SUMMARY, scenario=ScenarioVerdict("mine", True)), 140)
    assert "\nScenario mine: the run counts\n" in good
    verdict = ScenarioVerdict("mine", False, ("late", "short"), ("it began late",))
    bad = render(replace(SUMMARY, scenario=verdict), 140)
    assert "\nScenario mine: the run doesn't count: late, short\n  - it began late\n" in bad


def test_a_run_that_nothing_has_judged_is_not_called_trustworthy():
    unjudged = replace(SUMMARY.measurement, verdict="none", notes=("no verdict was made: none is installed",))
    text = render(replace(SUMMARY, measurement=unjudged), 140)
    assert text.splitlines()[-1] == "Verdict: none"
    assert "no verdict was made: none is installed" in text and "trustworthy" not in text


def test_a_run_without_a_good_answer_says_that_there_is_nothing_to_trust():
    unjudged = replace(SUMMARY.measurement, verdict="none", reasons=("no connection could be opened",))
    text = render(replace(SUMMARY, measurement=unjudged, valid=0), 140)
    last = ["Verdict: none (no request succeeded, and there is nothing to trust)", "  - no connection could be opened"]
    assert text.splitlines()[-2:] == last


def test_a_run_that_was_cut_short_is_not_called_trustworthy():
    partial = replace(SUMMARY.measurement, verdict="partial")
    text = render(replace(SUMMARY, measurement=partial, complete=False, incomplete_reason="the run was cancelled"), 140)
    assert text.splitlines()[-1] == "Verdict: partial (nothing is wrong with the part that was measured)"
    assert "trustworthy" not in text


def test_a_suspect_verdict_comes_first_with_its_reasons():
    suspect = replace(SUMMARY.measurement, verdict="suspect", reasons=("slip p99 is 4 ms", "worker 0 used 97 % of a CPU"))
    text = render(replace(SUMMARY, measurement=suspect), 140)
    assert text.splitlines()[:3] == ["Verdict: suspect", "  - slip p99 is 4 ms", "  - worker 0 used 97 % of a CPU"]
    assert text.count("Verdict") == 1


def test_a_verdict_on_a_part_of_the_statistics_names_the_part():
    measurement = replace(SUMMARY.measurement, verdict="suspect", reasons=("chunks were merged",), scope="inter-chunk")
    text = render(replace(SUMMARY, measurement=measurement), 140)
    assert text.splitlines()[:2] == ["Verdict: suspect (inter-chunk statistics alone)", "  - chunks were merged"]


def test_the_turnaround_stands_in_the_measurement():
    text = render(replace(SUMMARY, measurement=replace(SUMMARY.measurement, turnaround_ms=Quantiles(0.1, 0.2, 0.31))), 140)
    assert "  Turnaround: p50 0.100, p99 0.200, max 0.310 ms" in text.splitlines()


def test_the_whole_measurement_is_printed_when_asked():
    text = render(SUMMARY, 140, verbose=True)
    assert grid(text, "Measurement") == [
        ["Client error (ms)", "0.010", "0.020", "0.300"],
        ["Schedule slip (ms)", "0.002", "0.400", "1.500"],
        ["Loop lag (ms)", "0.100", "0.200", "0.250"],
    ]
    assert re.search(r"│ Worker 1 CPU \(%\) +│ +3\.0 │", text)


def test_a_worker_stands_with_the_name_of_its_site() -> None:
    sites = (SiteClock("attic", (0,), within_ms=0.25), SiteClock("barn", (1,), lost="its command exited with 1"))
    told = replace(SUMMARY, measurement=replace(SUMMARY.measurement, sites=sites))
    assert "Worker CPU: attic: 12.5 %, barn: 3.0 %" in render(told, 100)
    text = render(told, 100, verbose=True)
    assert re.search(r"│ barn: Worker 1 CPU \(%\) +│ +3\.0 │", text)
    assert re.search(r"│ Site attic: clock \(ms\) +│ +± 0\.250 │", text)
    assert re.search(r"│ Site barn: clock \(ms\) +│ +± 0\.000, lost: its command exited with 1 │", text)


def test_an_incomplete_run_says_so_and_why():
    cut = replace(SUMMARY, complete=False, cancelled=True, incomplete_reason="the run was cancelled")
    text = render(cut, 140)
    assert text.startswith("INCOMPLETE RESULTS\n  the run was cancelled\n")
    assert "Benchmark Duration: 0.43 sec (cancelled early)" in text


def test_a_run_in_which_everything_failed_still_has_its_errors():
    text = render(replace(SUMMARY, results={}, valid=0, measurement=replace(SUMMARY.measurement, client_error_ms=None)), 140)
    assert "Error Summary" in text and "No request succeeded." in text
    assert "LLM Metrics" not in text and "Client error" not in text


def test_a_clean_run_has_no_error_table():
    assert "Error Summary" not in render(replace(SUMMARY, errors=()), 140)


def test_no_vendor_is_named():
    assert "nvidia" not in render(SUMMARY, 140, verbose=True).lower()


def test_a_servers_message_can_neither_steer_the_terminal_nor_fill_it():
    rude = ErrorCount(ErrorDetails("\x1b[2Jline one\nline two\t" + "x" * 5000, "T\x07"), 1)
    text = render(replace(SUMMARY, errors=(rude,)), 100)
    assert "\x1b" not in text and "\x07" not in text
    assert "line one line two" in text
    assert len(text.split("LLM Metrics")[0].splitlines()) < 12


def test_wide_characters_keep_the_lines_straight():
    wide = ErrorCount(ErrorDetails("\u6f22\u5b57 error \u0301 " * 12, "\u540d"), 1)
    block = render(replace(SUMMARY, errors=(wide,)), 80).split("\n\n")[0].splitlines()[1:]
    assert len({cells_of(line) for line in block}) == 1


def test_many_kinds_of_errors_are_cut():
    errors = tuple(ErrorCount(ErrorDetails(f"kind {i}"), 1) for i in range(30))
    text = render(replace(SUMMARY, errors=errors), 140)
    assert "kind 19" in text and "kind 20" not in text and "the first 20 are shown" in text


def test_values_that_are_not_finite_are_not_available():
    odd = {"x": result("x", "X", "ms", {"avg": math.nan, "p50": math.inf}, 1)}
    assert grid(render(replace(SUMMARY, results=odd), 140), " LLM Metrics") == [["X (ms)", *["N/A"] * 7]]


def test_the_command_is_printed_as_typed():
    assert "CLI Command: aiperf profile  -m mock\n" in render(SUMMARY, 60)


class Stream(io.StringIO):
    def __init__(self, encoding: str, terminal: bool) -> None:
        super().__init__()
        self._encoding, self._terminal = encoding, terminal

    @property
    def encoding(self) -> str:
        return self._encoding

    def isatty(self) -> bool:
        return self._terminal


def said(monkeypatch, encoding="utf-8", *, terminal=False, columns=90, no_color=None, term="xterm") -> str:
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_: os.terminal_size((columns, 24)))
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("NO_COLOR", no_color or "")
    stream = Stream(encoding, terminal)
    say(stream, SUMMARY, 140, verbose=False)
    return stream.getvalue()


def test_a_terminal_gets_its_own_width_and_colours(monkeypatch):
    text = said(monkeypatch, terminal=True)
    assert "\x1b[32mVerdict: trustworthy\x1b[0m" in text
    assert max(cells_of(re.sub(r"\x1b\[[\d;]*m", "", line)) for line in text.splitlines()) <= 90
    assert "LLM Metrics: Effective" not in text


@pytest.mark.parametrize(
    "settings", [{"terminal": False}, {"terminal": True, "no_color": "1"}, {"terminal": True, "term": "dumb"}]
)
def test_colours_stay_away_elsewhere(monkeypatch, settings):
    assert "\x1b" not in said(monkeypatch, **settings)


def test_a_pipe_gets_the_same_as_the_file(monkeypatch):
    assert said(monkeypatch) == render(SUMMARY, 140)


def test_a_terminal_begins_with_the_main_table_and_names_the_others():
    warned = replace(SUMMARY, warnings=("the server was cold",))
    screen = report(warned, Look(BOX), 140, verbose=False, screen=True)
    places = [screen.index(words) for words in ("Error Summary", " LLM Metrics\n", "Warnings\n", "\nMeasurement\n")]
    assert places == sorted(places)
    assert "LLM Metrics: Effective" not in screen
    assert "Further tables with -v, and in the console file: Effective\n" in screen
    verbose = report(warned, Look(BOX), 140, verbose=True, screen=True)
    assert "LLM Metrics: Effective" in verbose and "Further tables" not in verbose


def test_a_terminal_ends_with_latency_and_throughput_in_a_sentence():
    latency = result("request_latency", "Request Latency", "ms", {**SPREAD, "p50": 5.0}, 300)
    rate = result("request_throughput", "Request Throughput", "requests/sec", {"avg": 1415.5}, 900)
    summary = with_results(*SUMMARY.results.values(), latency, rate)
    end = report(summary, Look(BOX), 140, verbose=False, screen=True).splitlines()[-2:]
    first, latencies = "time to first token p50 4.18, p99 7.20 ms", "request latency p50 5.00, p99 7.20 ms"
    assert end == [f"1,415.50 requests/sec; {first}; {latencies}", "Verdict: trustworthy"]
    assert first not in render(summary, 140)


def test_small_numbers_that_only_look_alike_keep_their_rows():
    tiny = [result(name, name, "ms", dict.fromkeys(SPREAD, value), 1) for name, value in (("a", 0.001), ("b", 0.002))]
    assert len(grid(render(with_results(*tiny), 140), " LLM Metrics")) == 2


def test_zeros_repeat_a_row_of_their_own_table_alone():
    zeros = dict.fromkeys(SPREAD, 0.0)
    rows = [result("a", "A", "%", zeros, 1), result("b", "B", "%", zeros, 2), result("c", "C", "%", zeros, 3, "usage")]
    text = render(with_results(*rows), 140)
    assert "Same numbers: B = A\n" in text and [row[0] for row in grid(text, "LLM Metrics: Usage")] == ["C (%)"]


def test_latency_and_throughput_stand_before_lengths_and_counts():
    lengths = result("output_sequence_length", "Output Sequence Length", "tokens", SPREAD, 600)
    rate = result("request_throughput", "Request Throughput", "requests/sec", {"avg": 1415.5}, 900)
    rows = grid(render(with_results(*SUMMARY.results.values(), lengths, rate), 140), " LLM Metrics")
    assert [row[0].split(" (")[0] for row in rows] == [
        "Time to First Token", "Output Token Throughput Per User", "Request Throughput", "Output Sequence Length",
        "Request Count",
    ]  # fmt: skip


def choosing(width: int, *columns: str, screen: bool = False) -> str:
    return report(SUMMARY, Look(BOX), width, verbose=False, screen=screen, columns=columns)


def test_tables_have_the_columns_that_were_chosen():
    rows = grid(choosing(140, "p95", "sum"), " LLM Metrics")
    assert [row[1:] for row in rows] == [["7.17", "92.51"]] * 2
    words = " ".join(choosing(140, "p95", "sum").split())
    assert "One number each: Request Count (requests) 20.00 " in words
    assert "LLM Metrics: Effective One number each: Effective Concurrency (requests) 3.72" in words


def test_a_narrow_table_drops_the_columns_that_were_named_last():
    text = choosing(50, "p95", "p99", "sum", "count", "avg")
    assert "Too narrow for count and avg: see the JSON." in text
    assert re.search(r"│ Metric +│ +p95 │ +p99 │ +sum │\n", text)


def test_the_sentence_at_the_end_has_the_percentiles_that_were_chosen():
    assert "time to first token p95 7.17, p25 3.92 ms\n" in choosing(140, "avg", "p95", "p25", screen=True)


@pytest.mark.parametrize("width", [50, 80, 140])
def test_a_row_that_repeats_another_to_the_digit_is_named_below_the_table(width):
    first, close = SUMMARY.results["time_to_first_token"], {**SPREAD, "avg": 1528.8711}
    summary = with_results(
        first,
        result("a", "Time to First Output Token", "ms", close, 110),
        result("b", "Other", "ms", {**SPREAD, "std": 9.0}, 120),
        result("c", "Counted", "tokens", SPREAD, 130),
        result("d", "Usage Completion Tokens", "tokens", SPREAD, 1, "usage"),
    )
    text = render(summary, width)
    assert [row[0] for row in grid(text, " LLM Metrics")] == ["Time to First Token (ms)", "Other (ms)", "Counted (tokens)"]
    words = " ".join(text.split())
    assert "Same numbers: Time to First Output Token = Time to First Token" in words
    assert words.index("LLM Metrics: Usage Same numbers: Usage Completion Tokens = Counted") > words.index("Other (ms)")


def test_an_encoding_without_lines_gets_plain_ones(monkeypatch):
    text = said(monkeypatch, "ascii")
    assert text.isascii() and "+------" in text


def test_an_encoding_without_signs_gets_them_spelled_out_in_straight_tables():
    slo = with_results(result("slo", "TTFT p99 ≤ 25 ms Attained", "ratio", {"avg": 1.0}, 1))
    table = render(slo, 140, look=Look(PLAIN)).split("LLM Metrics\n")[1].splitlines()[:5]
    assert "| TTFT p99 <= 25 ms Attained (ratio) |" in table[3]
    assert {len(line) for line in table} == {len(table[0])}


def test_the_copy_is_written_and_the_report_printed(tmp_path, capsys):
    (artifact,) = Console(Target(tmp_path, width=100, prefix="mine")).export(SUMMARY)
    assert artifact.path == tmp_path / "mine_console.txt"
    assert artifact.path.read_text(encoding="utf-8") == render(SUMMARY, 100) == capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 5, [""]),
        ("one two", 7, ["one two"]),
        ("one two", 6, ["one", "two"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("a bcdef g", 3, ["a", "bcd", "ef", "g"]),
        ("\u6f22\u5b57\u6f22", 4, ["\u6f22\u5b57", "\u6f22"]),
    ],
)
def test_wrapping(text, width, lines):
    assert wrap(text, width) == lines
