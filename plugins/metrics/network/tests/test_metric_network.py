"""Probes of the network: where they go, what they find, and latencies without the round trip."""

from __future__ import annotations

import importlib.resources
import json
import socket
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from aiperf.sdk.columns import Floats
from aiperf.sdk.errors import AiperfError
from aiperf.sdk.summary import Result, SeriesSummary, SourceSummary, TargetSummary
from aiperf.sdk.telemetry import TelemetryContext
from aiperf_metric_network import NetworkProbes, probe
from aiperf_metric_network.contract import ASKED, URL, ProbeLinesContract, evidence, failure, rtt
from aiperf_metric_network.lines import ProbeLines
from aiperf_metric_network.metrics import NetworkMetrics, NetworkRtt
from aiperf_metric_network.options import NetworkOptions
from aiperf_metric_network.probe import DIRECT, FAILURE, PROXY, RTT, TLS, NetworkTarget, ProbePlace, places
from aiperf_metric_network.table import NetworkTable
from msgspec.structs import replace

TYPED = {name: f"--{name.replace('_', '-')}" for name in
         ("network_latency_automatic", "network_latency_mean", "network_latency_ping_interval")}  # fmt: skip


@pytest.mark.parametrize(
    ("urls", "found"),
    [
        (["http://a:8000/v1", "http://a:8000/v2"], [("a", 8000, DIRECT)]),
        (["http://a", "https://a"], [("a", 80, DIRECT), ("a", 443, TLS)]),
        (["http://[::1]:8000"], [("::1", 8000, DIRECT)]),
        (["odd://a", "odd://a:7"], [("a", 7, DIRECT)]),
    ],
)
def test_each_host_and_port_is_probed_once(urls: list[str], found: list[tuple[str, int, str]]) -> None:
    assert [(place.host, place.port, place.via) for place in places(urls)] == found


def test_behind_a_proxy_the_probes_go_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("https_proxy", "http://user:secret@p:3128")
    monkeypatch.setenv("no_proxy", "near")
    urls = ["https://far", "https://near", "http://far"]
    assert [(place.host, place.via) for place in places(urls)] == [("far", TLS), ("near", TLS), ("far", DIRECT)]
    monkeypatch.setenv("AIPERF_HTTP_TRUST_ENV", "true")
    assert places(urls)[0] == ProbePlace("https://far", "p", 3128, PROXY)


def test_a_server_without_a_port_is_said() -> None:
    with pytest.raises(AiperfError, match="--network-latency-automatic: no server under test has a TCP port"):
        NetworkProbes(ASKED, TelemetryContext(("odd://a",))).targets()


def test_a_probe_gives_the_round_trip_and_closes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (point,) = NetworkTarget(ProbePlace(URL, "127.0.0.1", port, DIRECT), 1.0).sample()
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1) == b""
    assert point.name == RTT and point.unit == "ms" and 0 < point.value < 1000
    assert point.labels == {"url": URL, "host": "127.0.0.1", "port": str(port), "via": DIRECT}


def test_a_refused_probe_is_a_point_and_the_next_goes_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    target = NetworkTarget(ProbePlace(URL, "127.0.0.1", port, DIRECT), 1.0)
    (point,) = target.sample()
    assert (point.name, point.labels["error"]) == (FAILURE, "Connection refused")
    with socket.create_server(("127.0.0.1", port)):
        assert target.sample()[0].name == RTT


