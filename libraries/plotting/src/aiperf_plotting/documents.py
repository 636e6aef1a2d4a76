"""Figures as numbers, for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from aiperf import Figure, PlotRun, PlotSeries
from aiperf.sdk.exporter import visible
from aiperf.sdk.figures import described
from aiperf.sdk.redaction import redact_json

from aiperf_plotting.caption import facts


def as_json(figures: Iterable[tuple[str, Figure]], runs: Sequence[PlotRun]) -> str:
    """``[{"plot", "title", "description", "x", "y", "y2", "runs": [{"name", "models", "requests", "failed", "cut_off",
    "verdict", "scope", "reasons"}], "series": [{"name", "kind", "x", "y", …}], "marks": [{"series", "axis", "value", "label",
    "shown"}], "lines": [{"axis", "value", "label", "shown"}], "lanes": [{"name", "depth"}], "shade", "notes"}]``

    A series has those of its fields that it uses: ``x_low``, ``x_high``, ``y_low``, ``y_high``, ``values``, ``labels``,
    ``axis``, ``group``, ``role``, ``points``, ``rows``, ``runs``.
    """
    document = as_documents(figures, runs)
    text = redact_json(msgspec.json.encode(document, enc_hook=_plain).decode())
    return visible(msgspec.json.format(text.encode(), indent=2)).decode()


def as_documents(figures: Iterable[tuple[str, Figure]], runs: Sequence[PlotRun]) -> list[dict[str, Any]]:
    """The objects of :func:`as_json`, with arrays as they are."""
    known = [facts(run) for run in runs]
    return [
        {
            "plot": name, "title": figure.title, "description": described(figure), "x": figure.x, "y": figure.y,
            "y2": figure.y2, "runs": known,
            "series": [_fields(series) for series in figure.series], "marks": figure.marks,
            "lines": figure.lines, "lanes": figure.lanes, "shade": figure.shade, "notes": figure.notes,
        }
        for name, figure in figures
    ]  # fmt: skip


def _fields(series: PlotSeries) -> dict[str, Any]:
    fields = {"name": series.name, "kind": series.kind} | dict(series.columns())
    further = {name: getattr(series, name) for name in ("labels", "group", "role", "points", "rows", "runs")}
    further["axis"] = "" if series.axis == "y" else series.axis
    return fields | {name: value for name, value in further.items() if value is not None and len(value)}


def _plain(values: Any) -> Any:
    return values.tolist()
