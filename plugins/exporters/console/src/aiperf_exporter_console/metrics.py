"""Tables of metrics: latency and throughput, then groups; a row that repeats another is named in place of its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from aiperf import Result, Summary
from aiperf.sdk.model import names
from aiperf.sdk.statistics import percentile
from aiperf.sdk.summary import survivors
from msgspec import Struct

from aiperf_exporter_console.table import Look, cells_of, clean, table, total, wrap

NONE = "N/A"
COLUMNS = ("avg", "min", "max", "p99", "p90", "p50", "std")
_DROPPED = ("std", "min", "p90", "max", "p50", "p99")
"""What a narrow table does without, first to go first."""
_LABEL_CELLS = 22
"""Cells of the terminal that a label gets at least, where columns are left out for it."""
_GROUPS = ("effective", "active", "usage", "cache", "prediction", "audio", "reasoning")
"""Tables behind the main one, which has no name, in the order of the reference; others follow these."""
_TRACE = "http trace"
_TRACE_TITLE = "HTTP Trace Timing"
_FROM_DUE = ("schedule_slip", "response_latency", "effective_latency")
"""Latencies from the due time: the same as the plain ones while requests are started when they are due."""
_SLIP_MS = 1.0
_CLOSE = 1e-3
"""Relative difference up to which rows that show the same digits are called the same."""
_TIMES = ("ns", "us", "ms", "sec")
_SHORT = (("time_to_first_token", "time to first token"), ("request_latency", "request latency"))
_RATES = ("request_throughput", "output_token_throughput")
_ENDS = ("p50", "p99")
"""Percentiles of the last lines on a terminal, where none are chosen."""


class Table(Struct, frozen=True):
    """A title and rows of metrics.  repeats: titles of the rows left out, each with that of the row that has its numbers."""

    group: str
    title: str
    results: tuple[Result, ...]
    repeats: tuple[tuple[str, str], ...] = ()

    @property
    def traces(self) -> bool:
        """Whether it has the parts of HTTP requests."""
        return _is_trace(self.group)


def number(value: float | None, decimals: int = 2) -> str:
    """``1,234.56``; N/A where there is none.  What is not 0 doesn't read so: ``0.00041``."""
    if value is None or not math.isfinite(value):
        return NONE
    shown = f"{value:,.{decimals}f}"
    return f"{value:.2g}" if decimals and value and not float(shown.replace(",", "")) else shown


def metric_tables(summary: Summary, columns: Sequence[str], *, trace: bool) -> list[Table]:
    """The tables in their order: the main one, those of the groups, and with *trace* the parts of HTTP requests."""
    groups: dict[str, list[Result]] = {}
    hidden = () if _slipped(summary) else _FROM_DUE
    shown = [result for tag, result in summary.results.items() if result.order is not None and tag not in hidden]
    for result in sorted(shown, key=lambda each: (not each.group and _last(each), each.order, each.tag)):
        groups.setdefault(result.group, []).append(result)
    seen: dict[tuple[str, ...], Result] = {}
    found = []
    for name in sorted(groups, key=_place):
        if not _is_trace(name) or trace:
            title = _TRACE_TITLE if _is_trace(name) else clean(f"{summary.title}: {name.title()}" if name else summary.title)
            found.append(_without_repeats(name, title, groups[name], columns, seen))
    return found


def _without_repeats(
    group: str, title: str, results: Iterable[Result], columns: Sequence[str], seen: dict[tuple[str, ...], Result]
) -> Table:
    """*seen*: the rows so far, by what they show.  Nothing but zeros repeats a row of the same table alone."""
    kept, repeats = [], []
    for result in results:
        stats = result.stats
        keys = dict.fromkeys((*columns, "avg"))
        where = group if not any(stats.values()) else ""
        first = seen.setdefault((where, result.unit, *(number(stats.get(key)) for key in keys)), result)
        if first is result or result.counts or not _close(first, result, keys):
            kept.append(result)
        else:
            repeats.append((clean(result.title), clean(first.title)))
    return Table(group, title, tuple(kept), tuple(repeats))


def _close(one: Result, other: Result, keys: Iterable[str]) -> bool:
    """Whether they are alike beyond the digits that are shown, of which small numbers have few."""
    pairs = ((one.stats.get(key, 0.0), other.stats.get(key, 0.0)) for key in keys)
    return one.title != other.title and all(math.isclose(*pair, rel_tol=_CLOSE) for pair in pairs)


def _last(result: Result) -> bool:
    """Whether the row is behind those of latency and throughput."""
    return result.unit not in _TIMES and "/" not in result.unit


def _slipped(summary: Summary) -> bool:
    """Whether requests were started so late that latencies from the due time say something of their own."""
    slip = summary.results.get("schedule_slip")
    return slip is not None and slip.stats.get("p99", 0.0) > _SLIP_MS


