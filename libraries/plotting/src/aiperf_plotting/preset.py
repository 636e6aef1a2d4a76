"""A picture as the reference's configuration declares it, and the plot that draws it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from aiperf import Figure, Plot, PlotRun
from msgspec import Struct

SOURCES = ("requests", "timeslices", "gpu_telemetry", "server_metrics", "aggregated")
STATISTICS = ("avg", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "min", "max", "std", "sum", "count")
LEVELS = (0.9, 0.95, 0.99)


class Value(Struct, frozen=True):
    """What an axis shows.  metric: a tag, or ``request_number``, ``request_start_ns``, ``time``, ``slice``.

    stat: of a run or a slice; "" is ``avg``.  source: one of SOURCES; "" is what the type of picture reads.
    """

    metric: str
    stat: str = ""
    source: str = ""

    @property
    def statistic(self) -> str:
        return self.stat or "avg"


class Preset(Struct, frozen=True):
    """A picture.  type: one of :data:`aiperf_plotting.preset.TYPES`.  labels: ``load`` or ``run``, beside points of runs.

    title, x_label, y_label: "" are made from the metrics.  ci_level: of intervals.  by_model: runs are joined by model, not by
    their group.
    """

    type: str
    x: Value
    y: Value
    y2: Value | None = None
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    labels: str = "load"
    ci_level: float = 0.95
    by_model: bool = False

    @property
    def several(self) -> bool:
        return self.type in SEVERAL

    def columns(self) -> tuple[str, ...]:
        """Columns of requests that it reads."""
        from aiperf_plotting.single import columns_of

        return () if self.several else columns_of(self)


SEVERAL = ("pareto", "scatter_line", "latency_throughput_uncertainty")
TYPES = (
    "scatter", "scatter_with_percentiles", "area", "request_timeline", "timeslice", "histogram", "percentile_bands",
    "dual_axis", *SEVERAL,
)  # fmt: skip
Draw = Callable[[Preset, Sequence[PlotRun]], Figure | None]


class PresetPlot(Plot):
    """Draws a preset.  A subclass sets *preset* and *title*."""

    preset: ClassVar[Preset]

    def __init__(self, options: None = None, preset: Preset | None = None) -> None:
        super().__init__(options)
        self._preset = type(self).preset if preset is None else preset
        self.columns = self._preset.columns()

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        return draw(self._preset, runs)


def draw(preset: Preset, runs: Sequence[PlotRun]) -> Figure | None:
    """The figure of a preset; None where the runs don't have what it shows."""
    from aiperf_plotting import several, single

    every: Mapping[str, Draw] = {**single.DRAWN, **several.DRAWN}
    return every[preset.type](preset, runs)
