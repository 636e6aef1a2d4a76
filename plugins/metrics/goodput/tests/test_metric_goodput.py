
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from aiperf import Aggregation, ConfigError, Metric, Needs, Over, RecordBatch, RunMetric, Unit, UsageError
from aiperf.parts.tools import specs, validate
from aiperf.sdk.columns import Bounds, ragged
from aiperf.testing import MetricContract
from aiperf_metric_goodput import GoodputMetrics
from aiperf_metric_goodput.options import GoodputOptions
from aiperf_metric_goodput.slos import Slo, read_slos
from aiperf_testing.batches import columns_of
from aiperf_testing.manifests import check_row

ABSENT = float("nan")
MS = 1e6


class Latency(Metric):
    tag = "request_latency"
    title = "Request Latency"
    short = "Req Latency"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    adjusted = True

    def column(self, batch):
        return batch["last_token_ns"] - batch["started_ns"]


class First(Metric):
    tag = "time_to_first_token"
    title = "Time to First Token"
    short = "TTFT"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS

    def column(self, batch):
        return batch["first_token_ns"] - batch["started_ns"]


class Speed(Metric):
    tag = "output_token_throughput_per_user"
    title = "Output Token Throughput Per User"
    unit = Unit.TOKENS_PER_SECOND_PER_USER
    larger_is_better = True

    def column(self, batch):
        return batch["output_tokens"]


class Gaps(Metric):
    tag = "inter_chunk_latency"
    title = "Inter Chunk Latency"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS

    def column(self, batch):
        return batch.lists("gap_ns")


class Failed(Metric):
    tag = "error_isl"
    title = "Error Input Sequence Length"
    unit = Unit.TOKENS
    over = Over.FAILED

    def column(self, batch):
        return batch["input_tokens"]


class Rate(RunMetric):
    tag = "request_throughput"
    title = "Request Throughput"
    unit = Unit.REQUESTS_PER_SECOND


KNOWN = (Latency(), First(), Speed(), Gaps())
OTHERS = {metric.tag: metric for metric in (*KNOWN, Failed(), Rate())}


def family(*words: str, unfit: dict[str, Needs] | None = None) -> dict[str, Metric | RunMetric]:
    made = GoodputMetrics(GoodputOptions(goodput=list(words)))
    others = {tag: metric for tag, metric in OTHERS.items() if tag not in (unfit or {})}
    return {metric.tag: metric for metric in made.metrics(others, unfit or {})}


def scores(tag: str, *words: str, **columns: list[float]) -> list[float]:
    """A metric's values over requests that start at zero; times in ms."""
    count = max(map(len, columns.values()))
    known = {name: np.full(count, ABSENT) for name in ("last_token_ns", "first_token_ns", "output_tokens")}
    known |= {"started_ns": np.zeros(count)}
    gaps = [[gap * MS for gap in row] for row in columns.pop("gaps", [[]] * count)]
    known |= {name: np.array(column) * (MS if name.endswith("_ns") else 1) for name, column in columns.items()}
    batch = RecordBatch({**known, "gap_ns": ragged(gaps, gaps)}, np.ones(count, dtype=bool))
    return columns_of((*KNOWN, family(*words)[tag]), batch)[tag].tolist()


def ranges(tag: str, *words: str, low: list[float], high: list[float], last: list[float]) -> list[tuple[float, float]]:
    """Of requests whose first token came between *low* and *high* (ms), the least and the greatest of a metric."""
    count = len(low)
    columns = {
        "started_ns": np.zeros(count), "last_token_ns": np.array(last) * MS, "first_token_ns": np.array(high) * MS,
        "output_tokens": np.full(count, 1.0),
    }  # fmt: skip
    batch = RecordBatch(columns, np.ones(count, dtype=bool))
    values = columns_of(KNOWN[:2], batch)
    first, estimates = values["time_to_first_token"], np.array(low) * MS
    viewed = batch.viewed(values.__getitem__, {"time_to_first_token": Bounds(estimates, first, first - estimates)})
    found = family(*words)[tag].bounds(viewed)
    return list(zip(found.low.tolist(), found.high.tolist(), strict=True))


