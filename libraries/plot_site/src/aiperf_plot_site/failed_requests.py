"""Failed requests behind a bar: those that ended in a stretch of the run, and each with its error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from aiperf import AiperfError, PlotRun
from aiperf_results import FinishedRun
from aiperf_results.table import lines

from aiperf_plot_site.single_request import arrival_of, file_of

MOST_LISTED = 200
"""Failed requests of a list."""
_START, _END = "request_start_ns", "request_end_ns"
_EDGE_S = 1e-6
"""Bounds of a stretch are told in floats."""


def failures_of(run: PlotRun, low_s: float, high_s: float, kind: str) -> dict[str, Any]:
    """The failed requests that ended from *low_s* to *high_s* after the first start, at most 200 of them; *kind*: "" is any.

    Raises:
        AiperfError: The run has no file of requests, or it can't be read.
    """
    first = file_of(run)
    starts = first.requests((_START,), failed=True).numbers(_START)
    begin_ns = float(np.nanmin(starts)) if np.isfinite(starts).any() else 0.0
    found: list[dict[str, Any]] = []
    total = 0
    for number, line in _failed(first):
        error, end = line["error"], (line.get("metadata") or {}).get(_END)
        if not isinstance(end, int | float) or (kind and _kind(error) != kind):
            continue
        ended_s = (end - begin_ns) / 1e9
        if low_s - _EDGE_S <= ended_s <= high_s + _EDGE_S:
            total += 1
            if len(found) < MOST_LISTED:
                found.append({"number": number, "ended_s": ended_s, "kind": _kind(error), "message": error.get("message")})
    return {"run": run.label, "total": total, "requests": found}


def failure_of(run: PlotRun, number: int) -> dict[str, Any]:
    """Metadata, metrics, error and arrival of a failed request, by its number in the list.

    Raises:
        AiperfError: There is none, or the file can't be read.
    """
    first, count = file_of(run), 0
    for place, line in _failed(first):
        count += 1
        if place == number:
            about = line.get("metadata") or {}
            return {
                "run": run.label, "row": number, "metadata": about, "metrics": line.get("metrics") or {},
                "error": line["error"], "arrival": arrival_of(first, about),
            }  # fmt: skip
    raise AiperfError(f"the run {run.label} has {count:,} failed requests, and none with the number {number}")


def _failed(run: FinishedRun) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and line of each failed request of the profiling phase, in the order of the file."""
    number = 0
    for line in lines(run.target.file("jsonl"), dict[str, Any]):
        about = line.get("metadata") or {}
        if about.get("benchmark_phase", "profiling") == "profiling" and isinstance(line.get("error"), dict):
            yield number, line
            number += 1


def _kind(error: dict[str, Any]) -> str:
    """Code and type, as the picture of failures names them."""
    code = error.get("code")
    shown = f"{code:.0f}" if isinstance(code, int | float) else ""
    return " ".join(filter(None, (shown, error.get("type") or ""))) or "failed"


__all__ = ["MOST_LISTED", "failure_of", "failures_of"]
