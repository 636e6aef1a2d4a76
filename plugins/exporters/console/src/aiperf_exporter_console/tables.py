"""Tables of plugins, as the report shows them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

from aiperf.sdk.table import Cell, SummaryTable, TableColumn
from msgspec.structs import replace

from aiperf_exporter_console.table import Look, cells_of, clean, table, total, wrap

_MOST_ROWS, _MOST_PARTS = 40, 8
"""Rows of a table that are shown, and tables into which one is divided; the JSON has all."""
_TEXT_CELLS = 12
"""Cells of the terminal that a column of texts gets at least, where a table is too wide."""


def shown(one: SummaryTable, look: Look, width: int) -> Iterator[str]:
    """The table and its notes, at most *width* wide: a column that finds no room is named below.

    A text that all rows have in common stands below, too.  A table that is too wide is divided where that makes such a text.
    """
    *parts, last = _divided(one, width)
    for part in parts:
        yield from _whole(part, look, width)
        yield ""
    yield from _whole(last, look, width)


def _divided(one: SummaryTable, width: int) -> list[SummaryTable]:
    """The table by the widest of its columns of texts by which its rows are sorted; as it is where it has room, or none is."""
    cells = [[_cell(cell) for cell in row] for row in one.rows]
    wide = [max(map(cells_of, texts)) for texts in zip(map(_name, one.columns), *cells, strict=True)]
    if not cells or total(wide) <= width:
        return [one]
    for i in sorted(range(1, len(wide)), key=lambda i: -wide[i]):
        runs = [tuple(rows) for _, rows in groupby(one.rows, key=lambda row: row[i])]
        texts = {row[i] for row in one.rows}
        if 1 < len(runs) == len(texts) <= _MOST_PARTS and all(isinstance(text, str) for text in texts):
            parts = [replace(one, rows=rows, notes=()) for rows in runs]
            return [*parts[:-1], replace(parts[-1], notes=one.notes)] if min(map(len, runs)) > 1 else [one]
    return [one]


def _whole(one: SummaryTable, look: Look, width: int) -> Iterator[str]:
    one, common = _without_common(one)
    names = [_name(column) for column in one.columns]
    rows = [[_cell(cell) for cell in row] for row in one.rows[:_MOST_ROWS]]
    numeric = [all(not isinstance(row[i], str) for row in one.rows) for i in range(len(names))]
    wide = [max(cells_of(text) for text in (names[i], *(row[i] for row in rows))) for i in range(len(names))]
    least = [
        max(map(cells_of, [*names[i].split(), *(row[i] for row in rows)])) if numeric[i] else min(wide[i], _TEXT_CELLS)
        for i in range(len(names))
    ]
    kept = len(names)
    while kept > 1 and total(least[:kept]) > width:
        kept -= 1
    widths = wide[:kept]
    for i in sorted(range(kept), key=lambda i: (numeric[i], -wide[i])):  # the widest texts give way first
        widths[i] = max(least[i], widths[i] - max(0, total(widths) - width))
    right = {i for i in range(kept) if numeric[i]}
    if rows:
        cells = [[look.words(text) for text in row[:kept]] for row in rows]
        yield from table(look, clean(one.title), [clean(name) for name in names[:kept]], cells, widths, right=right)
    else:
        yield look.bold(clean(one.title))
    lines = [*common, *(clean(note) for note in one.notes)]
    if len(one.rows) > _MOST_ROWS:
        lines.append(f"{len(one.rows) - _MOST_ROWS:,} further rows stand in the JSON.")
    if kept < len(names):
        lines.append(f"Too narrow for {', '.join(names[kept:])}: see the JSON.")
    for line in lines:
        yield from wrap(line, width)


def _without_common(one: SummaryTable) -> tuple[SummaryTable, list[str]]:
    """The table without columns, but for the first one, in which all rows have the same text; and a line on these."""
    if len(one.rows) < 2:
        return one, []
    same = {
        i for i in range(1, len(one.columns))
        if isinstance(one.rows[0][i], str) and all(row[i] == one.rows[0][i] for row in one.rows)
    }  # fmt: skip
    if not same:
        return one, []
    kept = [i for i in range(len(one.columns)) if i not in same]
    common = ", ".join(f"{_name(one.columns[i])} {_cell(one.rows[0][i])}" for i in sorted(same))
    rows = tuple(tuple(row[i] for i in kept) for row in one.rows)
    return replace(one, columns=tuple(one.columns[i] for i in kept), rows=rows), [clean(f"All rows: {common}.")]


def _name(column: TableColumn) -> str:
    return f"{column.name.replace('_', ' ')}{f' ({column.unit})' if column.unit else ''}"


def _cell(cell: Cell) -> str:
    """A number with four significant digits, and all digits before the point; empty where there is none."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return "" if not math.isfinite(cell) else f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"
    return f"{len(cell):,} values" if isinstance(cell, tuple) else clean(cell)