def test_a_request_is_good_for_certain_or_maybe():
    # known to be fast; maybe; known to be slow; maybe, and slow as a whole
    given = {"low": [5, 5, 20, 5], "high": [5, 20, 20, 20], "last": [30, 30, 30, 90]}
    words = "time_to_first_token:10", "request_latency:50"
    assert ranges("good_request_count", *words, **given) == [(1, 1), (0, 1), (0, 0), (0, 0)]
    assert ranges("slo_time_to_first_token_failed_alone", *words, **given) == [(0, 0), (0, 1), (1, 1), (0, 0)]
    assert ranges("slo_request_latency_failed_alone", *words, **given) == [(0, 0), (0, 0), (0, 0), (0, 1)]


class TestGoodRequestsKeepTheContract(MetricContract):
    metric = family("request_latency:20 time_to_first_token:12 inter_chunk_latency:3")["good_request_count"]
    needed = KNOWN


class TestFailedAloneKeepsTheContract(MetricContract):
    metric = family("request_latency:20 time_to_first_token:12")["slo_time_to_first_token_failed_alone"]
    needed = KNOWN


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["a_b:1"], [Slo("a_b", 1)]),
        (["a:1 b:2.5", "c:-3"], [Slo("a", 1), Slo("b", 2.5), Slo("c", -3)]),
        (["A-b:1e3"], [Slo("a_b", 1000)]),
        (["TTFT:p99<400", "tpot:20"], [Slo("time_to_first_token", 400, "p99", False), Slo("inter_token_latency", 20)]),
        (["a:p99<400"], [Slo("a", 400, "p99", False)]),
        (["a:P5>=20"], [Slo("a", 20, "p5", True)]),
        (["a:1", "a:p99<2", "a:p50<=1"], [Slo("a", 1), Slo("a", 2, "p99", False), Slo("a", 1, "p50", False)]),
        ([], []),
    ],
)
def test_objectives_are_read_as_typed(words, expected):
    assert read_slos(words) == expected


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("", "empty"),
        ("a", "'a' is not TAG:NUMBER"),
        (":1", "':1' is not TAG:NUMBER"),
        ("a:", "'a:' is not TAG:NUMBER"),
        ("a:fast", "'fast' is no number"),
        ("a:nan", "'nan' is no number"),
        ("a:p99=3", "'p99=3' is no number"),
        ("a:p99<", "'' is no number"),
        ("a:p98<3", "p98 is not available"),
        ("a:p99.9<3", "p99.9 is not available"),
        ("a:1 b:2 a:3", "a is bound twice, to 1 and to 3"),
        ("a:p99<1 a:p99<2", "a:p99 is bound twice"),
    ],
)
def test_a_malformed_objective_is_refused(word, sentence):
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        read_slos([word])
    assert validate(GoodputOptions, specs(GoodputOptions), {"goodput": [word]}, {})[1]


def of_points(monkeypatch, *points: tuple[str, str]):
    """Install metrics: names with ``module:Class``, this module without one."""
    made = [EntryPoint(name, where if ":" in where else f"{__name__}:{where}", "aiperf.metrics") for name, where in points]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: made)


def validated(*words: str):
    return validate(GoodputOptions, specs(GoodputOptions), {"goodput": list(words)}, {})


def test_the_option_keeps_one_objective_a_word(monkeypatch):
    of_points(monkeypatch, ("a", "no:A"), ("b", "no:B"), ("c", "no:C"))
    options, _ = validated("a:1 b:2", "c:p99<3")
    assert options is not None and options.goodput == ["a:1", "b:2", "c:p99<3"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("request_latenci:1", "--goodput: there is no metric 'request_latenci'; did you mean request_latency?"),
        ("ttfb:1", "--goodput: there is no metric 'ttfb'; did you mean time_to_first_token?"),
        ("speed:1", "--goodput: there is no metric 'speed'; for example: time_to_first_token, request_latency"),
    ],
)
def test_a_metric_that_nobody_has_is_refused_with_the_options(word, said, monkeypatch):
    of_points(monkeypatch, ("goodput", "GoodputMetrics"), ("request_latency", "Latency"), ("first", "First"))
    _, errors = validated(word)
    assert [error.message for error in errors] == [said]
    assert validated("request_latency:1", "ttft:1")[1] == [], "a tag may differ from the name of its entry point"


