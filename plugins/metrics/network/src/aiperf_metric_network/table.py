"""The round trip to each server, beside what the client's first token has more than the server's."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from urllib.parse import urlsplit

from aiperf import Evidence
from aiperf.sdk.series import Sample, SeriesHeader, whole_samples
from aiperf.sdk.summary import SeriesSummary
from aiperf.sdk.table import Cell, SummaryTable, TableColumn, Tables
from aiperf_servers import Client, ObservedTime, is_at_url, lacks, servers, urls_of

from aiperf_metric_network.options import NetworkOptions
from aiperf_metric_network.probe import FAILURE, PROXY, RTT, TLS

_STATISTICS = ("avg", "min", "p50", "p99", "max")
_TTFT = "time_to_first_token"
_COLUMNS = (
    TableColumn("server"), TableColumn("probes"), TableColumn("failed"), *(TableColumn(name, "ms") for name in _STATISTICS),
    TableColumn("first_token_client_less_server", "ms"),
)  # fmt: skip


class NetworkTable(Tables[NetworkOptions]):
    """A row for each server under test; none in runs that did not measure."""

    def tables(self, evidence: Evidence) -> Iterator[SummaryTable]:
        phase = evidence.phase.index
        series = [
            each for source in evidence.summary.telemetry if source.name == "network" for each in source.series
            if each.phase == phase
        ]  # fmt: skip
        by_url: dict[str, list[SeriesSummary]] = {}
        for each in series:
            by_url.setdefault(each.labels["url"], []).append(each)
        if by_url:
            longer, counts = _client_less_server(evidence), _counts(evidence)
            rows = tuple(_row(url, found, counts[url], longer.get(_address(url))) for url, found in by_url.items())
            notes = tuple(note for url, found in by_url.items() for note in _notes(url, found, counts[url]))
            yield SummaryTable("network_latency", "Round trip of the network", _COLUMNS, rows, notes)


def _counts(evidence: Evidence) -> dict[str, Counter[str]]:
    """By URL, the probes of the phase and of its edges by the series that they gave a value of."""
    series: dict[int, SeriesHeader] = {}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in whole_samples(evidence.samples("network")):
        match line:
            case SeriesHeader():
                series[line.id] = line
            case Sample() if line.moment.phase == evidence.phase.index:
                for number in line.values:
                    counts[series[number].labels["url"]][series[number].name] += 1
    return counts


def _row(url: str, found: list[SeriesSummary], counts: Counter[str], longer_ms: float | None) -> tuple[Cell, ...]:
    stats = next((each.stats for each in found if each.name == RTT), {})
    return (url, counts.total(), counts[FAILURE], *(stats.get(name) for name in _STATISTICS), longer_ms)


def _notes(url: str, found: list[SeriesSummary], counts: Counter[str]) -> Iterator[str]:
    if failed := counts[FAILURE]:
        errors = ", ".join(dict.fromkeys(each.labels["error"] for each in found if each.name == FAILURE))
        yield f"{failed} of {counts.total()} probes of {url} failed ({errors}): the round trip is that of the others."
    labels = found[0].labels
    if labels["via"] == PROXY:
        proxy = f"{labels['host']}:{labels['port']}"
        yield f"The round trip of {url} is to its proxy {proxy}; the way from there to the server is still in the latencies."
    elif labels["via"] == TLS:
        yield f"The round trip of {url} is to what ends TLS; the way from a front to the server is still in the latencies."


def _address(url: str) -> tuple[str | None, int | None]:
    parts = urlsplit(url)
    return parts.hostname, parts.port


def _client_less_server(evidence: Evidence) -> dict[tuple[str | None, int | None], float]:
    """By host and port of a URL under test: the client's time to first token less the server's own, in ms, means.

    Pages at other places count where none is at the URL, all of them together.  A page that has not the whole phase, or times
    of more requests than were sent, tells nothing.
    """
    times: dict[tuple[bool, tuple[int, ...]], list[ObservedTime]] = {}
    for target, server in servers(evidence):
        observed = server.observed(_TTFT)
        if observed is not None:
            key = is_at_url(evidence, target), urls_of(evidence, target)
            times.setdefault(key, []).append(observed if not lacks(evidence, target) else ObservedTime(0.0, math.inf))
    found: dict[tuple[str | None, int | None], float] = {}
    for (_, indices), parts in sorted(times.items()):  # those at the URL come last, and stay
        client = Client(evidence, indices)
        seen, own = client.latency(_TTFT, "avg"), ObservedTime(*map(sum, zip(*parts, strict=True)))
        if seen is not None and own.mean_ms is not None and own.number <= client.sent:
            found |= {_address(evidence.plan.target.urls[index]): seen - own.mean_ms for index in indices}
    return found


__all__ = ["NetworkTable"]
