"""What the server says of itself beside what the client saw, for each target and engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from aiperf import Evidence, Point
from aiperf.sdk.summary import SeriesSummary
from aiperf.sdk.table import Cell, SummaryTable, TableColumn, Tables, WhenShown

from aiperf_table_reconciliation.client import Client, urls_of
from aiperf_table_reconciliation.engines import Engine, engine_of, queued
from aiperf_table_reconciliation.options import ReconciliationOptions
from aiperf_table_reconciliation.over_time import over_time
from aiperf_table_reconciliation.rows import COLUMNS, Compared, compare
from aiperf_table_reconciliation.server import Server

_FIRST = (
    "running", "waiting", "kv_use", "prefix_hits", "acceptance_length", "acceptance_rate", "external_prefix_hits",
    "preemptions",
)  # fmt: skip
"""What a person wants to know first, in this order; the short table has it."""
_LEVELS = (
    TableColumn("quantity"), TableColumn("unit"), TableColumn("avg"), TableColumn("min"), TableColumn("max"),
    TableColumn("p50"), TableColumn("p99"), TableColumn("engine"), TableColumn("target"),
)  # fmt: skip
_MOST_LEVELS = 8
_CURVES = (
    TableColumn("quantity"), TableColumn("unit"), TableColumn("at", "s"), TableColumn("values"), TableColumn("engine"),
    TableColumn("target"),
)  # fmt: skip
_FAMILIES = (TableColumn("family"), TableColumn("kind"), TableColumn("series"))


class Reconciliation(Tables[ReconciliationOptions]):
    """Reads the series of all telemetry sources whose families an inference engine has."""

    @classmethod
    def queued(cls, points: Sequence[Point]) -> float | None:
        return queued(points)

    def tables(self, evidence: Evidence) -> Iterator[SummaryTable]:
        main = evidence.phase.index
        series = [one for source in evidence.summary.telemetry for one in source.series if one.phase == main]
        expected = None if self.options is None else self.options.expected_acceptance_length
        found = []
        for target, server in _servers(series):
            client = Client(evidence, urls_of(evidence, target))
            carried = _carried(evidence, target, server, client)
            lacks = _lacks(evidence, target) or carried
            found.append(compare(server, client, target, expected, lacks, alone=bool(carried)))
        if not found:
            yield from _unknown(series)
            return
        if levels := _levels(found):
            yield SummaryTable("server_load", "Load of the server", _LEVELS, levels)
        notes = tuple(note for each in found for note in each.notes)
        rows = tuple(row.cells(each.server.engine.name, each.target) for each in found for row in each.rows)
        shared = " (shared server)" if any(each.shared for each in found) else ""
        title = f"What the server says beside what the client saw{shared}"
        if rows:
            yield SummaryTable("reconciliation", title, COLUMNS, rows, notes, WhenShown.VERBOSE)
        if curves := tuple(_curves(evidence)):
            yield SummaryTable("reconciliation_over_time", "The server over time", _CURVES, curves, shown=WhenShown.NEVER)


def _lacks(evidence: Evidence, target: str) -> str:
    """Why the target's counts are not those of the whole phase; empty where they are."""
    main = evidence.phase.index
    for one in (each for source in evidence.summary.telemetry for each in source.targets if each.name == target):
        if main in one.late:
            return f"its first figures came {one.late[main]:.1f} s behind the begin"
        if any(index < main for index in one.unsettled):
            return "its counters still grew when the phase before had ended"
        if main in one.partial:
            return "it has no figures of the end"
        if main in one.unsettled:
            return "its counters still grew when the last figures were taken"
    return ""


def _carried(evidence: Evidence, target: str, server: Server, client: Client) -> str:
    """Why requests of the phases before may be among those of this one; empty where they aren't.

    A server that counts late, or a machine that is too busy to read its page in time.
    """
    count = next((each for each in server.engine.counts if each.quantity == "requests"), None)
    answered = None if count is None else server.count(count)
    if count is None or answered is None or answered <= client.sent or not client.whole:
        return ""
    main = evidence.phase.index
    earlier = [
        one for source in evidence.summary.telemetry for one in source.series
        if one.phase < main and one.target == target and engine_of(one.name) == server.engine
    ]  # fmt: skip
    seen = sum(each.valid for each in evidence.summary.phases if each.index < main)
    lacking = seen - (Server(server.engine, earlier).count(count) or 0) if earlier else 0
    if not 0 < answered - client.sent <= lacking:
        return ""
    return f"it counted {answered - client.sent:g} of the requests of the phase before in this one"


def _servers(series: Sequence[SeriesSummary]) -> Iterator[tuple[str, Server]]:
    """The engines of each target, in the order in which they come."""
    found: dict[tuple[str, str], tuple[Engine, list[SeriesSummary]]] = {}
    for one in series:
        if engine := engine_of(one.name):
            found.setdefault((one.target, engine.name), (engine, []))[1].append(one)
    for (target, _), (engine, own) in found.items():
        yield target, Server(engine, own)


def _curves(evidence: Evidence) -> Iterator[tuple[Cell, ...]]:
    """A row for each quantity of each target and engine, with its points."""
    known = [source for source in evidence.summary.telemetry if any(engine_of(one.name) is not None for one in source.series)]
    for window in (each for each in evidence.windows if each.phase == evidence.phase.index):
        for source in known:
            for target, engine, quantity, unit, points in over_time(evidence.samples(source.name), window):
                seconds, values = zip(*points, strict=True)
                yield quantity, unit, seconds, values, engine.name, target


def _levels(found: Sequence[Compared]) -> tuple[tuple[Cell, ...], ...]:
    """Rows of the short table: one quantity of all targets, then the next."""
    rows: list[tuple[Cell, ...]] = []
    for quantity in _FIRST:
        for each in found:
            if quantity in each.levels:
                unit, level = each.levels[quantity]
                rows.append((quantity, unit, *level, each.server.engine.name, each.target))
    return tuple(rows[:_MOST_LEVELS])


def _unknown(series: Sequence[SeriesSummary]) -> Iterator[SummaryTable]:
    """The families that a target has, where no engine's are among them."""
    kinds = {one.name: one.kind for one in series if one.target}
    counts = Counter(one.name for one in series if one.target)
    if counts:
        rows = tuple((name, kinds[name], count) for name, count in sorted(counts.items()))
        note = "No inference engine that is known here has these families."
        yield SummaryTable("server_families", "Families of the server's metrics", _FAMILIES, rows, (note,), WhenShown.VERBOSE)


__all__ = ["Reconciliation"]
