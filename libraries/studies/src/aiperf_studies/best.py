"""Which cells are best: by each objective, and by several together."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf.sdk.study import Objective, Study
from msgspec import Struct

from aiperf_studies.cells import CellNumbers
from aiperf_studies.pareto import best, pareto

THROUGHPUT = Objective("request_throughput", "avg", maximize=True)
FIRST_TOKEN = Objective("time_to_first_token", "p99", maximize=False)
LATENCY = Objective("request_latency", "p99", maximize=False)
"""What counts where the user names no objective: throughput, and the first latency that all cells have."""


class BestCell(Struct, frozen=True):
    """The best cell by an objective.  name: ``best_throughput``, or ``best_<tag>_<stat>``.  metric: the mean over its runs."""

    name: str
    objective: Objective
    cell: CellNumbers
    metric: float
    unit: str


def key_of(objective: Objective) -> str:
    """``<tag>_<stat>``."""
    return f"{objective.tag}_{objective.stat}"


def usual_objectives(cells: Sequence[CellNumbers]) -> tuple[Objective, Objective]:
    """Throughput and the 99th percentile of the time to the first token, or of the latency where a cell lacks that."""
    known = [cell for cell in cells if cell.rows]
    streamed = bool(known) and all(key_of(FIRST_TOKEN) in cell.rows for cell in known)
    return THROUGHPUT, FIRST_TOKEN if streamed else LATENCY


def lacking(study: Study, cells: Sequence[CellNumbers]) -> list[str]:
    """A sentence for each filter whose statistic a cell with results lacks."""
    found = []
    for each in study.sla_filters:
        names = [cell.cell.name for cell in cells if cell.rows and cell.mean(f"{each.tag}_{each.stat}") is None]
        if names:
            found.append(f"{each}: {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''} lack it")
    return found


def feasible_cells(study: Study, cells: Sequence[CellNumbers]) -> list[CellNumbers]:
    """The cells with results whose means hold every filter of the user; a cell that lacks a statistic doesn't."""
    found = []
    for cell in cells:
        means = [(each, cell.mean(f"{each.tag}_{each.stat}")) for each in study.sla_filters]
        if cell.rows and all(mean is not None and each.holds(mean) for each, mean in means):
            found.append(cell)
    return found


def best_cells(study: Study, cells: Sequence[CellNumbers]) -> list[BestCell]:
    """The best cell by each objective: the two usual ones, then the user's.  One that no cell has is left out.

    Only feasible cells count, or all where none is.
    """
    cells = feasible_cells(study, cells) or cells
    usual = usual_objectives(cells)
    named = [("best_throughput", usual[0]), ("best_latency_p99", usual[1])]
    named += [(f"best_{key_of(each)}", each) for each in study.objectives]
    found = []
    for name, objective in named:
        index = best([cell.mean(key_of(objective)) for cell in cells], maximize=objective.maximize)
        if index is not None:
            row = cells[index].rows[key_of(objective)]
            found.append(BestCell(name, objective, cells[index], row.mean, row.unit))
    return found


def pareto_cells(study: Study, cells: Sequence[CellNumbers]) -> list[CellNumbers]:
    """The feasible cells, by index, that no other is better than: by the user's objectives, else by the usual two."""
    cells = feasible_cells(study, cells)
    objectives = study.objectives or usual_objectives(cells)
    points = [[cell.mean(key_of(objective)) for objective in objectives] for cell in cells]
    return [cells[index] for index in pareto(points, [objective.maximize for objective in objectives])]
