"""The readings of pages, from the journal: what ``server_metrics_export.jsonl`` has a line of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import Target
from aiperf.parts.samples import read_samples, sample_files
from aiperf.sdk.series import Line, Moment, Sample, SeriesHeader, SourceHeader, Value
from msgspec import Struct

from aiperf_exporter_server_metrics.families import SOURCE


class Scrape(Struct, frozen=True):
    """A reading of a page.  values: of all its series, by number."""

    endpoint: str
    moment: Moment
    values: dict[int, Value]
    updated: bool


class Scrapes:
    """The readings of a run in their order; *series* has the headers of those so far, by number."""

    def __init__(self, journal: Path) -> None:
        self.series: dict[int, SeriesHeader] = {}
        self._path = next((path for path in sample_files(journal) if _is_ours(path)), None)

    def __iter__(self) -> Iterator[Scrape]:
        names: tuple[str, ...] = ()
        known: dict[int, dict[int, Value]] = {}
        for line in () if self._path is None else read_samples(self._path):
            match line:
                case SourceHeader():
                    names = tuple(target.name for target in line.targets)
                case SeriesHeader():
                    self.series[line.id] = line
                case Sample():
                    values = known.setdefault(line.target, {})
                    updated = _take(line, values)
                    yield Scrape(names[line.target] if names else "", line.moment, dict(values), updated)


def lines(target: Target) -> Iterator[dict[str, Any]]:
    """The lines of the file: readings with a change."""
    assert target.journal is not None
    scrapes = Scrapes(target.journal)
    profiling = [index for index, kind in enumerate(target.kinds) if kind == "profiling"]
    for scrape in scrapes:
        if scrape.updated:
            yield {**_times(scrape), "metrics": _metrics(scrape, scrapes.series), **_more(scrape.moment, target, profiling)}


def buckets(header: SeriesHeader, value: list[float]) -> Iterator[tuple[str, float]]:
    """The buckets of a histogram's value: upper bound, and how many observations were at most that."""
    yield from zip([*map(repr, header.bounds), "+Inf"], value[1:], strict=True)


def _is_ours(path: Path) -> bool:
    first: Line | None = next(iter(read_samples(path)), None)
    return isinstance(first, SourceHeader) and first.ref.name == SOURCE


def _take(sample: Sample, known: dict[int, Value]) -> bool:
    """Bring *known* up to date; gives whether anything changed."""
    changed = bool(sample.ended or sample.timed)
    for number in sample.ended:
        known.pop(number, None)
    for number, value in (*sample.values.items(), *((number, value) for number, _, value in sample.timed)):
        if known.get(number) != value:
            known[number] = value
            changed = True
    return changed


def _times(scrape: Scrape) -> dict[str, Any]:
    moment = scrape.moment
    latency = moment.took_ns
    if moment.sent_ns is not None and moment.first_byte_ns is not None:
        latency = moment.first_byte_ns - moment.sent_ns
    return {"endpoint_url": scrape.endpoint, "timestamp_ns": moment.wall_ns, "endpoint_latency_ns": latency}


def _metrics(scrape: Scrape, series: dict[int, SeriesHeader]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for number, value in scrape.values.items():
        header = series[number]
        point: dict[str, Any] = {"labels": header.labels} if header.labels else {}
        if isinstance(value, list):
            point |= {"buckets": dict(buckets(header, value)), "sum": value[0], "count": value[-1]}
        else:
            point["value"] = value
        found.setdefault(header.name, []).append(point)
    return found


def _more(moment: Moment, target: Target, profiling: list[int]) -> dict[str, Any]:
    """The instants, and the phase where one runs."""
    fields: dict[str, Any] = {"request_sent_ns": moment.sent_ns, "first_byte_ns": moment.first_byte_ns}
    index = moment.phase
    if 0 <= index < len(target.kinds):
        kind = target.kinds[index]
        fields |= {
            "benchmark_phase": kind, "phase_index": index,
            "profiling_index": profiling.index(index) if index in profiling else None,
            "phase_name": target.phases[index], "phase_kind": kind,
        }  # fmt: skip
    return {name: value for name, value in fields.items() if value is not None}
