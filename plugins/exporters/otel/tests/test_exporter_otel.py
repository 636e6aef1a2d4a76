"""What is sent by OpenTelemetry: names, buckets and attributes, and what becomes of it where nobody takes it."""

import socket
import threading

import numpy as np
import pytest
from aiperf import Metric, Unit
from aiperf.sdk.plan import PhasePlan
from aiperf.testing import sample_batch, scored
from aiperf_exporter_otel.columns import batch_message
from aiperf_exporter_otel.contract import OtelBatchesContract, OtelStreamContract
from aiperf_exporter_otel.conventions import error_type, operation, provider
from aiperf_exporter_otel.link import Link
from aiperf_exporter_otel.messages import MetricValues, PhaseCounts, RecordGroup, ReducedBatch, ReducerEnd, StreamStart
from aiperf_exporter_otel.options import StreamOptions, attributes, endpoint
from aiperf_exporter_otel.process import Reducers, Sender
from aiperf_exporter_otel.sums import Sums
from aiperf_exporter_otel.testing import Collector, values
from aiperf_testing.plans import sample_plan


class TestStreamKeepsTheContract(OtelStreamContract):
    pass


class TestBatchesKeepTheContract(OtelBatchesContract):
    pass


GOOD, BAD = RecordGroup("profiling", "worker-0", "m"), RecordGroup("profiling", "worker-1", "m", failed=True, error="http_5xx")
NAN = float("nan")


def batch(count, *metrics, groups=(GOOD, BAD), group_of=None, reducer=0):
    places = np.zeros(count, np.int32) if group_of is None else np.asarray(group_of, np.int32)
    return ReducedBatch(reducer, count, groups, places.tobytes(), metrics)


def metric(tag, numbers, offsets=None, unit="ms", factor=1e-6, second=1e9):
    lists = b"" if offsets is None else np.asarray(offsets, np.int64).tobytes()
    return MetricValues(tag, tag.title(), unit, factor, second, np.asarray(numbers, np.float64).tobytes(), lists)


def points(sums, name):
    (found,) = [each for each in sums.data().resource_metrics[0].scope_metrics[0].metrics if each.name == name]
    return found.unit, found.data.data_points


@pytest.fixture
def sums():
    return Sums({"service.name": "aiperf"}, "openai", "chat")


def test_a_metric_of_ours_is_one_observation_for_each_request_in_its_unit(sums):
    sums.take_batch(batch(4, metric("decode_duration", [2e6, 6e6, NAN, 20e6], factor=1e-6), group_of=[0, 0, 0, 1]))
    unit, (good, bad) = points(sums, "aiperf.decode_duration")
    assert unit == "ms" and (good.count, good.sum, good.min, good.max) == (2, 8.0, 2.0, 6.0)
    assert list(good.explicit_bounds)[:3] == [0.0, 5.0, 10.0] and list(good.bucket_counts)[:4] == [0, 1, 1, 0]
    assert good.attributes == {
        "aiperf.worker.id": "worker-0", "aiperf.record_processor.id": "reducer-0", "aiperf.benchmark_phase": "profiling",
        "aiperf.was_cancelled": False, "aiperf.has_error": False,
    }  # fmt: skip
    assert bad.attributes["aiperf.has_error"] is True and "error.type" not in bad.attributes


def test_a_list_is_one_observation_for_each_element(sums):
    sums.take_batch(batch(3, metric("inter_chunk_latency", [1e6, 2e6, 3e6], [0, 2, 2, 3]), group_of=[0, 1, 1]))
    _, (first, second) = points(sums, "aiperf.inter_chunk_latency")
    assert (first.count, first.sum, second.count, second.sum) == (2, 3.0, 1, 3.0)


def test_a_metric_of_the_conventions_has_their_name_unit_and_buckets(sums):
    sums.take_batch(batch(2, metric("request_latency", [2e7, 3e9]), group_of=[0, 1]))
    unit, (good, bad) = points(sums, "gen_ai.client.operation.duration")
    assert unit == "s" and (good.sum, bad.sum) == (0.02, 3.0)
    assert list(good.explicit_bounds) == [round(0.01 * 2**n, 2) for n in range(14)]
    assert list(good.bucket_counts).index(1) == 1, "0.02 lies in the bucket up to 0.02"
    assert good.attributes["gen_ai.provider.name"] == "openai" and good.attributes["gen_ai.request.model"] == "m"
    assert "error.type" not in good.attributes and bad.attributes["error.type"] == "http_5xx"


