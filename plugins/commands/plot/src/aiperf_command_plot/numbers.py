"""Figures as numbers, for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from aiperf import Figure, PlotRun
from aiperf.sdk.exporter import visible

from aiperf_command_plot.caption import facts


def as_json(figures: Iterable[tuple[str, Figure]], runs: Sequence[PlotRun]) -> str:
    """``[{"plot", "title", "x", "y", "runs": [{"name", "models", "requests", "failed", "cut_off", "verdict", "scope",
    "reasons"}], "series": [{"name", "kind", "x", "y"}], "marks": [{"series", "axis", "value", "label", "shown"}]}]``"""
    known = [facts(run) for run in runs]
    document = [
        {
            "plot": name, "title": figure.title, "x": figure.x, "y": figure.y, "runs": known,
            "series": [{"name": series.name, "kind": series.kind, "x": series.x, "y": series.y} for series in figure.series],
            "marks": figure.marks,
        }
        for name, figure in figures
    ]  # fmt: skip
    return visible(msgspec.json.format(msgspec.json.encode(document, enc_hook=_plain), indent=2)).decode()


def _plain(values: Any) -> Any:
    return values.tolist()
