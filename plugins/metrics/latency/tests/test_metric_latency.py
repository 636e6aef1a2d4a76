from importlib.metadata import entry_points

import numpy as np
import pytest
from aiperf import Metric, Needs, Ragged, RecordBatch, ragged
from aiperf.testing import MetricContract, RunMetricContract
from aiperf_metric_latency import (
    CreditToStartLatency,
    DecodeDuration,
    EffectiveLatency,
    EndToEndOutputTokenThroughput,
    InterChunkLatency,
    InterTokenLatency,
    OutputTokenThroughputPerUser,
    PrefillThroughputPerUser,
    RequestLatency,
    ResponseLatency,
    ScheduleSlip,
    StreamPrefillLatency,
    StreamSetupLatency,
    TimeToFirstOutputToken,
    TimeToFirstToken,
    TimeToSecondToken,
)
from aiperf_metric_latency.replay import ReplayDegraded, ReplayLagP50, ReplayLagP90, ReplayLagP99
from aiperf_testing.batches import columns_of
from aiperf_testing.manifests import check_row

MS = 1e6
ABSENT = float("nan")


class Outputs(Metric):
    """Stands for another package's metric of this name."""

    tag = "output_sequence_length"
    title = "OSL"

    def column(self, batch):
        return batch["output_tokens"]


class Inputs(Metric):
    tag = "input_sequence_length"
    title = "ISL"

    def column(self, batch):
        return batch["input_tokens"]


NEEDED = {
    InterTokenLatency: (Outputs(),),
    OutputTokenThroughputPerUser: (Outputs(), InterTokenLatency()),
    EndToEndOutputTokenThroughput: (Outputs(), RequestLatency()),
    PrefillThroughputPerUser: (Inputs(), TimeToFirstToken()),
}
ALL = (
    TimeToFirstToken, TimeToSecondToken, TimeToFirstOutputToken, RequestLatency, ResponseLatency, EffectiveLatency,
    ScheduleSlip, DecodeDuration, InterTokenLatency, InterChunkLatency, OutputTokenThroughputPerUser,
    EndToEndOutputTokenThroughput, PrefillThroughputPerUser, CreditToStartLatency, StreamSetupLatency, StreamPrefillLatency,
)  # fmt: skip
OF_A_REPLAY = (ReplayLagP50, ReplayLagP90, ReplayLagP99, ReplayDegraded)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.tag)
class TestEachKeepsTheContract(MetricContract):
    metric = TimeToFirstToken()

    @pytest.fixture(autouse=True)
    def of(self, kind):
        self.metric, self.needed = kind(), NEEDED.get(kind, ())


def test_an_unreadable_event_bounds_the_first_token():
    times = {"started_ns": [1, 1], "first_token_ns": [9, 9], "unreadable_ns": [4, ABSENT]}
    bounds = TimeToFirstToken().bounds(RecordBatch({k: np.array(v) * MS for k, v in times.items()}, np.ones(2, dtype=bool)))
    assert [(part / MS).tolist() for part in (bounds.low, bounds.high, bounds.slack)] == [[3, 8], [8, 8], [5, 0]]
    times["unreadable_ns"] = [ABSENT, ABSENT]
    whole = RecordBatch({k: np.array(v) * MS for k, v in times.items()}, np.ones(2, dtype=bool))
    assert TimeToFirstToken().bounds(whole) is None


def one(**columns: float | list[float]) -> RecordBatch:
    """A batch of one request, times in ms."""

    def column(name, value):
        if isinstance(value, list):
            return ragged([[each * MS for each in value]], [[0.0] * len(value)])
        return np.array([value * MS if name.endswith("_ns") else value])

    names = ("due", "started", "ack", "first_token", "second_token", "first_output", "last_token", "last_byte")
    known = {name: np.array([ABSENT]) for name in ("first_tokens", *(f"{each}_ns" for each in names))}
    return RecordBatch(known | {name: column(name, value) for name, value in columns.items()}, np.array([True]))


def value(kind: type[Metric], batch: RecordBatch) -> float | list[float] | None:
    column = columns_of((*NEEDED.get(kind, ()), kind()), batch)[kind.tag]
    if isinstance(column, Ragged):
        return column.row(0).tolist()
    return None if np.isnan(column[0]) else float(column[0])


