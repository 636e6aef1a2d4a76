"""The curve as a picture, drawn by ``aiperf plot``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from aiperf import AiperfError, Axis, Figure, PlotSeries, UsageError
from aiperf.sdk.plot import Painter
from aiperf.sdk.registry import InstalledPlugins

from aiperf_command_analyze_trace.analysis import TraceReport

_ENDINGS = (".png", ".svg")


def refuse_other_endings(path: Path) -> None:
    if path.suffix not in _ENDINGS:
        hint = f"write --plot {path.with_suffix('.png')}"
        raise UsageError(f"--plot {path}: a picture ends in {' or '.join(_ENDINGS)}", hint)


def draw(report: TraceReport, source: Path, path: Path, registry: InstalledPlugins) -> Path:
    """Draw the hit rate over the size of the cache.

    Raises:
        AiperfError: The trace has no blocks, the plot command is not installed, or the file can't be written.
    """
    if registry.find("commands", "plot") is None:
        raise AiperfError("--plot needs the command plot, which is not installed", "pip install 'aiperf-suite[plots]'")
    painter: Painter = registry.load("commands", "plot")()
    points = () if report.cache_curve is None or not report.distinct_blocks else report.cache_curve.points
    if not points:
        raise AiperfError(f"--plot {path}: {source} has no hash ids, so there is no curve to draw")
    sizes = np.array([point.blocks * report.block_size for point in points], np.float64)
    rates = np.array([point.hit_rate * 100 for point in points])
    x, y = Axis("Size of the cache (tokens)", log=True), Axis("Blocks found (%)")
    figure = Figure("Hit rate over cache size", x, y, (PlotSeries("hit rate", sizes, rates),))
    blocks = f"{report.distinct_blocks:,} blocks of {report.block_size} tokens"
    caption = f"{source.name}: {report.total_requests:,} requests, {blocks}"
    return painter.paint(figure, path, [caption])
