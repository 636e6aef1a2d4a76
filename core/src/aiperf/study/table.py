"""What a person sees of a study: a line for each run that has ended, and the table at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aiperf.foreign import BETWEEN_TOKENS, FIRST_TOKEN, LATENCY, REQUESTS, TOKENS
from aiperf.sdk.study import Objective, Study, StudyCell, StudyRun
from aiperf.sdk.summary import Summary

_USUAL_COLUMNS = 80
_GAP = "  "


class _Column(NamedTuple):
    title: str
    tag: str
    stat: str
    digits: int


_COLUMNS = (
    _Column("tokens/s", TOKENS, "avg", 1), _Column("TTFT p99 ms", FIRST_TOKEN, "p99", 2),
    _Column("ITL p99 ms", BETWEEN_TOKENS, "p99", 2), _Column("latency p95 ms", LATENCY, "p95", 2),
)  # fmt: skip
_USUAL_OBJECTIVES = (Objective(REQUESTS, "avg", True), Objective(FIRST_TOKEN, "p99", False))
_WHOLE_ANSWERS = Objective(LATENCY, "p99", False)
"""In the place of the second where answers came whole."""


def name_of(run: StudyRun, trials: int) -> str:
    """What a person calls the run: its cell alone where each cell has one run."""
    return run.cell.name if run.cell.name and trials == 1 else run.label


def line_of(run: StudyRun, trials: int) -> str:
    """One line on a run that has ended."""
    if run.summary is None:
        return f"{name_of(run, trials)}  failed: {run.failed}"
    summary, parts = run.summary, [name_of(run, trials)]
    first, name = (FIRST_TOKEN, "TTFT") if FIRST_TOKEN in summary.results else (LATENCY, "latency")
    for tag, stat, text in (
        (REQUESTS, "avg", "{:,.2f} requests/s"), (first, "p50", name + " p50 {:,.2f} ms"),
        (first, "p99", "p99 {:,.2f} ms"),
    ):  # fmt: skip
        value = Objective(tag, stat, maximize=True).of(summary)
        if value is not None:
            parts.append(text.format(value))
    if summary.failed:
        parts.append(f"{summary.failed:,} of {summary.valid + summary.failed:,} failed")
    if summary.measurement.verdict != "trustworthy":
        parts.append(summary.measurement.verdict)
    if run.resumed:
        parts.append("measured before")
    return _GAP.join(parts)


def table(study: Study, width: int | None = None) -> str:
    """The cells of a sweep, or the runs of a load, with means over the runs of a cell; no wider than *width*, None for 80.

    A star marks the cells that no other cell beats in every objective: of the user, else the throughput of requests and the
    99th percentile of the time to the first token.
    """
    cells = study.cells
    rows: list[list[str]] = []
    if study.sweeps:
        keys = list(dict.fromkeys(key for cell in cells for key in cell.parameters))
        best = pareto(study)
        head = [*([] if not study.scenarios else ["cell"]), *keys]
        for cell in cells:
            good = [run.summary for run in study.runs_of(cell) if run.summary is not None]
            values = [*([] if not study.scenarios else [cell.name]), *(_short(cell.parameters.get(key)) for key in keys)]
            of = f" of {len(study.runs_of(cell))}" if _mixed(study) else ""
            rows.append([*values, *_numbers(good), f"{len(good)}{of}", "*" if cell.index in best else ""])
        last = ["runs", "Pareto"]
    else:
        head, last = ["run"], ["verdict"]
        for run in study.runs:
            good = [run.summary] if run.summary is not None else []
            rows.append([run.label, *_numbers(good), run.summary.measurement.verdict if run.summary is not None else "failed"])
    return _fitted([[*head, *(column.title for column in _COLUMNS), *last], *rows], len(head), width or _USUAL_COLUMNS)


def _mixed(study: Study) -> bool:
    return any(run.summary is None for run in study.runs)


def _short(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:21]}..."


def _numbers(summaries: Sequence[Summary]) -> list[str]:
    found = []
    for column in _COLUMNS:
        value = _mean(summaries, Objective(column.tag, column.stat, maximize=True))
        found.append("-" if value is None else f"{value:,.{column.digits}f}")
    return found


def _mean(summaries: Sequence[Summary], objective: Objective) -> float | None:
    values = [value for summary in summaries if (value := objective.of(summary)) is not None]
    return sum(values) / len(values) if values else None


def pareto(study: Study) -> set[int]:
    """The indices of the cells that no other cell beats: as good in every objective, and better in one."""
    means: dict[int, tuple[float, ...]] = {}
    summaries = {cell.index: [run.summary for run in study.runs_of(cell) if run.summary is not None] for cell in study.cells}
    objectives = study.objectives or _USUAL_OBJECTIVES
    if not study.objectives and not any(_mean(each, objectives[1]) is not None for each in summaries.values()):
        objectives = (objectives[0], _WHOLE_ANSWERS)
    for index, good in summaries.items():
        values = [_mean(good, objective) for objective in objectives]
        if all(value is not None for value in values):
            means[index] = tuple(
                (value or 0.0) * (1 if objective.maximize else -1) for value, objective in zip(values, objectives, strict=True)
            )
    front: list[tuple[float, ...]] = []
    found: set[int] = set()
    # Sorted from the best first value on, a cell can be beaten by an earlier one alone, and then by one of the front.
    for index in sorted(means, key=lambda index: means[index], reverse=True):
        mine = means[index]
        if not any(other != mine and all(a >= b for a, b in zip(other, mine, strict=True)) for other in front):
            front.append(mine)
            found.add(index)
    return found


def _fitted(rows: Sequence[Sequence[str]], left: int, width: int) -> str:
    """The rows as text; where they are too wide, columns of numbers are left out from the right, before the last two."""
    kept = [list(row) for row in rows]
    fixed = 2 if kept[0][-1] == "Pareto" else 1
    while True:
        widths = [max(len(row[at]) for row in kept) for at in range(len(kept[0]))]
        if sum(widths) + len(_GAP) * (len(widths) - 1) <= width or len(widths) <= left + fixed + 1:
            break
        for row in kept:
            del row[-fixed - 1]
    lines = []
    for row in kept:
        sized = enumerate(zip(row, widths, strict=True))
        cells = [text.ljust(size) if at < left else text.rjust(size) for at, (text, size) in sized]
        lines.append(_GAP.join(cells).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines) + "\n"


def cell_line(cell: StudyCell) -> str:
    """The values of a cell: ``concurrency 4, rate 10``."""
    return cell.label or ", ".join(f"{key} {_short(value)}" for key, value in cell.parameters.items())
