from importlib.metadata import entry_points

import numpy as np
import pytest
from aiperf import Aggregation, ConfigError, Metric, Needs, RecordBatch, RunMetric, Unit
from aiperf.testing import MetricContract
from aiperf_metric_usage import (
    OverallUsagePromptCacheReadPct,
    UsageCompletionTokens,
    UsageCompletionTokensDifference,
    UsageDiscrepancyCount,
    UsageInterTokenLatency,
    UsagePromptTokens,
    UsagePromptTokensDifference,
    UsagePromptTokensExtra,
    UsageReasoningTokens,
    UsageReasoningTokensDifference,
)
from aiperf_testing.batches import columns_of
from aiperf_testing.manifests import check_row

ABSENT = float("nan")
EVERY = {each.name: each.load() for each in entry_points(group="aiperf.metrics") if "metric_usage" in each.value}
SAID = [kind for kind in EVERY.values() if issubclass(kind, Metric) and not kind.needs]


class Counted(Metric):
    """A stand-in for what another package counts."""

    title = "Counted"
    unit = Unit.TOKENS

    def __init__(self, tag: str, column: str) -> None:
        self.tag, self._column = tag, column

    def column(self, batch):
        return batch[self._column]


HERE = (
    Counted("input_sequence_length", "input_tokens"),
    Counted("output_sequence_length", "output_tokens"),
    Counted("reasoning_token_count", "reasoning_tokens"),
)
DIFFERENCES = (UsagePromptTokensDifference(), UsageCompletionTokensDifference(), UsageReasoningTokensDifference())
NEEDED = (*HERE, UsagePromptTokens(), UsageCompletionTokens(), UsageReasoningTokens())


@pytest.mark.parametrize("kind", SAID, ids=lambda kind: kind.tag)
class TestEachCountKeepsTheContract(MetricContract):
    metric = UsagePromptTokens()

    @pytest.fixture(autouse=True)
    def of(self, kind):
        self.metric = kind()


class Itl(Metric):
    """A stand-in: 2 ms, by the client's tokens."""

    tag, title, unit = "inter_token_latency", "ITL", Unit.NANOSECONDS

    def column(self, batch):
        return np.where(batch["output_tokens"] > 1, 2e6, ABSENT)


class TestPromptTokensExtraKeepsTheContract(MetricContract):
    metric = UsagePromptTokensExtra()
    needed = NEEDED


class TestInterTokenLatencyKeepsTheContract(MetricContract):
    metric = UsageInterTokenLatency()
    needed = (*NEEDED, Itl())


@pytest.mark.parametrize(
    ("prompt", "counted", "extra"),
    [(113, 100, 13), (90, 100, -10), (100, 100, 0), (ABSENT, 100, None), (113, ABSENT, None), (0, 100, None)],
)
def test_extra_prompt_tokens_are_signed(prompt, counted, extra):
    batch = one(usage_prompt_tokens=prompt, input_tokens=counted)
    (found,) = columns_of((*NEEDED, UsagePromptTokensExtra()), batch)["usage_prompt_tokens_extra"].tolist()
    assert found == extra if extra is not None else np.isnan(found)


@pytest.mark.parametrize(
    ("reported", "counted", "ms"),
    [(11, 11, 2.0), (21, 11, 1.0), (6, 11, 4.0), (1, 11, None), (ABSENT, 11, None), (11, 1, None)],
)
def test_latency_by_the_servers_count_has_the_servers_gaps(reported, counted, ms):
    batch = one(usage_completion_tokens=reported, output_tokens=counted)
    (found,) = columns_of((*NEEDED, Itl(), UsageInterTokenLatency()), batch)["usage_inter_token_latency"].tolist()
    assert found == ms * 1e6 if ms is not None else np.isnan(found)


def one(**numbers) -> RecordBatch:
    names = ("usage_prompt_tokens", "usage_completion_tokens", "usage_reasoning_tokens", "input_tokens", "output_tokens")
    columns = {name: np.array([float(numbers.get(name, ABSENT))]) for name in (*names, "reasoning_tokens")}
    return RecordBatch(columns, np.ones(1, dtype=bool))


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda metric: metric.tag)
class TestEachDifferenceKeepsTheContract(MetricContract):
    metric = DIFFERENCES[0]
    needed = NEEDED

    @pytest.fixture(autouse=True)
    def of(self, difference):
        self.metric = difference


class TestTheDiscrepancyCountKeepsTheContract(MetricContract):
    metric = UsageDiscrepancyCount()
    needed = (*NEEDED, *DIFFERENCES)


def column(metric: Metric, **columns: list[float]) -> list[float | None]:
    names = (
        "input_tokens", "output_tokens", "reasoning_tokens", "usage_prompt_tokens", "usage_completion_tokens",
        "usage_reasoning_tokens",
    )  # fmt: skip
    count = max(map(len, columns.values()))
    known = {name: np.array(columns.get(name, [ABSENT] * count), dtype=np.float64) for name in names}
    batch = RecordBatch(known, np.ones(count, dtype=bool))
    return [None if np.isnan(each) else float(each) for each in columns_of((*NEEDED, *DIFFERENCES, metric), batch)[metric.tag]]