# Started at 10 ms, due at 8; reasoning at 30, text at 45 and 100, the stream's end at 104; 5 tokens.
ANSWER = {
    "due_ns": 8, "started_ns": 10, "first_token_ns": 30, "second_token_ns": 45, "first_output_ns": 45, "last_token_ns": 100,
    "last_byte_ns": 104, "ack_ns": 18, "output_tokens": 5, "input_tokens": 40, "gap_ns": [15.0, 55.0],
}  # fmt: skip
WORKED = {
    "time_to_first_token": 20 * MS,
    "time_to_second_token": 15 * MS,
    "time_to_first_output_token": 35 * MS,
    "request_latency": 90 * MS,  # the end marker doesn't count
    "response_latency": 96 * MS,  # the whole answer, from the due time
    "effective_latency": 96 * MS,
    "schedule_slip": 2 * MS,
    "credit_to_start_latency": 2 * MS,
    "stream_setup_latency": 8 * MS,
    "stream_prefill_latency": 12 * MS,  # of the 20 to the first token
    "decode_duration": 70 * MS,
    "inter_token_latency": 70 / 4 * MS,
    "inter_chunk_latency": [15 * MS, 55 * MS],
    "output_token_throughput_per_user": 1000 / 17.5,
    "e2e_output_token_throughput": 5 / 0.090,
    "prefill_throughput_per_user": 40 / 0.020,
    # of a replay that slips by 20 ms at least, by 21 at p50, 80 at p90 and 540 at p99; in ms
    "replay_sched_lag_p50": 1.0,
    "replay_sched_lag_p90": 60.0,
    "replay_sched_lag_p99": 520.0,
    "replay_sched_degraded": 1.0,
}


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.tag)
def test_values_are_those_worked_out_by_hand(kind):
    assert value(kind, one(**ANSWER)) == pytest.approx(WORKED[kind.tag], rel=1e-15)


def test_one_token_has_no_time_between_tokens():
    answer = one(**ANSWER | {"output_tokens": 1})
    assert value(InterTokenLatency, answer) is None
    assert value(OutputTokenThroughputPerUser, answer) is None


@pytest.mark.parametrize(("first", "gaps"), [(3, 6), (ABSENT, 8), (0, 8), (9, 8)])
def test_tokens_of_the_first_content_are_excluded(first, gaps):
    """Nine tokens, three a chunk; where the server's count can't be, the first content is one token."""
    answer = one(**ANSWER | {"output_tokens": 9, "first_token_ns": 30, "last_token_ns": 37.4614, "first_tokens": first})
    assert value(InterTokenLatency, answer) == pytest.approx(7.4614 / gaps * MS, rel=1e-12)


def test_tokens_at_one_instant_have_no_inter_token_latency():
    answer = one(**ANSWER | {"last_token_ns": 30})
    assert value(InterTokenLatency, answer) is None
    assert value(OutputTokenThroughputPerUser, answer) is None
    assert value(DecodeDuration, answer) == 0


def test_an_answer_whose_tokens_nobody_counted_has_no_rates():
    answer = one(**ANSWER | {"output_tokens": ABSENT})
    for kind in (InterTokenLatency, OutputTokenThroughputPerUser, EndToEndOutputTokenThroughput):
        assert value(kind, answer) is None


def test_reasoning_alone_has_a_first_token_and_no_first_output():
    answer = one(**ANSWER | {"first_output_ns": ABSENT})
    assert value(TimeToFirstToken, answer) == 20 * MS
    assert value(TimeToFirstOutputToken, answer) is None


def test_what_was_never_due_has_neither_slip_nor_response_latency():
    for kind in (ScheduleSlip, ResponseLatency, EffectiveLatency, CreditToStartLatency):
        assert value(kind, one(**ANSWER | {"due_ns": ABSENT})) is None


def test_under_its_old_name_the_slip_is_never_negative():
    early = one(**ANSWER | {"due_ns": 11})
    assert (value(ScheduleSlip, early), value(CreditToStartLatency, early)) == (-1 * MS, 0)


def test_the_parts_of_the_first_token_are_experimental():
    assert all(Needs.EXPERIMENTAL in kind.requires for kind in (StreamSetupLatency, StreamPrefillLatency))


def test_an_instant_at_the_start_gives_no_rate_rather_than_infinity():
    answer = one(**ANSWER | {"first_token_ns": 10, "last_token_ns": 10})
    assert value(PrefillThroughputPerUser, answer) is None
    assert value(EndToEndOutputTokenThroughput, answer) is None


def test_chunk_latencies_are_the_gaps_that_are_known():
    batch = one(started_ns=0, gap_ns=[4.0, 3.5, 11.0])
    assert InterChunkLatency().column(batch).row(0).tolist() == [4 * MS, 3.5 * MS, 11 * MS]