def test_tokens_of_both_directions_share_a_metric(sums):
    given = {"output_token_count": 5, "input_sequence_length": 70}
    sums.take_batch(batch(1, *(metric(tag, [n], unit="tokens", factor=1.0, second=0.0) for tag, n in given.items())))
    unit, found = points(sums, "gen_ai.client.token.usage")
    assert unit == "{token}"
    assert {each.attributes["gen_ai.token.type"]: each.sum for each in found} == {"output": 5, "input": 70}
    assert list(found[0].explicit_bounds) == [4.0**n for n in range(13)]


def test_counts_of_phases_of_one_kind_are_added_up(sums):
    for name, sent in (("one", 5), ("two", 7)):
        sums.take_counts(PhaseCounts(name, "profiling", sent, sent - 1, 1, 0, 2.0, timed_out=name == "two"))
    sums.take_batch(batch(2, groups=(RecordGroup("profiling", "w", "m", cancelled=True),)))
    for name, value in (("requests.sent", 12), ("requests.completed", 10), ("requests.errors", 2), ("requests.cancelled", 2),
                        ("requests.in_flight", 0), ("phase.elapsed_sec", 4.0), ("phase.timeout_triggered", 1)):  # fmt: skip
        _, (point,) = points(sums, f"aiperf.timing.{name}")
        assert (point.value, point.attributes) == (value, {"aiperf.benchmark_phase": "profiling"}), name


def test_what_was_taken_is_skipped_when_a_reducer_tells_it_again(tmp_path):
    taken = []
    reducers = Reducers(str(tmp_path / "s"), lambda message, skip: taken.append((message.count, skip)))

    def told(*counts):
        link = Link(str(tmp_path / "s"), 100)
        for count in counts:
            link.give(batch(count), count)
        link.end(0, 10.0)
        before = len(reducers.ends)
        while len(reducers.ends) == before:
            for key, _ in reducers.selector.select(10.0):
                key.data()

    told(3, 4)
    told(5, 2, 6)
    assert taken == [(3, 0), (4, 0), (6, 0)], "5 and 2 are the 7 of before"
    told(10, 5)
    assert taken[3:] == [(5, 3)], "the first 13 of 15 were taken, and all of the first message"


def test_a_process_that_does_not_read_costs_the_oldest_requests(tmp_path):
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.bind(str(tmp_path / "s"))
    door.listen()
    link = Link(str(tmp_path / "s"), 1000)
    large = metric("x", np.zeros(50_000))
    for _ in range(50):
        link.give(batch(100, large), 100)
    assert 0 < link.dropped < 5000 and link.dropped % 100 == 0
    link.end(0, 0.0)
    door.close()


@pytest.mark.parametrize("address", [None, "/nobody/is/here"])
def test_a_reducer_without_a_listener_goes_on(address):
    link = Link(address, 10)
    link.give(batch(5), 5)
    link.end(0, 10.0)
    assert link.dropped == 0


def start(url, **changed):
    given = {"interval_s": 3600.0, "most_records": 10**6, "request_s": 1.0, **changed}
    return StreamStart(url, "", {}, "_OTHER", "chat", 1, **given)


def test_enough_requests_are_sent_before_their_time(sums):
    collector = Collector()
    told = []
    sender = Sender(start(f"http://127.0.0.1:{collector.port}/v1/metrics", most_records=5), sums, told.append)
    sender.take(batch(5, metric("request_latency", [1e7] * 5)))
    while not collector.requests:
        threading.Event().wait(0.01)
    sender.take(batch(1, metric("request_latency", [1e7])))
    sender.finish()
    (point,) = collector.metrics()["gen_ai.client.operation.duration"].histogram.data_points
    assert (point.count, told, sender.why) == (6, [], None)
    assert values(point.attributes)["gen_ai.operation.name"] == "chat"
    collector.close()


@pytest.mark.parametrize("status", [400, 403])
def test_a_collector_that_refuses_is_told_once(sums, status):
    collector = Collector(status)
    told = []
    sender = Sender(start(f"http://127.0.0.1:{collector.port}/v1/metrics", most_records=1), sums, told.append)
    for number in range(2):
        sender.take(batch(1, metric("request_latency", [1e7])))
        while len(collector.requests) <= number:
            threading.Event().wait(0.01)
    sender.finish()
    assert len(told) == 1 and str(status) in told[0] and str(status) in sender.why
    collector.close()


