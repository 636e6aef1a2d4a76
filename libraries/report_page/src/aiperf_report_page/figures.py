"""Figures of the page: their data for figure.js, what they show in words, and pictures for readers without JavaScript."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import msgspec
import numpy as np
from aiperf import AiperfError, Figure, PlotRun
from aiperf.sdk.command import PluginOptions
from aiperf.sdk.exporter import visible
from aiperf.sdk.redaction import redact_json
from aiperf_plotting.documents import as_documents
from aiperf_plotting.drawing import Drawing
from aiperf_plotting.installed import wanted_plots

from aiperf_report_page.markup import escaped, listed, section

_PAINTING = "aiperf_painting"
_WIDTH, _HEIGHT = 960, 480
"""Pixels of a picture."""
_LEFT_OUT = ("plot", "runs", "description")
"""Of the objects that ``aiperf plot --json`` prints."""


class PicturePainter(Protocol):
    """The module that draws pictures, see ``aiperf_painting``."""

    def Size(self, width: int, height: int) -> Any:  # noqa: N802  # a class
        """Pixels of a picture."""

    def picture(self, figure: Figure, path: Path, *, theme: str, size: Any) -> Path:
        """Draw *figure* into *path*."""


def installed_painter() -> PicturePainter | None:
    """What draws pictures; None where the extra ``plots`` is not installed."""
    try:
        return import_module(_PAINTING)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in (_PAINTING, "matplotlib"):
            raise
        return None


def figures(
    runs: Sequence[PlotRun], plugin_options: PluginOptions, painter: PicturePainter | None
) -> tuple[str, list[str]]:  # fmt: skip
    """The section of all figures that the installed plots make of *runs*, and a sentence on each plot that failed."""
    failures: list[str] = []
    try:
        plots = wanted_plots(plugin_options, (), failures)
    except AiperfError as error:
        return section("figures-of-runs", "Figures", f"<p>{escaped(error.message)}</p>\n"), []
    drawing = Drawing(runs, asked=False)
    drawn = drawing.figures(plots)
    failures += drawing.failures
    documents = as_documents(drawn, drawing.runs)
    with TemporaryDirectory(prefix="aiperf-report-") as folder:
        parts = [
            _figure(document, figure, _picture(figure, Path(folder), painter, failures))
            for document, (_, figure) in zip(documents, drawn, strict=True)
        ]
    lacking = "" if parts else "<p>The runs have none of the numbers that the installed plots show.</p>\n"
    missed = f"<h3>Not drawn</h3>\n{listed(failures)}" if failures else ""
    grid = f'<div id="figures">\n{"".join(parts)}</div>\n' if parts else ""
    return section("figures-of-runs", "Figures", lacking, grid, missed), failures


def _figure(document: dict[str, Any], figure: Figure, picture: str) -> str:
    name, title = escaped(document["plot"]), escaped(figure.title)
    notes = escaped(" · ".join((*figure.notes, *([f"darker: more {figure.shade}"] if figure.shade else []))))
    words = escaped(document["description"])
    shown = picture or "<p class=notes>This figure is drawn by the page's script; its numbers in words are below.</p>"
    about = f'id="figure-{name}" role="group" aria-label="{title}"'
    return (
        f'<div class="panel figure" {about}><h3>{title}</h3>\n<div class="plot"></div>'
        f'<ul class="legend"></ul><noscript>{shown}</noscript>\n<p class="notes">{notes}</p>\n'
        f'<details><summary>In words</summary><p class="words">{words}</p></details>\n'
        f'<script type="application/json">{_island(document)}</script></div>\n'
    )


def _picture(figure: Figure, folder: Path, painter: PicturePainter | None, failures: list[str]) -> str:
    """An ``img`` with the picture in it; "" without a painter."""
    if painter is None:
        return ""
    try:
        path = painter.picture(figure, folder / "figure.png", theme="light", size=painter.Size(_WIDTH, _HEIGHT))
    except AiperfError as error:
        failures.append(f"the picture {figure.title}: {error.message}")
        return ""
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{escaped(figure.title)}" width="{_WIDTH}" height="{_HEIGHT}" src="data:image/png;base64,{data}">'


def _island(document: dict[str, Any]) -> str:
    """The figure as JSON that ends no script: numbers have seven digits, as many as a screen shows thousands of times over."""
    kept = {name: value for name, value in document.items() if name not in _LEFT_OUT and value not in ((), "", None)}
    kept["series"] = [{name: value for name, value in series.items() if name != "rows"} for series in document["series"]]
    text = visible(redact_json(msgspec.json.encode(kept, enc_hook=_numbers).decode()).encode()).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _numbers(values: Any) -> msgspec.Raw:
    """An array of finite numbers."""
    return msgspec.Raw(f"[{','.join(np.char.mod('%.7g', np.asarray(values, dtype=np.float64)).tolist())}]".encode())


__all__ = ["PicturePainter", "figures", "installed_painter"]