def test_gaps_of_one_token_average_to_the_inter_token_latency():
    answer = one(**ANSWER | {"output_tokens": 3, "gap_ns": [15.0, 55.0]})
    assert InterChunkLatency().column(answer).values.mean() == value(InterTokenLatency, answer)


@pytest.mark.parametrize(
    ("kind", "order", "heading", "unit", "larger"),
    [
        (TimeToFirstToken, 100, ("Time to First Token", "TTFT"), "ms", False),
        (TimeToSecondToken, 200, ("Time to Second Token", "TTST"), "ms", False),
        (TimeToFirstOutputToken, 210, ("Time to First Output Token", "TTFO"), "ms", False),
        (RequestLatency, 300, ("Request Latency", "Req Latency"), "ms", False),
        (DecodeDuration, 350, ("Decode Duration", ""), "ms", False),
        (InterTokenLatency, 400, ("Inter Token Latency", "ITL"), "ms", False),
        (InterChunkLatency, None, ("Inter Chunk Latency", "ICL"), "ms", False),
        (OutputTokenThroughputPerUser, 500, ("Output Token Throughput Per User", "Output TPS/User"), "tokens/sec/user", True),
        (EndToEndOutputTokenThroughput, 510, ("E2E Output Token Throughput", "E2E Output TPS/User"), "tokens/sec/user", True),
        (PrefillThroughputPerUser, None, ("Prefill Throughput Per User", ""), "tokens/sec/user", True),
    ],
)
def test_readers_of_the_references_files_find_the_names_they_know(kind, order, heading, unit, larger):
    metric = kind()
    assert (metric.order, (metric.title, metric.short), metric.shown.value) == (order, heading, unit)
    assert metric.larger_is_better is larger


def test_response_latency_stands_right_behind_request_latency():
    orders = sorted(kind().order for kind in ALL if kind().order is not None)
    assert orders[orders.index(RequestLatency().order) :][:3] == [300, ResponseLatency().order, ScheduleSlip().order]
    assert EffectiveLatency().order is None


def test_first_tokens_need_streaming_and_slips_need_due_times():
    streamed = {kind.tag for kind in ALL if kind.requires & Needs.STREAMING}
    assert streamed == {kind.tag for kind in ALL} - {
        "request_latency", "response_latency", "effective_latency", "schedule_slip", "credit_to_start_latency",
        "e2e_output_token_throughput",
    }  # fmt: skip
    paced = {kind.tag for kind in ALL if kind.requires & Needs.PACED}
    assert paced == {"response_latency", "effective_latency", "schedule_slip", "credit_to_start_latency"}


def test_every_metric_is_registered_under_its_tag_and_described():
    registered = {each.name: each.load() for each in entry_points(group="aiperf.metrics") if "metric_latency" in each.value}
    assert registered == {kind.tag: kind for kind in (*ALL, *OF_A_REPLAY)}
    for kind in registered.values():
        check_row("metrics", kind)


class Slips:
    """Totals of a run with these statistics of its schedule slip, in ms."""

    def __init__(self, **statistics: float) -> None:
        self.statistics = statistics

    def statistic(self, tag, name):
        return self.statistics.get(name) if tag == "schedule_slip" else None

    def value(self, tag):
        return ReplayLagP99().number(self) if tag == "replay_sched_lag_p99" else None


@pytest.mark.parametrize("kind", OF_A_REPLAY, ids=lambda kind: kind.tag)
def test_numbers_of_a_replay_are_those_worked_out_by_hand(kind):
    assert kind().number(Slips(min=20.0, p50=21.0, p90=80.0, p99=540.0)) == WORKED[kind.tag]


@pytest.mark.parametrize(("p99", "degraded"), [(520.0, 0), (520.1, 1)])
def test_a_replay_lags_by_what_it_slips_beyond_the_least_slip(p99, degraded):
    run = Slips(min=20.0, p50=21.0, p90=80.0, p99=p99)
    lags = [kind().number(run) for kind in (ReplayLagP50, ReplayLagP90, ReplayLagP99)]
    assert lags == pytest.approx([1, 60, p99 - 20])
    assert ReplayDegraded().number(run) == degraded


def test_of_a_replay_without_requests_nothing_is_said():
    assert [kind().number(Slips()) for kind in (ReplayLagP50, ReplayDegraded)] == [None, None]


@pytest.mark.parametrize("kind", OF_A_REPLAY, ids=lambda kind: kind.tag)
class TestEachOfAReplayKeepsTheContract(RunMetricContract):
    metric = ReplayLagP50()

    @pytest.fixture(autouse=True)
    def of(self, kind):
        self.metric = kind()
