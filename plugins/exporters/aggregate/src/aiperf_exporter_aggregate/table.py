"""Numbers of runs for the console: a line's share behind each run, and the table at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aiperf.sdk.study import Objective, Study
from aiperf.sdk.summary import Summary
from aiperf_studies.best import key_of, pareto_cells
from aiperf_studies.cells import CellNumbers

_GAP = "  "
_LONGEST = 24
"""Characters of a value that are shown."""
_REQUESTS = Objective("request_throughput", "avg", maximize=True)
_FIRST_TOKEN, _LATENCY = "time_to_first_token", "request_latency"


class _Column(NamedTuple):
    title: str
    objective: Objective
    digits: int


_COLUMNS = (
    _Column("tokens/s", Objective("output_token_throughput", "avg", maximize=True), 1),
    _Column("TTFT p99 ms", Objective(_FIRST_TOKEN, "p99", maximize=False), 2),
    _Column("ITL p99 ms", Objective("inter_token_latency", "p99", maximize=False), 2),
    _Column("latency p95 ms", Objective(_LATENCY, "p95", maximize=False), 2),
)


def numbers_of_run(summary: Summary) -> Iterator[str]:
    """Throughput, and the time to the first token or the latency."""
    first, name = (_FIRST_TOKEN, "TTFT") if _FIRST_TOKEN in summary.results else (_LATENCY, "latency")
    for objective, text in (
        (_REQUESTS, "{:,.2f} requests/s"), (Objective(first, "p50", maximize=False), name + " p50 {:,.2f} ms"),
        (Objective(first, "p99", maximize=False), "p99 {:,.2f} ms"),
    ):  # fmt: skip
        value = objective.of(summary)
        if value is not None:
            yield text.format(value)


def table(study: Study, cells: Sequence[CellNumbers], width: int) -> str:
    """The cells of a sweep, with means over the runs of a cell, or the runs of a load; no wider than *width*.

    A star marks the cells that no other cell beats: in the objectives of the user, else in the usual ones.
    """
    return _of_cells(study, cells, width) if study.sweeps else _of_runs(study, width)


def _of_cells(study: Study, cells: Sequence[CellNumbers], width: int) -> str:
    keys = list(dict.fromkeys(key for cell in cells for key in cell.cell.parameters))
    best = {cell.cell.index for cell in pareto_cells(study, cells)}
    failed = any(run.summary is None for run in study.runs)
    head = [*(["cell"] if study.scenarios else []), *keys]
    rows = []
    for cell in cells:
        values = [_short(cell.cell.parameters.get(key)) for key in keys]
        numbers = [_number(cell.mean(key_of(column.objective)), column) for column in _COLUMNS]
        of = f" of {len(cell.runs)}" if failed else ""
        star = "*" if cell.cell.index in best else ""
        rows.append([*([cell.cell.name] if study.scenarios else []), *values, *numbers, f"{len(cell.good)}{of}", star])
    return _fitted([[*head, *(column.title for column in _COLUMNS), "runs", "Pareto"], *rows], len(head), 2, width)


def _of_runs(study: Study, width: int) -> str:
    rows = [["run", *(column.title for column in _COLUMNS), "verdict"]]
    for run in study.runs:
        summary = run.summary
        values = [None if summary is None else column.objective.of(summary) for column in _COLUMNS]
        numbers = map(_number, values, _COLUMNS)
        rows.append([run.label, *numbers, "failed" if summary is None else summary.measurement.verdict])
    return _fitted(rows, 1, 1, width)


def _short(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _number(value: float | None, column: _Column) -> str:
    return "-" if value is None else f"{value:,.{column.digits}f}"


def _fitted(rows: Sequence[Sequence[str]], left: int, right: int, width: int) -> str:
    """The rows as text; where they are too wide, columns of numbers are left out, from the right.

    *left*, *right*: columns that stay at either side.
    """
    kept = [list(row) for row in rows]
    while True:
        widths = [max(len(row[at]) for row in kept) for at in range(len(kept[0]))]
        if sum(widths) + len(_GAP) * (len(widths) - 1) <= width or len(widths) <= left + right + 1:
            break
        for row in kept:
            del row[-right - 1]
    lines = []
    for row in kept:
        sized = enumerate(zip(row, widths, strict=True))
        cells = [text.ljust(size) if at < left else text.rjust(size) for at, (text, size) in sized]
        lines.append(_GAP.join(cells).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines) + "\n"
