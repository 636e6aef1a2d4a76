"""Tables of telemetry sources: what was sampled beside the load, in the profiling phase."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from aiperf import Summary
from aiperf.sdk.summary import SeriesSummary, SourceSummary

from aiperf_exporter_console.table import Look, cells_of, clean, table, total, wrap

_MOST, _MOST_VERBOSE = 12, 400
"""Series of a source with a table in every report, and of one that is shown with ``-v``."""
_COLUMNS = ("avg", "min", "max", "p50", "p99", "total", "rate/s")
_DROPPED = ("min", "p50", "total", "max", "rate/s")
"""What a narrow table does without, first to go first."""
_LABEL_CELLS = 22
"""Cells of the terminal that a label gets at least, where columns are left out for it."""


def sampled(source: SourceSummary, summary: Summary, look: Look, width: int, *, verbose: bool) -> Iterator[str]:
    """The table of one source; nothing where it has no series with numbers, and without *verbose* a line where it has many."""
    main = next((phase.index for phase in summary.phases if phase.kind == "profiling"), None)
    known = [series for series in source.series if series.phase == main and series.kind != "info"]
    if not known:
        return
    title, lines = clean(f"Telemetry: {source.name}"), []
    if len(known) <= _MOST or verbose:
        yield from _table(title, known[:_MOST_VERBOSE], look, width)
        lines += [f"{len(known) - _MOST_VERBOSE:,} further series stand in the JSON."] if len(known) > _MOST_VERBOSE else []
    else:
        yield from wrap(f"{title}: {len(known):,} series; -v shows them.", width)
    if source.failed or source.missed:
        lines.append(f"{source.failed:,} of its samples failed, {source.missed:,} were missed for want of time.")
    for line in lines:
        yield from wrap(line, width)


def _table(title: str, known: Sequence[SeriesSummary], look: Look, width: int) -> Iterator[str]:
    rows = [(_label(series), _cells(series)) for series in known]
    kept = [name for name in _COLUMNS if any(cells[name] for _, cells in rows)]
    natural = max(cells_of(label) for label in ("Series", *(label for label, _ in rows)))

    def wide(name: str) -> int:
        return max(len(name), *(len(cells[name]) for _, cells in rows))

    for name in _DROPPED:
        if total([min(natural, _LABEL_CELLS), *map(wide, kept)]) <= width:
            break
        kept = [each for each in kept if each != name]
    room = max(_LABEL_CELLS, width - total([0, *map(wide, kept)]))
    shown = [(look.words(label), *(cells[name] for name in kept)) for label, cells in rows]
    yield from table(look, title, ["Series", *kept], shown, [min(natural, room), *map(wide, kept)], right=len(kept))


def _label(series: SeriesSummary) -> str:
    several = {"target": series.target} if series.target else {}
    labels = ", ".join(f"{name}={value}" for name, value in {**several, **series.labels}.items())
    return clean(f"{series.name}{f' {labels}' if labels else ''}{f' ({series.unit})' if series.unit else ''}")


def _cells(series: SeriesSummary) -> dict[str, str]:
    """The columns of a series; those that its kind lacks are empty."""
    values = {**series.stats, "rate/s": series.stats.get("rate")}
    if series.kind == "histogram":
        values |= {name: series.estimates.get(f"{name}_estimate") for name in ("p50", "p99")}
    return {name: _number(values.get(name)) for name in _COLUMNS}


def _number(value: float | None) -> str:
    """Four significant digits, all digits before the point."""
    if value is None or not math.isfinite(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