# One answer, for which the server counts 120 tokens of prompt and 45 of answer where 100 and 50 are counted here.
SERVER = {
    "usage_prompt_tokens": 120, "usage_cached_tokens": 30, "usage_cache_write_tokens": 17, "usage_cache_miss_tokens": 90,
    "usage_prompt_audio_tokens": 11, "usage_tool_tokens": 7, "usage_audio_s": 1.25, "usage_completion_tokens": 45,
    "usage_reasoning_tokens": 12, "usage_completion_audio_tokens": 9, "usage_accepted_tokens": 6, "usage_rejected_tokens": 2,
    "usage_total_tokens": 165, "input_tokens": 100, "output_tokens": 50, "reasoning_tokens": 16,
}  # fmt: skip
WORKED = {
    "usage_prompt_tokens": 120,
    "usage_prompt_cache_read_tokens": 30,
    "usage_prompt_cache_write_tokens": 17,
    "usage_prompt_cache_miss_tokens": 90,
    "usage_prompt_audio_tokens": 11,
    "usage_tool_use_prompt_tokens": 7,
    "usage_prompt_audio_seconds": 1.25,
    "usage_completion_tokens": 45,
    "usage_reasoning_tokens": 12,
    "usage_completion_audio_tokens": 9,
    "usage_accepted_prediction_tokens": 6,
    "usage_rejected_prediction_tokens": 2,
    "usage_total_tokens": 165,
    "usage_prompt_tokens_diff_pct": 20,
    "usage_completion_tokens_diff_pct": 10,
    "usage_reasoning_tokens_diff_pct": 25,
    "usage_prompt_tokens_extra": 20,
    "usage_inter_token_latency": 2e6 * (49 / 44),  # 49 gaps by our count, 44 by the server's
    "usage_discrepancy_count": 1,
    # the totals of this one answer
    "total_usage_prompt_tokens": 120,
    "total_usage_prompt_cache_read_tokens": 30,
    "total_usage_prompt_cache_write_tokens": 17,
    "total_usage_prompt_cache_miss_tokens": 90,
    "total_usage_prompt_audio_tokens": 11,
    "total_usage_tool_use_prompt_tokens": 7,
    "total_usage_prompt_audio_seconds": 1.25,
    "total_usage_completion_tokens": 45,
    "total_usage_reasoning_tokens": 12,
    "total_usage_completion_audio_tokens": 9,
    "total_usage_accepted_prediction_tokens": 6,
    "total_usage_rejected_prediction_tokens": 2,
    "total_usage_total_tokens": 165,
    "overall_usage_prompt_cache_read_pct": 25,
}


def test_values_are_those_worked_out_by_hand():
    batch = RecordBatch({name: np.array([float(value)]) for name, value in SERVER.items()}, np.ones(1, dtype=bool))
    said = {kind.tag: kind() for kind in SAID}
    derived = (UsageDiscrepancyCount(), UsagePromptTokensExtra(), Itl(), UsageInterTokenLatency())
    columns = columns_of((*HERE, *said.values(), *DIFFERENCES, *derived), batch)
    found = {tag: float(column[0]) for tag, column in columns.items() if tag in EVERY}
    run = Run(**found)
    totals = {tag: kind().number(run) for tag, kind in EVERY.items() if issubclass(kind, RunMetric)}
    assert found | totals == WORKED


@pytest.mark.parametrize(
    ("said", "counted", "percent"),
    [(110, 100, 10), (90, 100, 10), (100, 100, 0), (5, 0, None), (0, 100, None), (ABSENT, 100, None), (100, ABSENT, None)],
)
def test_a_difference_is_unsigned_in_percent_of_the_clients_count(said, counted, percent):
    assert column(UsagePromptTokensDifference(), usage_prompt_tokens=[said], input_tokens=[counted]) == [percent]
    assert column(UsageCompletionTokensDifference(), usage_completion_tokens=[said], output_tokens=[counted]) == [percent]
    assert column(UsageReasoningTokensDifference(), usage_reasoning_tokens=[said], reasoning_tokens=[counted]) == [percent]


@pytest.mark.parametrize(
    ("prompt", "completion", "reasoning", "counted"),
    [
        (110, 90, 100, 0),  # 10 % is not far
        (111, 100, 100, 1),
        (100, 89, 100, 1),
        (100, 100, 111, 1),
        (100, 100, ABSENT, 0),  # nothing was reasoned
        (100, ABSENT, 200, None),  # prompt and answer must be comparable
        (ABSENT, 100, 200, None),
    ],
)
def test_a_discrepancy_is_any_difference_beyond_the_limit(prompt, completion, reasoning, counted):
    here = {"input_tokens": [100], "output_tokens": [100], "reasoning_tokens": [100]}
    said = {
        "usage_prompt_tokens": [prompt],
        "usage_completion_tokens": [completion],
        "usage_reasoning_tokens": [reasoning],
    }
    assert column(UsageDiscrepancyCount(), **here, **said) == [counted]


