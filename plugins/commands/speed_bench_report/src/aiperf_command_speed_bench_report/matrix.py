"""The matrix: a row for each model, a column for each category, a mean of runs in each cell."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from aiperf_command_speed_bench_report.acceptance import Acceptance

_PREFIXES = ("speed_bench_", "spec_al_")
_ORDERS = (
    ("coding", "humanities", "math", "multilingual", "qa", "rag", "reasoning", "roleplay", "stem", "summarization", "writing"),
    ("low_entropy", "mixed", "high_entropy"),
    ("gsm8k", "math500", "mtbench", "humaneval", "mbpp"),
)
"""Columns where all categories are of one kind."""
_UNKNOWN = "unknown"


class CategoryRun(Struct, frozen=True):
    """What one run gives.  label: of the run, for people.  number: None where it has none."""

    label: str
    model: str
    category: str
    number: Acceptance | None


def category_of(configuration: Mapping[str, Any]) -> str | None:
    """The category that the run's first data set with one selects; None where there is none."""
    datasets = configuration.get("datasets")
    for entry in datasets if isinstance(datasets, list) else ():
        name = (entry.get("format") or entry.get("dataset")) if isinstance(entry, dict) else None
        for prefix in _PREFIXES:
            if isinstance(name, str) and name.startswith(prefix) and name != prefix:
                return name.removeprefix(prefix)
    return None


def model_of(configuration: Mapping[str, Any]) -> str:
    """The run's first model."""
    models = configuration.get("models")
    items = models.get("items") if isinstance(models, dict) else None
    first = items[0] if isinstance(items, list) and items else None
    name = first.get("name") if isinstance(first, dict) else None
    return name if isinstance(name, str) and name else _UNKNOWN


class Matrix:
    """The runs in their cells.  columns: the categories, in order.  models: sorted by name."""

    def __init__(self, runs: Sequence[CategoryRun]) -> None:
        self._runs = runs
        self.models = sorted({run.model for run in runs})
        present = {run.category for run in runs}
        order = next((each for each in _ORDERS if present.issubset(each)), sorted(present))
        self.columns = [category for category in order if category in present]

    def runs(self, model: str, category: str) -> list[CategoryRun]:
        """The runs of a cell that have a number."""
        return [run for run in self._runs if (run.model, run.category) == (model, category) and run.number is not None]

    def row(self, model: str) -> list[float | None]:
        """A number for each column, then their mean over the columns that have one; None where there is none."""
        cells = [_mean([run.number.value for run in self.runs(model, each) if run.number]) for each in self.columns]
        return [*cells, _mean([cell for cell in cells if cell is not None])]

    def csv(self) -> str:
        written = io.StringIO()
        writer = csv.writer(written)
        writer.writerows([_no_formula(cell) for cell in row] for row in self._rows(""))
        return written.getvalue()

    def table(self) -> Iterator[str]:
        rows = list(self._rows("-"))
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        for row in rows:
            cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            yield "  ".join([row[0].ljust(widths[0]), *cells])

    def _rows(self, missing: str) -> Iterator[list[str]]:
        yield ["Model", *map(_plain, self.columns), "Overall"]
        for model in self.models:
            yield [_plain(model), *(missing if value is None else f"{value:.2f}" for value in self.row(model))]

    def notes(self) -> Iterator[str]:
        """Where numbers come from, and which are means of several runs."""
        origins: dict[str, list[str]] = {}
        for run in self._runs:
            if run.number is not None:
                origins.setdefault(run.number.origin, []).append(run.label)
        for origin, labels in origins.items():
            yield f"from {origin}" + ("" if len(origins) == 1 else f": {', '.join(labels)}")
        for model in self.models:
            for category in self.columns:
                if (count := len(self.runs(model, category))) > 1:
                    yield f"{_plain(model)}, {_plain(category)}: the mean of {count} runs"


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _plain(text: str) -> str:
    """On one line, without characters that a terminal obeys."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _no_formula(cell: str) -> str:
    """What a spreadsheet would compute becomes a text."""
    return f"'{cell}" if cell[:1] in {"=", "+", "-", "@"} else cell


__all__ = ["CategoryRun", "Matrix", "category_of", "model_of"]
