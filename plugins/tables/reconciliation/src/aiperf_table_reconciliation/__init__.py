"""What the server says of itself beside what the client saw, for each target and engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from aiperf import Evidence, Point
from aiperf.sdk.summary import SeriesSummary
from aiperf.sdk.table import Cell, SummaryTable, TableColumn, Tables, WhenShown
from aiperf_servers import Client, carried, counts_requests, engine_of, lacks, over_time, queued, servers, urls_of

from aiperf_table_reconciliation.options import ReconciliationOptions
from aiperf_table_reconciliation.rows import COLUMNS, Compared, compare

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
        expected = None if self.options is None else self.options.expected_acceptance_length
        found = []
        for target, server in servers(evidence):
            client = Client(evidence, urls_of(evidence, target))
            own = carried(evidence, target, server, client)
            lack = lacks(evidence, target) or own
            counts = counts_requests(evidence, server)
            found.append(compare(server, client, target, expected, lack, alone=bool(own), counts_requests=counts))
        if not found:
            main = evidence.phase.index
            series = [one for source in evidence.summary.telemetry for one in source.series if one.phase == main]
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
