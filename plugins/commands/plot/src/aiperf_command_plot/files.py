"""Pictures as files, and the list of them; what draws is a package of the extra ``plots``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from aiperf import AiperfError, Figure, UsageError, atomic
from aiperf.sdk.figures import described
from aiperf.sdk.redaction import redact

from aiperf_command_plot.options import PlotOptions

_PAINTING, _SENDING = "aiperf_painting", "aiperf_exporter_mlflow.pictures"
LIST = "summary.txt"
_LEAST_PIXELS, _MOST_PIXELS = 200, 8000
"""Of the width and the height of a picture."""


def size_of(text: str) -> tuple[int, int]:
    """Width and height in pixels, of ``1600x800``.

    Raises:
        UsageError: It is no size, or too small or too large for a picture.
    """
    found = re.fullmatch(r"(\d{1,6})x(\d{1,6})", text.strip())
    if found is None:
        raise UsageError(f"--size: {text!r} is no width and height", "write pixels, as --size 1600x800")
    width, height = int(found[1]), int(found[2])
    if not all(_LEAST_PIXELS <= each <= _MOST_PIXELS for each in (width, height)):
        hint = f"width and height are from {_LEAST_PIXELS} to {_MOST_PIXELS} pixels"
        raise UsageError(f"--size: {text!r} is too small or too large", hint)
    return width, height


def painter() -> Any:
    """The module that draws PNG and SVG.

    Raises:
        AiperfError: It is not installed.
    """
    try:
        return import_module(_PAINTING)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in (_PAINTING, "matplotlib"):
            raise
        hints = ("pip install 'aiperf-suite[plots]'", "or print the numbers of the figures: aiperf plot --json")
        raise AiperfError("PNG and SVG need the extra plots, which is not installed", *hints) from error


def sender() -> Any:
    """The module that sends pictures to MLflow.

    Raises:
        AiperfError: It is not installed.
    """
    try:
        return import_module(_SENDING)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != _SENDING.partition(".")[0]:
            raise
        hint = "pip install 'aiperf-suite[mlflow]'"
        raise AiperfError("--mlflow-upload needs the extra mlflow, which is not installed", hint) from error


def write_pictures(
    figures: Sequence[tuple[str, Figure]], caption: Sequence[str], options: PlotOptions, folder: Path
) -> list[Path]:
    """Write each figure, and ``summary.txt``: a line for each file, and what it shows; print the paths.  The pictures' paths.

    Raises:
        AiperfError: A file can't be written, or what draws is not installed.
    """
    module = painter()
    size = module.Size(*size_of(options.size))
    paths = []
    for name, figure in figures:
        path = folder / f"{name}.{options.format}"
        print(module.picture(figure, path, theme=options.theme, caption=caption, size=size))
        paths.append(path)
    try:
        with atomic(folder / LIST) as draft:
            draft.write_text(listed(caption, figures, options.format), encoding="utf-8")
    except OSError as error:
        why = error.strerror or error
        raise AiperfError(f"{folder / LIST} can't be written: {why}", "choose another place with --output") from error
    return paths


def listed(
    caption: Sequence[str], figures: Sequence[tuple[str, Figure]], ending: str, further: Sequence[str] = ()
) -> str:  # fmt: skip
    """What a list of pictures says: the caption, a line for each file, and further sentences."""
    lines = [*caption, "", *(f"{name}.{ending}: {described(figure)}" for name, figure in figures), *further]
    return "".join(f"{_plain(line)}\n" for line in lines)


def _plain(line: str) -> str:
    """On one line, without secrets, and without characters that a terminal obeys."""
    return "".join(each if each.isprintable() else " " for each in redact(line))
