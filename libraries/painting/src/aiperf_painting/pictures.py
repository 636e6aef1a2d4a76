"""A figure as a picture: its axes, marks, legend and caption, and the file."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from aiperf import AiperfError, Figure, atomic
from aiperf.sdk.figures import described
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from aiperf_painting.axes import dress, fit, shade
from aiperf_painting.kinds import draw
from aiperf_painting.labels import label_points
from aiperf_painting.legend import name_series
from aiperf_painting.marks import draw_lines, reach, say_lines
from aiperf_painting.placing import Ground, home_of
from aiperf_painting.styles import SMALL, THEMES, Size, Theme, inches_of, shown, styles

_LEAST_WIDTH = 20
"""Characters of a line of the caption."""
_PAD_INCHES = 0.07
"""Around the picture."""
_CAPTION_SHARE, _CAPTION_LINE_INCHES, _LEAST_CAPTION = 0.2, 0.135, 3
"""Most part of a picture's height that the caption takes, height of a line, and the lines that it has in any case."""
_CHARACTERS_PER_INCH = 15.3
"""Of a line of the caption, at its size."""
_APART = 3.0
"""Pixels between a legend and the data."""
_THIN_PIXELS = 4.0
"""Of a bar that has no edges of its own."""
_MOST_WORDS = 20_000
"""Characters of the text for those who don't see the picture."""


def picture(figure: Figure, path: Path, *, theme: str, caption: Sequence[str] = (), size: Size = Size()) -> Path:  # noqa: B008
    """Draw *figure* into *path*, a PNG or SVG by its ending, with the lines of *caption* and the figure's notes below it.

    theme: ``light`` or ``dark``.

    Raises:
        AiperfError: It can't be written.
    """
    look = THEMES[theme]
    canvas = Canvas(figsize=size.inches, dpi=size.dpi, facecolor=look.paper, layout="constrained")
    engine: Any = canvas.get_layout_engine()
    engine.set(w_pad=_PAD_INCHES, h_pad=_PAD_INCHES)
    axes = canvas.add_subplot()
    second = None if figure.y2 is None else axes.twinx()
    chosen, thin = styles(figure, look), _thin(figure, size)
    handles = [
        draw(home_of(axes, second, series.axis), series, chosen[series.name], look, thin=thin) for series in figure.series
    ]
    reach(axes, second, figure)
    dress(axes, second, figure, look)
    shade(canvas, axes, figure, look)
    lines = draw_lines(axes, second, figure, chosen, look)
    legend = name_series(axes, figure, handles, look, inside=True)
    if caption or figure.notes:
        _say_below(canvas, caption, figure.notes, size, look)
    stands = fit(canvas, [axes] if second is None else [axes, second], figure)
    if legend is not None or lines or any(any(series.labels) for series in figure.series):
        ground = Ground(canvas, axes, second, figure) if stands else _laid_out(canvas, axes, second, figure)
        if legend is not None and ground.hidden(box := legend.get_window_extent(ground.renderer).padded(_APART)):
            legend.remove()
            name_series(axes, figure, handles, look, inside=False)
            ground = _laid_out(canvas, axes, second, figure)
        elif legend is not None:
            ground.taken.append(box)
        say_lines(lines, axes, second, ground, look)
        label_points(axes, second, figure, ground, look)
    _write(canvas, figure, path, size)
    return path


def _thin(figure: Figure, size: Size) -> float:
    """Width of a bar below which its edges would hide it, in units of x."""
    if figure.x.log:
        return 0.0
    columns = [values for series in figure.series for name, values in series.columns() if name[0] == "x"]
    reach = max(float(values.max()) for values in columns) - min(float(values.min()) for values in columns)
    return _THIN_PIXELS * reach / size.width


def _laid_out(canvas: Canvas, axes: Axes, second: Axes | None, figure: Figure) -> Ground:
    """The ground for texts, once the layout has decided where points are."""
    canvas.draw_without_rendering()
    return Ground(canvas, axes, second, figure)


def _say_below(canvas: Canvas, caption: Sequence[str], notes: Sequence[str], size: Size, look: Theme) -> None:
    """Write the caption and the notes; in shorter lines where letters are wide."""
    width = int(_CHARACTERS_PER_INCH * size.inches[0])
    lines = "\n".join(_caption(caption, notes, size, width))
    said = canvas.supxlabel(lines, color=look.ink, fontsize=SMALL, x=0.01, ha="left", parse_math=False)
    room = size.inches[0] - 3 * _PAD_INCHES
    while (wide := max(inches_of(line, SMALL) for line in said.get_text().split("\n"))) > room and width > _LEAST_WIDTH:
        width = int(min(width - 1, width * room / wide))
        said.set_text("\n".join(_caption(caption, notes, size, width)))


def _caption(caption: Sequence[str], notes: Sequence[str], size: Size, width: int) -> list[str]:
    """Lines below the picture of so many characters: of the caption as many as there is room for, and the notes."""
    parts, own = ([part for line in lines for part in textwrap.wrap(shown(line, 10 * width), width, subsequent_indent="   ")]
                  for lines in (caption, notes))  # fmt: skip
    most = max(_LEAST_CAPTION, int(_CAPTION_SHARE * size.inches[1] / _CAPTION_LINE_INCHES) - len(own))
    if len(parts) > most:
        parts = [*parts[: most - 1], f"– … {len(parts) - most + 1} further lines"]
    return parts + own


def _write(canvas: Canvas, figure: Figure, path: Path, size: Size) -> None:
    kind, words = path.suffix.removeprefix("."), shown(described(figure), _MOST_WORDS)
    about = {"Title": shown(figure.title), "Description": words} | ({"Date": None} if kind == "svg" else {})
    try:
        with atomic(path) as draft, rc_context({"svg.hashsalt": path.name}), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            canvas.savefig(draft, format=kind, dpi=size.dpi, metadata=about)
            if kind == "svg":
                label = f"<svg role=\"img\" aria-label={quoteattr(words)} "
                Path(draft).write_text(Path(draft).read_text().replace("<svg ", label, 1))
    except OSError as error:
        why = error.strerror or error
        raise AiperfError(f"{path} can't be written: {why}", "choose another place with --output") from error
