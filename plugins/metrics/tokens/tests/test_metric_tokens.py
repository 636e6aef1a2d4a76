from importlib.metadata import entry_points

import numpy as np
import pytest
from aiperf import Aggregation, ConfigError, Metric, Needs, Over, RecordBatch
from aiperf.testing import MetricContract
from aiperf_metric_tokens import (
    ErrorInputSequenceLength,
    InputSequenceLength,
    OslMismatch,
    OslMismatchCount,
    OutputSequenceLength,
    OutputTokenCount,
    TotalErrorIsl,
    TotalIsl,
    TotalOsl,
    TotalOutputTokens,
)
from aiperf_testing.batches import columns_of
from aiperf_testing.manifests import check_row

ABSENT = float("nan")
PER_REQUEST = (
    InputSequenceLength, OutputSequenceLength, OutputTokenCount, ErrorInputSequenceLength, OslMismatch, OslMismatchCount,
)  # fmt: skip
TOTALS = {
    TotalIsl: "input_sequence_length",
    TotalOsl: "output_sequence_length",
    TotalOutputTokens: "output_token_count",
    TotalErrorIsl: "error_isl",
}


def needed(kind: type[Metric]) -> tuple[Metric, ...]:
    return (OutputSequenceLength(),) if kind.needs else ()


@pytest.mark.parametrize("kind", PER_REQUEST, ids=lambda kind: kind.tag)
class TestEachKeepsTheContract(MetricContract):
    metric = InputSequenceLength()

    @pytest.fixture(autouse=True)
    def of(self, kind):
        self.metric, self.needed = kind(), needed(kind)


def column(kind: type[Metric], **columns: list[float]) -> list[float | None]:
    count = max(map(len, columns.values()))
    names = ("input_tokens", "output_tokens", "reasoning_tokens", "requested_tokens")
    known = {name: np.array(columns.get(name, [ABSENT] * count), dtype=np.float64) for name in names}
    values = columns_of((*needed(kind), kind()), RecordBatch(known, np.ones(count, dtype=bool)))[kind.tag]
    return [None if np.isnan(each) else float(each) for each in values]


# Four answers: 32 tokens asked with each; 96, 100, 102 and 60 of output, the last behind 45 of reasoning; 100 asked for.
WORKED = {
    "input_sequence_length": [32, 32, 32, 32],
    "output_sequence_length": [96, 100, 102, 105],
    "output_token_count": [96, 100, 102, 60],
    "error_isl": [32, 32, 32, 32],
    "osl_mismatch_diff_pct": [-4, 0, 2, 5],
    "osl_mismatch_count": [0, 0, 0, 0],
    "total_isl": 128,
    "total_osl": 403,
    "total_output_tokens": 358,
    "total_error_isl": 128,
}


def test_values_are_those_worked_out_by_hand():
    counts = {
        "input_tokens": [32.0] * 4, "output_tokens": [96.0, 100.0, 102.0, 60.0], "requested_tokens": [100.0] * 4,
        "reasoning_tokens": [ABSENT, ABSENT, ABSENT, 45.0],
    }  # fmt: skip
    found = {kind.tag: column(kind, **counts) for kind in PER_REQUEST}
    totals = {kind.tag: kind().number(Run(of, sum(found[of]))) for kind, of in TOTALS.items()}
    assert found | totals == WORKED


COUNTED = {"output_tokens": [8, ABSENT, 5, 0, ABSENT], "reasoning_tokens": [ABSENT, 3, 2, ABSENT, ABSENT]}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (OutputSequenceLength, [8, 3, 7, 0, None]),  # output and reasoning; absent where neither was counted
        (OutputTokenCount, [8, None, 5, None, None]),  # none is absent, not zero
    ],
)
def test_output_counts_reasoning_and_the_output_count_does_not(kind, expected):
    assert column(kind, **COUNTED) == expected


def test_input_is_what_was_counted():
    assert column(InputSequenceLength, input_tokens=[32, ABSENT]) == [32, None]


def test_the_difference_to_the_requested_length_is_signed():
    lengths = {"output_tokens": [90, 110, 100, 50, ABSENT], "requested_tokens": [100, 100, 100, ABSENT, 100]}
    assert column(OslMismatch, **lengths) == [-10, 10, 0, None, None]
    assert column(OslMismatch, output_tokens=[5], requested_tokens=[0]) == [None]


