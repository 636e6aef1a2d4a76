"""What a person reads of several runs at their end: means with intervals, best cells, and findings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from aiperf.sdk.study import Objective, Study
from aiperf_studies.best import best_cells, feasible_cells, key_of
from aiperf_studies.cells import CellNumbers
from aiperf_studies.documents import findings

_SHOWN = (
    ("Request throughput", Objective("request_throughput", "avg", maximize=True)),
    ("Output token throughput", Objective("output_token_throughput", "avg", maximize=True)),
    ("Time to first token, avg", Objective("time_to_first_token", "avg", maximize=False)),
    ("Time to first token, p99", Objective("time_to_first_token", "p99", maximize=False)),
    ("Inter token latency, avg", Objective("inter_token_latency", "avg", maximize=False)),
    ("Inter token latency, p99", Objective("inter_token_latency", "p99", maximize=False)),
    ("Request latency, avg", Objective("request_latency", "avg", maximize=False)),
    ("Request latency, p99", Objective("request_latency", "p99", maximize=False)),
)
_WIDTH_COLUMNS = 100
"""Of lines of text; the table of numbers is narrower."""


def lines(study: Study, cells: Sequence[CellNumbers]) -> Iterator[str]:
    """The lines, without the line behind the last."""
    if not study.sweeps and len(cells) == 1 and len(cells[0].good) > 1:
        yield ""
        yield from _repeats(study, cells[0])
    if study.sweeps and study.objectives:
        yield ""
        for each in best_cells(study, cells)[2:]:
            way = "most" if each.objective.maximize else "least"
            yield f"{way} {each.objective.tag} {each.objective.stat}: {each.cell.cell.name}, {each.metric:,.2f} {each.unit}"
    if study.sweeps and study.sla_filters:
        count, every = len(feasible_cells(study, cells)), ", ".join(map(str, study.sla_filters))
        yield f"{count} of {len(cells)} cells hold {every}" + ("" if count else ": the best of all are named")
    for finding in findings(cells):
        yield from _wrapped(finding.sentence)


def _repeats(study: Study, cell: CellNumbers) -> Iterator[str]:
    level = f"{100 * study.confidence_level:g} %"
    yield f"{len(cell.good)} of {len(cell.runs)} runs succeeded; intervals of the mean at {level} confidence"
    head = ("", "mean", "std", "min", "max", "CV", "interval", "unit")
    rows: list[tuple[str, ...]] = [head]
    for title, objective in _SHOWN:
        row = cell.rows.get(key_of(objective))
        if row is not None:
            numbers = (row.mean, row.std, row.min, row.max)
            cv = f"{100 * row.cv:.1f} %" if row.mean else "-"
            rows.append((title, *(f"{each:,.2f}" for each in numbers), cv, f"{row.ci_low:,.2f} … {row.ci_high:,.2f}", row.unit))
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(head))]
    for cells in rows:
        sized = enumerate(zip(cells, widths, strict=True))
        parts = [text.ljust(width) if column in (0, len(head) - 1) else text.rjust(width) for column, (text, width) in sized]
        yield "  ".join(parts).rstrip()


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH_COLUMNS, break_long_words=False, break_on_hyphens=False)