def _place(group: str) -> tuple[bool, int, str]:
    name = group.lower()
    return _is_trace(group), -1 if not name else _GROUPS.index(name) if name in _GROUPS else len(_GROUPS), name


def _is_trace(group: str) -> bool:
    return group.lower().replace("_", " ") == _TRACE


def drawn(one: Table, look: Look, width: int, columns: Sequence[str]) -> Iterator[str]:
    """The table's lines, and sentences on what stands in none of its rows."""
    results = [each for each in one.results if not each.counts]
    labels = [_label(each, look) for each in results]
    cells = {key: [number(result.stats.get(key)) for result in results] for key in columns}
    wide = {key: max(map(len, [key, *cells[key]])) for key in columns}
    natural = max(map(cells_of, ["Metric", *labels]))
    kept = list(columns)
    for key in _leaving(columns):
        if total([min(natural, _LABEL_CELLS), *(wide[name] for name in kept)]) <= width:
            break
        kept.remove(key)
    room = width - total([0, *(wide[name] for name in kept)])
    widths = [min(natural, max(_LABEL_CELLS, room)), *(wide[name] for name in kept)]
    rows = [(label, *(cells[key][i] for key in kept)) for i, label in enumerate(labels)]
    narrow = len(kept) < len(columns)
    if narrow or "avg" not in columns:  # as with many failures the error-adjusted ones, which have a minimum alone
        rows = [row for row in rows if set(row[1:]) != {NONE}]
    if rows:
        yield from table(look, one.title, ["Metric", *kept], rows, widths, right=len(kept))
    else:
        yield look.bold(one.title)
    for line in _below(one, look, columns, kept):
        yield from wrap(line, width, indent="  ")


def _below(one: Table, look: Look, columns: Sequence[str], kept: Sequence[str]) -> Iterator[str]:
    """A sentence each on metrics that are counts, that have none of the columns, or that repeat another, and on columns."""
    for each in one.results:
        if each.counts:
            yield f"{clean(each.title)}: {_shares(each.counts)}"
    alone = [each for each in one.results if "avg" in each.stats and not each.stats.keys() & set(columns)]
    if alone:
        numbers = (f"{_label(each, look)} {number(each.stats['avg'])}" for each in alone)
        yield f"One number each: {', '.join(numbers)}"
    if one.repeats:
        as_first: dict[str, list[str]] = {}
        for title, first in one.repeats:
            as_first.setdefault(first, []).append(title)
        parts = (f"{names(titles)} = {first}" for first, titles in as_first.items())
        yield look.words(f"Same numbers: {'; '.join(parts)}")
    if len(kept) < len(columns):
        yield f"Too narrow for {names([key for key in columns if key not in kept])}: see the JSON."


def _label(result: Result, look: Look) -> str:
    return look.words(clean(f"{result.title} ({result.unit})" if result.unit else result.title))


def _leaving(columns: Sequence[str]) -> list[str]:
    """What a narrow table does without, first to go first: of chosen columns the last one; the first one stays."""
    if set(columns) <= set(COLUMNS):
        return [key for key in _DROPPED if key in columns[1:]] if columns else []
    usual = [key for key in _DROPPED if key in columns[1:] and percentile(key) is None]
    return [*usual, *(key for key in reversed(columns[1:]) if key not in usual)]


def _shares(counts: Mapping[str, int]) -> str:
    """``0 12.5 %, 1 87.5 %``."""
    whole = sum(counts.values()) or 1
    return ", ".join(f"{clean(name)} {100 * count / whole:.1f} %" for name, count in counts.items())


def survival(summary: Summary, look: Look, width: int, columns: Sequence[str]) -> Iterator[str]:
    """Latencies that the requests in flight at the end would change, beside the plain ones above."""
    if found := survivors(summary):
        cut = max(result.stats.get("censored", 0) for result in found)
        requests = "1 request" if cut == 1 else f"{cut:,.0f} requests"
        known = [key for key in columns if any(key in result.stats for result in found)]
        title = f"With {requests} in flight at the end as lasting at least so long (Kaplan-Meier, interpolated)"
        if known:  # else too few requests ended for any percentile
            yield from drawn(Table("", title, tuple(found)), look, width, known)


def in_short(summary: Summary, width: int, columns: Sequence[str]) -> Iterator[str]:
    """Throughput and the first latencies in a sentence, for the end of a terminal, from which the tables have scrolled away."""
    results = summary.results
    parts = [f"{number(results[tag].stats['avg'])} {results[tag].unit}" for tag in _RATES if tag in results]
    chosen = [key for key in columns if percentile(key) is not None] if set(columns) - set(COLUMNS) else _ENDS
    for tag, title in _SHORT:
        if tag in results:
            stats = results[tag].stats
            spread = ", ".join(f"{key} {number(stats[key])}" for key in chosen if key in stats)
            parts += [f"{title} {spread} {results[tag].unit}"] if spread else []
    if parts:
        yield from wrap("; ".join(parts), width, indent="  ")
