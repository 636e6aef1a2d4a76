import csv
import math

import pytest
from aiperf import Measurement, Result, Summary, Target
from aiperf.sdk.summary import Arrivals, DeliveredLoad
from aiperf.testing import SummaryExporterContract
from aiperf_exporter_csv import SummaryCsv, cell

SPREAD = {
    "avg": 4.625, "min": 3.35, "max": 7.2, "sum": 92.518, "p1": 3.4, "p5": 3.5, "p10": 3.6, "p25": 3.9, "p50": 4.1, "p75": 4.6,
    "p90": 7.0, "p95": 7.17, "p99": 7.196, "std": 1.1975, "count": 20,
}  # fmt: skip


def written(tmp_path, *results: Result, **chosen) -> bytes:
    summary = Summary(
        "be4a9683ef6c", "0.1.0", {result.tag: result for result in results}, (), (),
        Measurement("kernel", True, Arrivals(), "trustworthy"), DeliveredLoad(None, None, 0), (), 0, 1, "LLM Metrics", "", {},
    )  # fmt: skip
    (artifact,) = SummaryCsv(Target(tmp_path, **chosen)).export(summary)
    assert artifact.path == tmp_path / "profile_export_aiperf.csv"
    return artifact.path.read_bytes()


def test_both_sections_are_sorted_by_tag_and_lines_end_in_crlf(tmp_path):
    content = written(
        tmp_path,
        Result("request_throughput", "Request Throughput", "requests/sec", {"avg": 46.1149}),
        Result("inter_token_latency", "Inter Token Latency", "ms", SPREAD),
        Result("completed_request_count", "Completed Requests (Success + Error)", "requests", {"avg": 20.0}),
        Result("benchmark_duration", "Benchmark Duration", "sec", {"avg": 0.4337}),
        Result("effective_concurrency", "Effective Concurrency", "count", {"avg": 3.72, "p50": 4.0, "max": 4.0}),
    )
    assert content == (
        b"Metric,avg,min,max,sum,p1,p5,p10,p25,p50,p75,p90,p95,p99,std\r\n"
        b"Effective Concurrency,3.72,,4.00,,,,,,4.00,,,,,\r\n"
        b"Inter Token Latency (ms),4.62,3.35,7.20,92.52,3.40,3.50,3.60,3.90,4.10,4.60,7.00,7.17,7.20,1.20\r\n"
        b"\r\n"
        b"Metric,Value\r\n"
        b"Benchmark Duration (sec),0.43\r\n"
        b"Completed Requests (Success + Error),20.00\r\n"
        b"Request Throughput (requests/sec),46.11\r\n"
    )


@pytest.mark.parametrize(
    ("chosen", "rows"),
    [
        (
            {"percentiles": (99.9, 50.0)},
            b"Metric,avg,min,max,sum,p99.9,p50,std\r\nITL (ms),4.62,3.35,7.20,92.52,7.20,4.10,1.20\r\n",
        ),
        ({"columns": ("count", "p99")}, b"Metric,count,p99\r\nITL (ms),20,7.20\r\n"),
        ({"columns": ("p50", "max"), "percentiles": (50.0, 75.0)}, b"Metric,p50,max,p75\r\nITL (ms),4.10,7.20,4.60\r\n"),
    ],
)
def test_columns_are_those_that_were_chosen(tmp_path, chosen, rows):
    itl = Result("inter_token_latency", "ITL", "ms", {**SPREAD, "p99.9": 7.1998})
    duration = Result("benchmark_duration", "Benchmark Duration", "sec", {"avg": 0.4337})
    assert written(tmp_path, itl, duration, **chosen) == rows + b"\r\nMetric,Value\r\nBenchmark Duration (sec),0.43\r\n"


def test_a_run_without_distributions_has_the_second_section_alone(tmp_path):
    content = written(tmp_path, Result("error_request_count", "Error Request Count", "requests", {"avg": 3.0}))
    assert content == b"Metric,Value\r\nError Request Count,3.00\r\n"


def test_a_run_without_metrics_gives_an_empty_file(tmp_path):
    assert written(tmp_path) == b""


def test_a_title_with_a_comma_survives(tmp_path):
    content = written(tmp_path, Result("odd", 'Odd, "quoted"', "ms", {"avg": 1.0})).decode()
    assert list(csv.reader(content.splitlines()))[1] == ['Odd, "quoted" (ms)', "1.00"]


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (math.nan, ""), (math.inf, ""), (3, "3"), (0.0, "0.00"), (2.675, "2.67")]
)
def test_a_cell_has_two_decimals_or_is_a_plain_integer_or_empty(value, text):
    assert cell(value) == text


class TestSummaryCsvKeepsTheContract(SummaryExporterContract):
    exporter = SummaryCsv