@pytest.mark.parametrize("other", ["GoodputMetrics", "nowhere:Metric"])
def test_where_only_the_run_can_tell_nothing_is_refused(other, monkeypatch):
    of_points(monkeypatch, ("request_latency", "Latency"), ("others", other))
    assert validated("mine:1")[1] == []


def test_a_good_request_meets_every_objective_in_display_units():
    requests = {"last_token_ns": [100, 101, 100, 50], "first_token_ns": [20, 10, 21, ABSENT]}
    words = ("request_latency:100", "time_to_first_token:20")
    assert scores("good_request_count", *words, **requests) == [1, 0, 0, 0]  # equal is good; without a value it isn't


def test_where_more_is_better_the_bound_is_the_least():
    requests = {"output_tokens": [30, 29, ABSENT]}
    assert scores("good_request_count", "output_token_throughput_per_user:30", **requests) == [1, 0, 0]


def test_of_a_list_every_element_must_be_good():
    requests = {"gaps": [[1, 5], [1, 6], []]}
    assert scores("good_request_count", "inter_chunk_latency:5", **requests) == [1, 0, 0]


def test_what_one_objective_costs_is_what_failed_it_alone():
    requests = {"last_token_ns": [100, 200, 100, 200, 200], "first_token_ns": [10, 10, 30, 30, 10]}
    words = ("request_latency:100", "time_to_first_token:20")
    assert scores("slo_request_latency_failed_alone", *words, **requests) == [0, 1, 0, 0, 1]
    assert scores("slo_time_to_first_token_failed_alone", *words, **requests) == [0, 0, 1, 0, 0]


def test_a_percentile_has_no_say_in_which_requests_are_good():
    found = family("request_latency:100", "time_to_first_token:p99<1")
    assert found["good_request_count"].needs == ("request_latency",)
    assert "slo_time_to_first_token_failed_alone" not in found
    assert "good_request_count" not in family("time_to_first_token:p99<1")


class Run:
    """A run of which a value and a few statistics are known."""

    window_s = 1.0

    def __init__(self, good=None, valid=0, failed=0, duration_s=4.0, **statistics):
        self.good, self.valid, self.failed, self.duration_s, self.statistics = good, valid, failed, duration_s, statistics

    def sum(self, tag):
        return self.good if tag == "good_request_count" else None

    value = sum

    def count(self, tag):
        return 0

    def statistic(self, tag, name):
        return self.statistics.get(f"{tag}_{name}")


# Three answers, of which the second is too slow and the third starts too late, and a failure, in 4 s; ninety-nine of a
# hundred first tokens after at most 12 ms, where 20 are allowed.
WORKED = {
    "good_request_count": [1, 0, 0],
    "slo_request_latency_failed_alone": [0, 1, 0],
    "slo_time_to_first_token_failed_alone": [0, 0, 1],
    "slo_request_latency_met": [1, 0, 1],
    "slo_time_to_first_token_met": [1, 1, 0],
    "goodput": 0.25,
    "good_request_fraction": 0.25,
    "slo_time_to_first_token_p99_attained": 1,
    "slo_time_to_first_token_p99_margin": 8,
}


def test_values_are_those_worked_out_by_hand():
    words = ("request_latency:100", "time_to_first_token:20", "time_to_first_token:p99<20")
    requests = {"last_token_ns": [100, 101, 100], "first_token_ns": [20, 10, 21]}
    run = Run(good=1, valid=3, failed=1, time_to_first_token_p99=12.0)
    found = {
        tag: metric.number(run) if isinstance(metric, RunMetric) else scores(tag, *words, **requests)
        for tag, metric in family(*words).items()
    }
    assert found == WORKED


@pytest.mark.parametrize(
    ("run", "rate", "share"),
    [
        (Run(good=6, valid=8, failed=4), 1.5, 0.5),  # 6 in 4 s; of 12
        (Run(good=0, valid=8), 0.0, 0.0),
        (Run(good=None, valid=0, failed=4), 0.0, 0.0),  # nothing succeeded
        (Run(good=None, duration_s=None), None, 0.0),
    ],
)
def test_goodput_is_a_rate_and_a_share_of_ended_requests(run, rate, share):
    found = family("request_latency:1")
    assert found["goodput"].number(run) == rate
    assert found["good_request_fraction"].number(run) == share


