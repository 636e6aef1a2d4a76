"""The contracts of the package's plugins with material for them.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiperf import MetricDeclaration, Summary, Target, Unit
from aiperf.parts.samples import SampleWriter, sample_path
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.series import Line, Moment, Sample, SeriesHeader, SourceHeader, TargetHeader
from aiperf.sdk.summary import SeriesSummary, SourceSummary, TargetSummary
from aiperf.sdk.telemetry import SeriesKind, TelemetryContext
from aiperf.sdk.verdict import Evidence
from aiperf.testing import (
    MetricFamilyContract,
    SummaryExporterContract,
    TablesContract,
    TelemetryContract,
    sample_evidence,
)
from msgspec.structs import replace

from aiperf_metric_network import NetworkProbes
from aiperf_metric_network.lines import ProbeLines
from aiperf_metric_network.metrics import NetworkMetrics
from aiperf_metric_network.options import NetworkOptions
from aiperf_metric_network.probe import DIRECT, FAILURE, RTT, SERIES
from aiperf_metric_network.table import NetworkTable

URL = "http://127.0.0.1:8000"
ASKED = NetworkOptions(network_latency_automatic=True)
LABELS = URL, "127.0.0.1", "8000", DIRECT


class NetworkProbesContract(TelemetryContract):
    source = NetworkProbes
    options = ASKED

    @pytest.fixture(autouse=True)
    def listener(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Something that listens."""
        with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
            context = TelemetryContext((f"http://127.0.0.1:{server.getsockname()[1]}",), ("m",))
            monkeypatch.setattr(type(self), "context", context)
            yield


class PlainLatency(MetricDeclaration):
    """A latency of the run."""

    title, unit = "Latency", Unit.NANOSECONDS

    def __init__(self, tag: str) -> None:
        self.tag = tag


class NetworkMetricsContract(MetricFamilyContract):
    family = NetworkMetrics(ASKED)
    plugin_options = {tag: PlainLatency(tag) for tag in ("time_to_first_token", "request_latency")}


def rtt(avg: float, url: str = URL, **labels: str) -> SeriesSummary:
    """The round trip to a server in the profiling phase, in ms."""
    stats = {**dict.fromkeys(("avg", "p50", "p99"), avg), "min": avg / 2, "max": 2 * avg, "count": 12.0}
    known = dict(zip(("url", "host", "port", "via"), (url, *LABELS[1:]), strict=True)) | labels
    return SeriesSummary("network", 0, RTT, "gauge", "ms", known, "", stats, target=url)


def failure(count: float, error: str) -> SeriesSummary:
    known = dict(zip(("url", "host", "port", "via"), LABELS, strict=True)) | {"error": error}
    return SeriesSummary("network", 0, FAILURE, "info", "", known, "", {"count": count}, target=URL)


def source(*series: SeriesSummary) -> SourceSummary:
    targets = (TargetSummary(URL, 1.0, 12),)
    return SourceSummary("network", "aiperf-metric-network", "0.1.0", 1.0, 12, 0, 0, series, targets=targets)


def evidence(*series: SeriesSummary, others: tuple[SourceSummary, ...] = ()) -> Evidence:
    """A run with these series, each with as many samples as it counts."""

    def samples(name: str) -> Iterator[Line]:
        for number, each in enumerate(series):
            yield SeriesHeader(number, each.name, SeriesKind(each.kind), each.unit, each.labels)
            for at in range(round(each.stats["count"])):
                yield Sample(Moment(at, at, 1, 0), {number: each.stats.get("avg", 1.0)}, ended=[*{*range(number)}])

    return sample_evidence(telemetry=(source(*series), *others), read_samples=samples)


class NetworkTableContract(TablesContract):
    tables = NetworkTable
    options = ASKED
    cases = ((evidence(rtt(1.5)), ("network_latency",)), (evidence(), ()))


class ProbeLinesContract(SummaryExporterContract):
    exporter = ProbeLines
    options = ASKED

    def summary(self) -> Summary:
        return replace(super().summary(), telemetry=(source(rtt(0.5)),))

    def target(self, directory: Path) -> Target:
        return Target(directory, journal=directory / "journal")

    def prepare(self, directory: Path) -> None:
        journal = directory / "journal"
        journal.mkdir()
        ref = PluginRef("telemetry", "network", "its contract", "its contract", "1")
        writer = SampleWriter(sample_path(journal, 0), SourceHeader(ref, 1.0, (TargetHeader(URL, 1.0),)))
        start_ns = super().summary().start_ns
        good, bad = SERIES.point(RTT, 0.5, *LABELS), SERIES.point(FAILURE, 1.0, *LABELS, "no answer in 1 s")
        for number, point in enumerate((good, bad, good)):
            writer.add([point], Moment(number + 1, start_ns + number, 1, 0))
        writer.close()
