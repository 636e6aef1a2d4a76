from importlib.metadata import entry_points

import numpy as np
import pytest
from aiperf import RecordBatch
from aiperf.testing import MetricContract
from aiperf_metric_http_trace import (
    HttpBlocked,
    HttpChunksReceived,
    HttpConnecting,
    HttpConnectionOverhead,
    HttpConnectionReused,
    HttpDataReceived,
    HttpDataSent,
    HttpDnsLookup,
    HttpDuration,
    HttpReceiving,
    HttpSending,
    HttpTlsHandshaking,
    HttpTotal,
    HttpWaiting,
)
from aiperf_testing.batches import columns_of, sample_batch
from aiperf_testing.manifests import check_row
from hypothesis import given
from hypothesis import strategies as st

EVERY = (
    HttpBlocked(), HttpDnsLookup(), HttpConnecting(), HttpTlsHandshaking(), HttpSending(), HttpWaiting(), HttpReceiving(),
    HttpConnectionReused(), HttpDataSent(), HttpDataReceived(), HttpChunksReceived(), HttpConnectionOverhead(), HttpDuration(),
    HttpTotal(),
)  # fmt: skip
PARTS = ("blocked", "dns_lookup", "connecting", "sending", "waiting", "receiving")


@pytest.mark.parametrize("place", range(len(EVERY)), ids=lambda place: EVERY[place].tag)
class TestEachKeepsTheContract(MetricContract):
    metric = EVERY[0]

    @pytest.fixture(autouse=True)
    def of(self, place):
        self.metric, self.needed = EVERY[place], EVERY[:place]


def measured(**columns: float) -> dict[str, float]:
    names = ("started_ns", "connected_ns", "sent_end_ns", "first_byte_ns", "last_byte_ns", "dns_ns", "connect_ns", "tls_ns",
             "reused", "bytes_sent", "bytes_received", "reads")  # fmt: skip
    known = {name: np.array([columns.get(name, 0)], dtype=np.float64) for name in names}
    found = columns_of(EVERY, RecordBatch(known, np.ones(1, dtype=bool)))
    return {tag.removeprefix("http_req_"): float(column[0]) for tag, column in found.items()}


# Started at 1,000; 40 in the pool, 100 for the name, 250 to connect and 300 for TLS; sent until 1,750; answer 2,000 to 2,600.
FRESH = {
    "started_ns": 1000, "dns_ns": 100, "connect_ns": 250, "tls_ns": 300, "connected_ns": 1690, "sent_end_ns": 1750,
    "first_byte_ns": 2000, "last_byte_ns": 2600,
}  # fmt: skip


WORKED = {
    "http_req_blocked": 40,
    "http_req_dns_lookup": 100,
    "http_req_connecting": 550,  # TLS is a part of it
    "http_req_tls_handshaking": 300,
    "http_req_sending": 60,
    "http_req_waiting": 250,
    "http_req_receiving": 600,
    "http_req_connection_reused": 0,
    "http_req_data_sent": 2048,
    "http_req_data_received": 512,
    "http_req_chunks_received": 3,
    "http_req_connection_overhead": 690,
    "http_req_duration": 910,
    "http_req_total": 1600,
}


def test_values_are_those_worked_out_by_hand():
    found = measured(**FRESH, bytes_sent=2048, bytes_received=512, reads=3)
    assert {f"http_req_{part}": value for part, value in found.items()} == WORKED


def test_an_open_connection_is_waited_for_and_not_opened():
    found = measured(started_ns=1000, connected_ns=1030, sent_end_ns=1040, first_byte_ns=1200, last_byte_ns=1200, reused=1)
    assert (found["blocked"], found["connecting"], found["dns_lookup"], found["receiving"]) == (30, 0, 0, 0)
    assert found["connection_reused"] == 1
    assert found["total"] == 200  # the request latency of an answer that comes at once


def test_an_early_answer_has_no_negative_waiting_time():
    found = measured(**FRESH | {"first_byte_ns": 1720})
    assert (found["sending"], found["waiting"]) == (30, 0)


def test_parallel_spans_never_make_the_blocked_time_negative():
    found = measured(**FRESH | {"connect_ns": 900})
    assert (found["blocked"], found["dns_lookup"], found["connecting"]) == (0, 100, 590)


durations = st.integers(0, 10**12)


@given(st.lists(durations, min_size=5, max_size=5), durations, durations, durations)
def test_the_parts_always_add_up_to_the_whole(steps, dns, connect, tls):
    times = np.cumsum(steps).tolist()
    names = ("started_ns", "connected_ns", "sent_end_ns", "first_byte_ns", "last_byte_ns")
    found = measured(**dict(zip(names, times, strict=True)), dns_ns=dns, connect_ns=connect, tls_ns=tls)
    assert sum(found[part] for part in PARTS) == found["total"] == times[-1] - times[0]
    assert all(found[part] >= 0 for part in PARTS)
    assert found["connection_overhead"] + found["duration"] == found["total"]
    assert found["tls_handshaking"] <= found["connecting"]


def test_readers_of_the_references_files_find_what_they_know():
    orders = [(metric.tag.removeprefix("http_req_"), metric.order, metric.shown.value) for metric in EVERY]
    assert orders == [
        ("blocked", 2000, "ms"), ("dns_lookup", 2010, "ms"), ("connecting", 2020, "ms"), ("tls_handshaking", 2025, "ms"),
        ("sending", 2030, "ms"), ("waiting", 2040, "ms"), ("receiving", 2050, "ms"), ("connection_reused", 2060, "ratio"),
        ("data_sent", 2070, "KB"), ("data_received", 2090, "KB"), ("chunks_received", 2100, "count"),
        ("connection_overhead", 2110, "ms"), ("duration", 2120, "ms"), ("total", 2130, "ms"),
    ]  # fmt: skip
    assert {metric.group for metric in EVERY} == {"HTTP trace"}


def test_what_was_observed_of_a_run_adds_up():
    batch = sample_batch()
    found = columns_of(EVERY, batch)
    valid = batch.valid
    total = sum(found[f"http_req_{part}"] for part in PARTS)
    np.testing.assert_array_equal(total[valid], (batch["last_byte_ns"] - batch["started_ns"])[valid])


def test_every_metric_is_registered_under_its_tag_and_described():
    registered = {each.name: each.load() for each in entry_points(group="aiperf.metrics") if "http_trace" in each.value}
    assert registered == {metric.tag: type(metric) for metric in EVERY}
    for kind in registered.values():
        check_row("metrics", kind)