@pytest.mark.parametrize(
    ("word", "statistics", "attained", "margin"),
    [
        ("time_to_first_token:p99<400", {"time_to_first_token_p99": 390.0}, 1, 10),
        ("time_to_first_token:p99<400", {"time_to_first_token_p99": 400.0}, 1, 0),
        ("time_to_first_token:p99<400", {"time_to_first_token_p99": 425.0}, 0, -25),
        ("output_token_throughput_per_user:p10>20", {"output_token_throughput_per_user_p10": 25.0}, 1, 5),
        ("output_token_throughput_per_user:p10>20", {"output_token_throughput_per_user_p10": 18.0}, 0, -2),
        ("time_to_first_token:p99<400", {}, 0, None),  # nothing was measured
    ],
)
def test_a_percentile_is_attained_or_not_with_the_margin(word, statistics, attained, margin):
    tag, _, rest = word.partition(":")
    found, run = family(word), Run(**statistics)
    assert found[f"slo_{tag}_{rest[:3]}_attained"].number(run) == attained
    assert found[f"slo_{tag}_{rest[:3]}_margin"].number(run) == margin


def test_requests_that_failed_are_slower_than_any_bound():
    run = Run(request_latency_p99=90.0, adj_request_latency_count=12, adj_request_latency_p50=80.0)
    found = family("request_latency:p99<100")
    assert found["slo_request_latency_p99_attained"].number(run) == 0
    assert found["slo_request_latency_p99_margin"].number(run) is None
    assert family("request_latency:p50<100")["slo_request_latency_p50_margin"].number(run) == 20
    assert found["slo_request_latency_p99_margin"].unit is Unit.MILLISECONDS


@pytest.mark.parametrize(
    ("word", "message", "hint"),
    [
        ("request_latenci:1", "there is no metric 'request_latenci'", "did you mean request_latency?"),
        ("ttfb:1", "there is no metric 'ttfb'", "did you mean time_to_first_token?"),
        ("speed:1", "there is no metric 'speed'", "for example: time_to_first_token, request_latency"),
        ("request_throughput:1", "a number of the whole run, not of requests", "for example"),
        ("error_isl:1", "covers only failed requests", "for example"),
        (
            "output_token_throughput_per_user:p10<20",
            "larger values of output_token_throughput_per_user are better",
            "write output_token_throughput_per_user:p10>20",
        ),
        ("request_latency:p99>20", "smaller values of request_latency are better", "write request_latency:p99<20"),
    ],
)
def test_a_metric_that_is_unknown_or_unfit_refuses_the_run(word, message, hint):
    with pytest.raises(UsageError, match=message) as caught:
        family("inter_chunk_latency:1", word)
    assert caught.value.message.startswith("--goodput: ")
    assert hint in caught.value.hints[0]


def test_a_metric_that_does_not_apply_says_what_the_run_lacks():
    with pytest.raises(ConfigError, match="time_to_first_token doesn't apply to this run: it needs --streaming"):
        family("ttft:1", unfit={"time_to_first_token": Needs.STREAMING})


def test_without_objectives_there_are_no_metrics():
    assert family() == {}


def test_readers_of_the_references_files_find_what_they_know():
    found = family("request_latency:1")
    assert [(metric.tag, metric.title, metric.unit.value) for metric in found.values()][:3] == [
        ("good_request_count", "Good Request Count", "requests"),
        ("good_request_fraction", "GoodRequestFraction", "ratio"),
        ("goodput", "Goodput", "requests/sec"),
    ]
    assert (found["goodput"].order, found["good_request_count"].order) == (1000, None)
    good = found["good_request_count"]
    assert isinstance(good, Metric)
    assert (good.fold, good.per_record) == (Aggregation.SUM, True)
    assert found["slo_request_latency_failed_alone"].title == "Failed Only Req Latency ≤ 1 ms"


def test_the_family_is_registered_and_described():
    assert check_row("metrics", GoodputMetrics).options_model == "aiperf_metric_goodput.options:GoodputOptions"
