"""How values of single requests are spread: histograms, a heat map over time, against the length of the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from aiperf import Axis, Figure, Plot, PlotRun, PlotSeries
from aiperf.sdk.columns import Floats
from aiperf_plotting.loads import by_load, first_repeat
from aiperf_plotting.times import START, decades, known, since, windows

_BINS, _ROWS, _COLUMNS = 50, 30, 60
"""Of a histogram, and of a heat map, about."""
_WIDE = 30.0
"""Largest over smallest value from which bins are equal ratios."""


def bins(values: Floats, about: int) -> tuple[Floats, bool]:
    """Edges of bins that hold the values, and whether they are equal ratios."""
    low, high = float(values.min()), float(values.max())
    if low > 0 and high / low > _WIDE:
        return decades(low, high, about), True
    return windows(low, high, about), False


class _Histogram(Plot):
    """Requests by their value: bars for one run, outlines of shares for several."""

    tag: ClassVar[str]
    label: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.columns = (cls.tag,)

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        columns = [(run.label, values[np.isfinite(values)]) for run in by_load(runs) for values in (run.column(self.tag),)]
        columns = [(label, values) for label, values in columns if len(values)]
        if not columns:
            return None
        edges, log = bins(np.concatenate([values for _, values in columns]), _BINS)
        counts = [(label, np.histogram(values, edges)[0].astype(np.float64)) for label, values in columns]
        low, high, middle = edges[:-1], edges[1:], (edges[:-1] + edges[1:]) / 2
        if len(counts) == 1:
            series = [PlotSeries(counts[0][0], middle, counts[0][1], "bar", x_low=low, x_high=high)]
            return Figure(self.title, Axis(self.label, log), Axis("requests"), tuple(series))
        shares = [(label, np.append(count, 0.0) * (100.0 / count.sum())) for label, count in counts]
        series = [PlotSeries(label, edges, share, "steps") for label, share in shares]
        return Figure(self.title, Axis(self.label, log), Axis("share of good requests (%)"), tuple(series))


class TtftHistogram(_Histogram):
    title = "Histogram of the time to first token"
    tag = "time_to_first_token"
    label = "time to first token (ms)"


class LatencyHistogram(_Histogram):
    title = "Histogram of the request latency"
    tag = "request_latency"
    label = "request latency (ms)"


class LatencyHeatMap(Plot):
    """How many requests had which latency when: a queue that grows is a rising band, a freeze a column."""

    title = "Request latency over the run"
    most_runs = 1
    columns = (START, "request_latency")

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        starts, latency = (first_repeat(runs[0]).column(name) for name in self.columns)
        rows = known(starts, latency)
        if not len(rows):
            return None
        at, values = since(starts[rows], float(starts[rows].min())), latency[rows]
        across = windows(float(at.min()), float(at.max()), _COLUMNS)
        up, log = bins(values, _ROWS)
        counts, _, _ = np.histogram2d(at, values, [across, up])
        column, row = np.nonzero(counts)
        ends = across[column], across[column + 1], up[row], up[row + 1]
        middle = (ends[0] + ends[1]) / 2, (ends[2] + ends[3]) / 2
        cells = PlotSeries(runs[0].label, *middle, "heat", *ends, values=counts[column, row])
        x, y = Axis("started after (s)"), Axis("request latency (ms)", log)
        return Figure(self.title, x, y, (cells,), shade="requests")


class TtftByPromptLength(Plot):
    """Long prompts take longer to read: the slope is the price of a token; points far above it waited.

    There is no figure where all prompts are of one length.
    """

    title = "Time to first token by the length of the prompt"
    columns = ("input_sequence_length", "time_to_first_token")

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        series = []
        for run in by_load(runs):
            length, ttft = (run.column(name) for name in self.columns)
            rows = known(length, ttft)
            rows = rows[np.argsort(length[rows], kind="stable")]
            if len(rows):
                series.append(PlotSeries(run.label, length[rows], ttft[rows], "points", points="request", rows=rows))
        x, y = Axis("prompt (tokens)"), Axis("time to first token (ms)")
        if len({length for one in series for length in (one.x[0], one.x[-1])}) < 2:
            return None
        return Figure(self.title, x, y, tuple(series))
