"""The {{ cookiecutter.name }} plot: how long answers were, and how long they took."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from aiperf import Axis, Figure, Plot, PlotRun, PlotSeries


class {{ cookiecutter.__class }}(Plot):
    """A figure is plain data: what draws it, and as what kind of file, is not its affair.

    ``run.column(tag)`` has a value for each request, ``run.number(tag, "p99")`` one for the run.  ``columns`` names the columns
    that it reads: the columns of all plots are read at once.  A class that compares runs says with ``runs = 2`` how many it
    takes at least.
    """

    title = "{{ cookiecutter.__title }}"
    columns = ("output_sequence_length", "request_latency")

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        """None where the runs don't have what it shows."""
        series = []
        for run in runs:
            tokens, latency_ms = run.column("output_sequence_length"), run.column("request_latency")
            known = np.isfinite(tokens) & np.isfinite(latency_ms)
            if known.any():
                series.append(PlotSeries(run.label, tokens[known], latency_ms[known], kind="points", points="request"))
        return Figure(self.title, Axis("output (tokens)"), Axis("latency (ms)"), tuple(series)) if series else None
