"""Figures of the page as files: numbers as CSV, pictures as SVG, and a list."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from aiperf import AiperfError, Figure, PlotSeries
from aiperf.sdk.redaction import redact

from aiperf_command_plot.files import LIST, listed, painter

_COLUMNS = ("x", "y", "x_low", "x_high", "y_low", "y_high", "values")


def saved(figures: Sequence[tuple[str, Figure]], caption: Sequence[str], failures: Sequence[str]) -> dict[str, bytes]:
    """The files by name: of each figure its numbers, and its picture where the extra ``plots`` is installed."""
    files: dict[str, bytes] = {}
    further = list(failures)
    try:
        module = painter()
    except AiperfError as error:
        module = None
        further.append("; ".join((error.message, *error.hints)))
    with tempfile.TemporaryDirectory(prefix="aiperf-pictures-") as folder:
        for name, figure in figures:
            files[f"{name}.csv"] = as_csv(figure).encode()
            if module is not None:
                path = Path(folder) / f"{name}.svg"
                module.picture(figure, path, theme="light", caption=caption)
                files[path.name] = path.read_bytes()
    files[LIST] = listed(caption, figures, "csv" if module is None else "svg", further).encode()
    return files


def as_csv(figure: Figure) -> str:
    """A row for each point: its series, numbers, label and run; no text is a formula."""
    names = [name for name in _COLUMNS if any(getattr(one, name) is not None for one in figure.series)]
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(map(_cell, ("series", figure.x.label, figure.y.label, *names[2:], "label", "run")))
    for one in figure.series:
        writer.writerows(_rows(one, names))
    return written.getvalue()


def _rows(one: PlotSeries, names: Sequence[str]) -> Iterator[list[object]]:
    columns = [getattr(one, name) for name in names]
    numbers = [[""] * len(one.x) if column is None else column.tolist() for column in columns]
    texts = [[*map(_cell, given)] if given else [""] * len(one.x) for given in (one.labels, one.runs)]
    for row in zip(*numbers, *texts, strict=True):
        yield [_cell(one.name), *row]


def _cell(text: str) -> str:
    """Without secrets; what a spreadsheet would compute becomes a text."""
    shown = redact(text)
    return f"'{shown}" if shown[:1] in {"=", "+", "-", "@", "\t", "\r"} else shown


__all__ = ["as_csv", "saved"]
