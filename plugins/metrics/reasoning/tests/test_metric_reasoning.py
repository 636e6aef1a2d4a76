from importlib.metadata import entry_points

import numpy as np
import pytest
from aiperf import Metric, Needs, RecordBatch, Unit
from aiperf.testing import MetricContract
from aiperf_metric_reasoning import (
    OverallThinkingEfficiency,
    ReasoningTokenCount,
    ThinkingEfficiency,
    TotalReasoningTokens,
)
from aiperf_testing.batches import columns_of
from aiperf_testing.manifests import check_row

ABSENT = float("nan")


class Outputs(Metric):
    """Stands for another package's metric of this name."""

    tag = "output_token_count"
    title = "Output Token Count"
    unit = Unit.TOKENS

    def column(self, batch):
        return batch["output_tokens"]


NEEDED = (ReasoningTokenCount(), Outputs())


class TestTheCountKeepsTheContract(MetricContract):
    metric = ReasoningTokenCount()


class TestTheEfficiencyKeepsTheContract(MetricContract):
    metric = ThinkingEfficiency()
    needed = NEEDED


def column(metric: Metric, reasoning: list[float], output: list[float]) -> list[float | None]:
    known = {"reasoning_tokens": np.array(reasoning), "output_tokens": np.array(output)}
    batch = RecordBatch(known, np.ones(len(output), dtype=bool))
    return [None if np.isnan(each) else float(each) for each in columns_of((*NEEDED, metric), batch)[metric.tag]]


# Two answers: 12 tokens of reasoning before 8 of output, and 18 before 32.
WORKED = {
    "reasoning_token_count": [12, 18],
    "thinking_efficiency": [1.5, 0.5625],
    "total_reasoning_tokens": 30,
    "overall_thinking_efficiency": 0.75,
}


def test_values_are_those_worked_out_by_hand():
    run = Run(reasoning_token_count=30.0, total_reasoning_tokens=30.0, total_output_tokens=40.0)
    found = {kind.tag: column(kind(), [12.0, 18.0], [8.0, 32.0]) for kind in (ReasoningTokenCount, ThinkingEfficiency)}
    assert found | {kind.tag: kind().number(run) for kind in (TotalReasoningTokens, OverallThinkingEfficiency)} == WORKED


def test_hidden_reasoning_is_absent_and_a_count_of_zero_stays_zero():
    assert column(ReasoningTokenCount(), [4.0, ABSENT, 0.0], [8.0, 8.0, 8.0]) == [4, None, 0]


def test_efficiency_is_reasoning_for_each_token_of_output():
    assert column(ThinkingEfficiency(), [12.0, 0.0, 4.0, ABSENT], [8.0, 8.0, 0.0, 8.0]) == [1.5, 0, None, None]


class Run:
    """A run's folded metrics: sums alone."""

    duration_s = window_s = 1.0
    valid = failed = 1

    def __init__(self, **sums: float) -> None:
        self.sums = sums

    def sum(self, tag: str) -> float | None:
        return self.sums.get(tag)

    value = sum


def test_the_total_is_the_sum_and_absent_without_reasoning():
    assert TotalReasoningTokens().number(Run(reasoning_token_count=30.0)) == 30
    assert TotalReasoningTokens().number(Run()) is None


@pytest.mark.parametrize(
    ("sums", "share"),
    [
        ({"total_reasoning_tokens": 30.0, "total_output_tokens": 40.0}, 0.75),
        ({"total_output_tokens": 40.0}, None),
        ({"total_reasoning_tokens": 30.0}, None),
        ({"total_reasoning_tokens": 30.0, "total_output_tokens": 0.0}, None),
    ],
)
def test_the_efficiency_of_all_is_of_their_totals(sums, share):
    assert OverallThinkingEfficiency().number(Run(**sums)) == share


def test_efficiencies_are_experimental_and_counts_are_not():
    for kind in (ThinkingEfficiency, OverallThinkingEfficiency):
        assert kind.requires == Needs.TOKENS_OUT | Needs.EXPERIMENTAL
    for kind in (ReasoningTokenCount, TotalReasoningTokens):
        assert (kind.requires, kind.order, kind.larger_is_better) == (Needs.TOKENS_OUT, None, True)


def test_every_metric_is_registered_under_its_tag_and_described():
    registered = {each.name: each.load() for each in entry_points(group="aiperf.metrics") if "reasoning:" in each.value}
    assert set(registered) == {
        "reasoning_token_count", "total_reasoning_tokens", "thinking_efficiency", "overall_thinking_efficiency",
    }  # fmt: skip
    for tag, kind in registered.items():
        assert kind.tag == tag
        check_row("metrics", kind)