def test_the_limit_can_be_moved(monkeypatch):
    monkeypatch.setenv("AIPERF_METRICS_USAGE_PCT_DIFF_THRESHOLD", "25")
    same = {"usage_completion_tokens": [100, 100], "output_tokens": [100, 100], "input_tokens": [100, 100]}
    assert column(UsageDiscrepancyCount(), **same, usage_prompt_tokens=[125, 126]) == [0, 1]


def test_a_limit_that_is_no_limit_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("AIPERF_METRICS_USAGE_PCT_DIFF_THRESHOLD", "a lot")
    with pytest.raises(ConfigError, match="AIPERF_METRICS_USAGE_PCT_DIFF_THRESHOLD is 'a lot'"):
        UsageDiscrepancyCount()


class Run:
    """A run's folded metrics: sums alone."""

    duration_s = window_s = 1.0
    valid = failed = 1

    def __init__(self, **sums: float) -> None:
        self.sums = sums

    def sum(self, tag: str) -> float | None:
        return self.sums.get(tag)

    def count(self, tag: str) -> int:
        return 1

    def value(self, tag: str) -> float | None:
        return None

    def statistic(self, tag: str, name: str) -> float | None:
        return None


def test_every_count_has_its_total_a_thousand_further_down():
    for kind in SAID:
        tag = f"total_{kind.tag}"
        total = EVERY[tag]
        assert issubclass(total, RunMetric)
        assert (total.title, total.unit, total.order) == (f"Total {kind.title}", kind.unit, kind.order + 1000)
        assert (total.requires, total.larger_is_better, total.group) == (kind.requires, kind.larger_is_better, "Usage")
        assert total().number(Run(**{kind.tag: 12.0})) == 12.0
        assert total().number(Run()) is None


@pytest.mark.parametrize(
    ("sums", "percent"),
    [
        ({"usage_prompt_cache_read_tokens": 25.0, "usage_prompt_tokens": 200.0}, 12.5),
        ({"usage_prompt_cache_read_tokens": 0.0, "usage_prompt_tokens": 200.0}, 0.0),
        ({"usage_prompt_tokens": 200.0}, None),
        ({"usage_prompt_cache_read_tokens": 0.0, "usage_prompt_tokens": 0.0}, None),
    ],
)
def test_the_share_of_the_prefix_cache_is_of_all_prompts_together(sums, percent):
    assert OverallUsagePromptCacheReadPct().number(Run(**sums)) == percent


@pytest.mark.parametrize(
    ("tag", "order", "larger_is_better", "requires"),
    [
        ("usage_prompt_tokens", 1000, True, Needs.TOKENS_IN),
        ("usage_prompt_cache_read_tokens", 1010, True, Needs.NOTHING),
        ("usage_prompt_cache_write_tokens", 1015, False, Needs.NOTHING),
        ("usage_prompt_cache_miss_tokens", 1017, False, Needs.NOTHING),
        ("usage_prompt_audio_tokens", 1020, True, Needs.NOTHING),
        ("usage_tool_use_prompt_tokens", 1030, False, Needs.NOTHING),
        ("usage_prompt_audio_seconds", 1040, True, Needs.NOTHING),
        ("usage_completion_tokens", 1100, True, Needs.TOKENS_OUT),
        ("usage_reasoning_tokens", 1110, True, Needs.TOKENS_OUT),
        ("usage_completion_audio_tokens", 1120, True, Needs.TOKENS_OUT),
        ("usage_accepted_prediction_tokens", 1130, True, Needs.TOKENS_OUT),
        ("usage_rejected_prediction_tokens", 1140, False, Needs.TOKENS_OUT),
        ("usage_total_tokens", 1200, True, Needs.TOKENS_OUT),
        ("overall_usage_prompt_cache_read_pct", 2012, True, Needs.NOTHING),
        ("total_usage_total_tokens", 2200, True, Needs.TOKENS_OUT),
    ],
)
def test_readers_of_the_references_files_find_what_they_know(tag, order, larger_is_better, requires):
    kind = EVERY[tag]
    found = (kind.order, kind.larger_is_better, kind.requires, kind.group)
    assert found == (order, larger_is_better, requires, "Usage")


def test_differences_need_client_counts_and_stay_off_the_console():
    for kind in (*map(type, DIFFERENCES), UsageDiscrepancyCount):
        assert Needs.CLIENT_TOKENS in kind.requires
        assert kind.order is None
    assert (UsageDiscrepancyCount.fold, UsageDiscrepancyCount.per_record) == (Aggregation.SUM, False)


def test_every_metric_is_registered_under_its_tag_and_described():
    assert len(EVERY) == 33
    for tag, kind in EVERY.items():
        assert kind.tag == tag
        check_row("metrics", kind)