@pytest.mark.parametrize(
    ("output", "asked", "off"),
    [
        (95, 100, 0),  # 5 % is allowed
        (94, 100, 1),
        (106, 100, 1),  # in either direction
        (1950, 2000, 0),  # 50 tokens are the smaller limit now
        (1949, 2000, 1),
        (19, 20, 0),
        (18, 20, 1),
    ],
)
def test_a_mismatch_is_beyond_the_smaller_of_two_limits(output, asked, off):
    assert column(OslMismatchCount, output_tokens=[output], requested_tokens=[asked]) == [off]


def test_without_a_requested_length_the_mismatch_is_absent():
    assert column(OslMismatchCount, output_tokens=[50], requested_tokens=[ABSENT]) == [None]


def test_the_limits_can_be_moved(monkeypatch):
    monkeypatch.setenv("AIPERF_METRICS_OSL_MISMATCH_PCT_THRESHOLD", "10")
    monkeypatch.setenv("AIPERF_METRICS_OSL_MISMATCH_MAX_TOKEN_THRESHOLD", "7")
    assert column(OslMismatchCount, output_tokens=[93, 92, 45, 44], requested_tokens=[100, 100, 50, 50]) == [0, 1, 0, 1]


@pytest.mark.parametrize("value", ["five", "-1", "nan"])
def test_a_limit_that_is_no_limit_is_refused_by_name(monkeypatch, value):
    monkeypatch.setenv("AIPERF_METRICS_OSL_MISMATCH_PCT_THRESHOLD", value)
    with pytest.raises(ConfigError, match=f"AIPERF_METRICS_OSL_MISMATCH_PCT_THRESHOLD is {value!r}"):
        OslMismatchCount()


class Run:
    """A run's folded metrics: the sum of one, and nothing of the others."""

    duration_s = window_s = 1.0
    valid = failed = 1

    def __init__(self, tag: str, total: float = 123.0) -> None:
        self.tag, self.total = tag, total

    def sum(self, tag: str) -> float | None:
        return self.total if tag == self.tag else None

    def count(self, tag: str) -> int:
        return 1

    def value(self, tag: str) -> float | None:
        return None


@pytest.mark.parametrize(("kind", "of"), TOTALS.items(), ids=lambda each: getattr(each, "tag", each))
def test_a_total_is_the_sum_of_its_metric_and_absent_without_it(kind, of):
    assert kind.needs == (of,)
    assert kind().number(Run(of)) == 123.0
    assert kind().number(Run("another")) is None


def test_input_of_failed_requests_is_theirs_alone():
    assert ErrorInputSequenceLength.over is Over.FAILED
    assert all(kind.over is Over.VALID for kind in PER_REQUEST if kind is not ErrorInputSequenceLength)


def test_only_the_mismatch_count_is_a_sum_without_records():
    assert [kind.tag for kind in PER_REQUEST if kind.fold is not Aggregation.DISTRIBUTION] == ["osl_mismatch_count"]
    assert [kind.tag for kind in PER_REQUEST if not kind.per_record] == ["osl_mismatch_count"]


@pytest.mark.parametrize(
    ("kind", "order", "heading"),
    [
        (OutputSequenceLength, 600, ("Output Sequence Length", "OSL")),
        (InputSequenceLength, 700, ("Input Sequence Length", "ISL")),
        (OutputTokenCount, None, ("Output Token Count", "Output Tokens")),
    ],
)
def test_readers_of_the_references_files_find_the_names_they_know(kind, order, heading):
    metric = kind()
    assert (metric.order, (metric.title, metric.short), metric.shown.value) == (order, heading, "tokens")
    assert metric.larger_is_better


def test_what_isnt_tokenized_has_no_count():
    inputs = {InputSequenceLength, ErrorInputSequenceLength, TotalIsl, TotalErrorIsl}
    for kind in (*PER_REQUEST, *TOTALS):
        assert (Needs.TOKENS_IN if kind in inputs else Needs.TOKENS_OUT) in kind.requires, kind.tag


def test_every_metric_is_registered_under_its_tag_and_described():
    registered = {each.name: each.load() for each in entry_points(group="aiperf.metrics") if "metric_tokens" in each.value}
    assert registered == {kind.tag: kind for kind in (*PER_REQUEST, *TOTALS)}
    for kind in registered.values():
        check_row("metrics", kind)