def test_a_host_that_drops_probes_is_a_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener whose queue is full answers no further packet that opens a connection."""
    short = 0.05
    monkeypatch.setattr(probe, "TIMEOUT_S", short)
    monkeypatch.setattr(probe.connected_ns, "__defaults__", (short,))
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.create_connection(server.getsockname()):
        target = NetworkTarget(ProbePlace(URL, *server.getsockname(), DIRECT), 1.0)
        found = [target.sample()[0] for _ in range(3)]
    assert (found[-1].name, found[-1].labels["error"]) == (FAILURE, "no answer in 0.05 s")


def test_an_unknown_host_is_a_point() -> None:
    (point,) = NetworkTarget(ProbePlace("http://no.invalid:80", "no.invalid", 80, DIRECT), 1.0).sample()
    assert point.name == FAILURE and point.labels["error"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"network_latency_automatic": True, "network_latency_mean": 2.0}, "drop one of them"),
        ({"network_latency_ping_interval": 0.5}, "add --network-latency-automatic, or drop it"),
        ({"network_latency_mean": 2.0, "network_latency_ping_interval": 0.5}, "add --network-latency-automatic, or drop it"),
        ({"network_latency_automatic": True, "network_latency_ping_interval": 0.5}, ""),
        ({"network_latency_mean": 0.0}, ""),
    ],
)
def test_options_that_contradict_each_other_are_said(given: dict[str, object], said: str) -> None:
    sentences = NetworkOptions(**given).problems({name: TYPED[name] for name in given})
    assert bool(said) == bool(sentences) and all(said in sentence for sentence in sentences)


def test_a_file_with_a_mean_beside_enabled_measures_nothing() -> None:
    options = NetworkOptions(network_latency_automatic=True, network_latency_mean=3.0)
    assert options.problems(dict.fromkeys(options.fields_set, "run.yaml:3: network_latency")) == []
    assert (options.probing, options.fixed_ms) == (False, 3.0)
    off = NetworkOptions(network_latency_automatic=False, network_latency_mean=3.0)
    (sentence,) = off.problems(dict.fromkeys(off.fields_set, "run.yaml:3: network_latency"))
    assert "is off, and" in sentence


LATENCIES_MS = {
    "time_to_first_token": [3.0, 10.0, 20.0], "time_to_first_output_token": [5.0, 12.0, 24.0],
    "request_latency": [4.5, 45.0, 105.0],
}  # fmt: skip
# Round trips of 4 and 6 ms to two servers, 5 ms on average, which each latency is less by.
WORKED = {
    "network_rtt": [5e6],
    "network_adjusted_time_to_first_token": [0.0, 5e6, 15e6],  # 3 - 5 is less than nothing
    "network_adjusted_time_to_first_output_token": [0.0, 7e6, 19e6],
    "network_adjusted_request_latency": [0.0, 40e6, 100e6],
}


class Run:
    """Totals with these latencies, and round trips to servers."""

    duration_s = window_s = 1.0
    valid, failed, concurrency = 3, 0, None

    def __init__(self, *round_trips_ms: float, rtt_ns: float | None = None) -> None:
        self._series, self._rtt_ns = [rtt(each, f"http://{each}") for each in round_trips_ms], rtt_ns

    def value(self, tag: str) -> float | None:
        return self._rtt_ns if tag == "network_rtt" else None

    def sum(self, tag: str) -> float | None:
        return None

    def count(self, tag: str) -> int:
        return 3

    def statistic(self, tag: str, name: str) -> float | None:
        return None

    def values(self, tag: str) -> Floats | None:
        return np.array(LATENCIES_MS[tag]) * 1e6

    def series(self, source: str, name: str, **labels: str) -> list[SeriesSummary]:
        return self._series if (source, name) == ("network", RTT) else []


def test_latencies_are_less_by_the_mean_round_trip_and_never_negative() -> None:
    given = dict.fromkeys(LATENCIES_MS, NetworkRtt(None))
    found = list(NetworkMetrics(ASKED).metrics(given, {}))
    assert {each.tag: each.values(Run(4.0, 6.0, rtt_ns=5e6)).tolist() for each in found} == WORKED
    assert [each.values(Run()) for each in found] == [None] * 4
    (fixed,) = NetworkMetrics(NetworkOptions(network_latency_mean=2.5)).metrics({}, {})
    assert fixed.values(Run()).tolist() == [2.5e6]
    assert list(NetworkMetrics(NetworkOptions()).metrics(given, {})) == []


def table(*series: SeriesSummary, others: tuple[SourceSummary, ...] = ()):
    (found,) = NetworkTable(ASKED).tables(evidence(*series, others=others))
    (row,) = found.rows
    return dict(zip([column.name for column in found.columns], row, strict=True)), " ".join(found.notes)


def test_failed_probes_are_counted_and_said() -> None:
    row, said = table(rtt(5.0), failure(3.0, "no answer in 1 s"))
    assert (row["probes"], row["failed"], row["avg"], row["max"]) == (15, 3, 5.0, 10.0)
    assert "3 of 15 probes of http://127.0.0.1:8000 failed (no answer in 1 s)" in said
    row, said = table(failure(4.0, "Connection refused"))
    assert (row["probes"], row["failed"], row["avg"]) == (4, 4, None) and "failed (Connection refused)" in said


def test_a_proxy_and_what_ends_tls_are_said() -> None:
    assert table(rtt(5.0))[1] == ""
    assert "to its proxy p:3128" in table(rtt(5.0, via=PROXY, host="p", port="3128"))[1]
    assert "is to what ends TLS" in table(rtt(5.0, via=TLS))[1]


def test_the_clients_first_token_stands_beside_the_servers() -> None:
    url = evidence().plan.target.urls[0]
    stats = {"count": 4.0, "sum": 4 * 0.025}
    series = SeriesSummary("server_metrics", 0, "vllm:time_to_first_token_seconds", "histogram", "", {}, "", stats, target=url)
    page = SourceSummary("server_metrics", "d", "1", 1.0, 4, 0, 0, (series,))
    found = evidence(rtt(5.0, url), others=(page,))
    seen = Result("time_to_first_token", "Time to First Token", "ms", {"avg": 32.0})
    found = replace(found, summary=replace(found.summary, results={seen.tag: seen}))
    (shown,) = NetworkTable(ASKED).tables(found)
    assert shown.rows[0][-1] == pytest.approx(7.0)
    assert table(rtt(5.0, url))[0]["first_token_client_less_server"] is None


def test_pages_without_the_whole_phase_tell_no_first_token() -> None:
    url = evidence().plan.target.urls[0]

    def longer(*pages: tuple[str, float, float], partial: bool = False) -> float | None:
        """What the client's 32 ms are more than the server's, by pages with so many first tokens of this mean in ms."""
        series, targets = [], []
        for page, count, mean_ms in pages:
            stats = {"count": count, "sum": count * mean_ms / 1e3}
            name = "vllm:time_to_first_token_seconds"
            series.append(SeriesSummary("server_metrics", 0, name, "histogram", "", {}, "", stats, target=page))
            targets.append(TargetSummary(page, 1.0, 4, partial=(0,) if partial else ()))
        source = SourceSummary("server_metrics", "d", "1", 1.0, 4, 0, 0, tuple(series), targets=tuple(targets))
        found = evidence(rtt(5.0, url), others=(source,))
        seen = Result("time_to_first_token", "Time to First Token", "ms", {"avg": 32.0})
        found = replace(found, summary=replace(found.summary, results={seen.tag: seen}), read_column=lambda name: np.zeros(24))
        (shown,) = NetworkTable(ASKED).tables(found)
        value = shown.rows[0][-1]
        return None if value is None else round(float(value), 6)

    assert longer((url, 24, 25.0)) == 7.0 and longer((url, 24, 25.0), partial=True) is None
    assert longer((url, 25, 25.0)) is None, "others' requests are among them"
    assert longer(("http://w0:1", 12, 20.0), ("http://w1:1", 12, 30.0)) == 7.0, "servers behind a gateway"
    assert longer((url, 24, 25.0), ("http://w0:1", 24, 31.0)) == 7.0, "the page at the URL comes first"


def test_a_line_has_the_keys_of_the_reference(tmp_path: Path) -> None:
    contract = ProbeLinesContract()
    contract.prepare(tmp_path)
    (artifact,) = ProbeLines(contract.target(tmp_path), ASKED).export(contract.summary())
    assert artifact.path.name == "profile_export_network_latency.jsonl"
    lines = list(map(json.loads, artifact.path.read_text().splitlines()))
    schema = importlib.resources.files("aiperf_metric_network").joinpath("network_latency.schema.json").read_text()
    for line in lines:
        jsonschema.validate(line, json.loads(schema))
    about = {"target_url": URL, "target_host": "127.0.0.1", "target_port": 8000, "probe_type": "tcp_connect"}
    assert [{**line, "timestamp_ns": 0} for line in lines] == [
        {"timestamp_ns": 0, **about, "rtt_ns": 500_000, "success": True},
        {"timestamp_ns": 0, **about, "success": False, "error": "no answer in 1 s"},
        {"timestamp_ns": 0, **about, "rtt_ns": 500_000, "success": True},
    ]
    ProbeLines(contract.target(tmp_path), ASKED).export(replace(contract.summary(), telemetry=()))
    assert not artifact.path.exists()
