"""The {{ cookiecutter.name }} exporter: a row a metric."""

from __future__ import annotations

from aiperf import Result
from aiperf.testing import SummaryExporterContract, sample_summary

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}, lines


class TestItKeepsTheContract(SummaryExporterContract):
    exporter = {{ cookiecutter.__class }}


def test_a_metric_is_a_row_and_what_it_has_not_is_empty() -> None:
    wait = Result("b_wait", "Wait", "ms", {"avg": 2.0, "p50": 1.5, "p99": 9.25})
    summary = sample_summary(wait, Result("a", "A|B", "%", {"avg": 1}))
    assert list(lines(summary))[2:] == [
        "| Metric | Unit | avg | p50 | p99 |",
        "|---|---|---:|---:|---:|",
        "| A&#124;B | % | 1.00 |  |  |",
        "| Wait | ms | 2.00 | 1.50 | 9.25 |",
    ]