class _Latency(Metric):
    tag, title, unit, display = "request_latency", "Request Latency", Unit.NANOSECONDS, Unit.MILLISECONDS

    def column(self, batch):
        return batch["ended_ns"] - batch["started_ns"]


def test_a_batch_has_the_lines_of_the_per_request_file(tmp_path):
    plan = sample_plan(tmp_path, phases=(PhasePlan("profiling", "profiling", 0, "burst"),))
    given = sample_batch(12)
    message = batch_message(scored([_Latency()], given), plan, metrics=True)
    assert [(each.tag, each.unit, each.factor) for each in message.metrics] == [("request_latency", "ms", 1e-6)]
    assert message.count == 12 and len(np.frombuffer(message.group_of, np.int32)) == 12
    failed = [group for group in message.groups if group.failed]
    assert failed and all(group.error for group in failed) and all(group.phase == "profiling" for group in message.groups)
    assert batch_message(scored([_Latency()], given), plan, metrics=False).metrics == ()


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("collector", "http://collector/v1/metrics"), ("127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"),
        ("https://c/otlp/", "https://c/otlp/v1/metrics"), ("HTTP://c/v1/metrics", "http://c/v1/metrics"),
    ],
)  # fmt: skip
def test_an_address_is_completed(given, url):
    assert endpoint(given) == url


@pytest.mark.parametrize("given", ["grpc://c:4317", "http://", ":4318", "http://me:word@c", "http://c/v1?key=a", "a b"])
def test_an_address_for_something_else_is_refused(given):
    with pytest.raises(ValueError, match="must"):
        endpoint(given)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("https://api.openai.com/v1", "openai"), ("https://x.openai.azure.com", "azure.ai.openai"),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com", "aws.bedrock"), ("https://api.x.ai", "x_ai"),
        ("https://us-east1-aiplatform.googleapis.com", "gcp.vertex_ai"), ("http://127.0.0.1:8000", "_OTHER"),
        ("https://notopenai.com", "_OTHER"),
    ],
)  # fmt: skip
def test_the_host_names_the_provider(host, name):
    assert provider([host]) == name


@pytest.mark.parametrize(
    ("error", "status", "cancelled", "name"),
    [
        (None, 200, False, ""), (None, None, True, "cancelled"), ('{"message":"a","code":429}', 429, False, "http_4xx"),
        ('{"message":"a"}', 503, False, "http_5xx"), ('{"message":"a"}', None, False, "_OTHER"),
        ('{"message":"a","type":"TimeoutError","code":504}', None, False, "timeout"),
        ('{"message":"a","type":"InvalidInferenceResultError"}', 200, False, "parse_error"),
    ],
)  # fmt: skip
def test_an_error_has_a_type(error, status, cancelled, name):
    assert error_type(error, status, cancelled=cancelled) == name


def test_operations_are_those_of_the_conventions():
    assert [operation(name) for name in ("chat", "completions", "embeddings", "rankings")] == [
        "chat", "text_completion", "embeddings", "chat",
    ]  # fmt: skip


def test_attributes_are_pairs():
    assert attributes(["team=a", "x=b=c"]) == {"team": "a", "x": "b=c"}
    assert attributes(['{"team": "a", "n": 1}']) == {"team": "a", "n": "1"}


@pytest.mark.parametrize("given", ["team:a", "=a", '{"a": '])
def test_an_attribute_of_another_form_is_refused(given):
    with pytest.raises(ValueError, match="is no KEY=VALUE"):
        attributes([given])


def test_settings_without_an_address_are_refused_by_name():
    (said,) = StreamOptions(stream=["timing"]).problems({"stream": "--stream"})
    assert said.startswith("--stream needs --otel-url") and "--streaming" in said


def test_the_end_of_a_reducer_tells_what_was_dropped(tmp_path):
    reducers = Reducers(str(tmp_path / "s"), lambda message, skip: None)
    link = Link(str(tmp_path / "s"), 10)
    link.dropped = 7
    link.end(1, 10.0)
    while not reducers.ends:
        for key, _ in reducers.selector.select(10.0):
            key.data()
    assert reducers.ends == [7] and ReducerEnd(1, 7).dropped == 7
