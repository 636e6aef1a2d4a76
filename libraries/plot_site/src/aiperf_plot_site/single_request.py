"""One request behind a point: its line in the per-request file, and its arrival."""

from __future__ import annotations

from typing import Any

import numpy as np
from aiperf import AiperfError, PlotRun
from aiperf_results import FinishedRun
from aiperf_results.table import lines

_START, _END = "request_start_ns", "request_end_ns"
_EXACT_NS = 512
"""Instants since 1970 are exact to 256 ns in a float."""


def request_of(run: PlotRun, row: int) -> dict[str, Any]:
    """Metadata, metrics, error and arrival of the good request *row*, its place in :meth:`aiperf.PlotRun.column`.

    Raises:
        AiperfError: There is none, or the file can't be read.
    """
    first = file_of(run)
    starts, ends = first.column(_START), first.column(_END)
    if not 0 <= row < len(starts):
        raise AiperfError(f"the run {run.label} has {len(starts):,} good requests, and none with the number {row}")
    for line in lines(first.target.file("jsonl"), dict[str, Any]):
        about = line.get("metadata") or {}
        if about.get("benchmark_phase", "profiling") != "profiling" or line.get("error"):
            continue
        if _near(about.get(_START), starts[row]) and _near(about.get(_END), ends[row]):
            return {
                "run": run.label, "row": row, "metadata": about, "metrics": line.get("metrics") or {},
                "error": line.get("error"), "arrival": arrival_of(first, about),
            }  # fmt: skip
    raise AiperfError(f"the request {row} of the run {run.label} is not in its file", "aiperf report DIR makes it anew")


def _near(value: object, at_ns: np.float64) -> bool:
    if not isinstance(value, int | float):
        return bool(np.isnan(at_ns))
    return bool(abs(value - at_ns) <= _EXACT_NS)


def file_of(run: PlotRun) -> FinishedRun:
    """The run, or its first repeat, whose directory has a file of requests.

    Raises:
        AiperfError: It has none.
    """
    first = run.parts()[0]
    if not isinstance(first, FinishedRun) or not first.has("jsonl"):
        raise AiperfError(f"the run {run.label} has no file of requests", "run it with --export-level records")
    return first


def arrival_of(run: FinishedRun, about: dict[str, Any]) -> dict[str, Any] | None:
    """The line of the ledger of the request that *about* names; None without a ledger."""
    if not run.has("arrivals.jsonl"):
        return None
    for line in lines(run.file("arrivals.jsonl"), dict[str, Any]):
        if line.get("x_request_id") is not None and line.get("x_request_id") == about.get("x_request_id"):
            found: dict[str, Any] = line
            return found
    return None


__all__ = ["arrival_of", "file_of", "request_of"]
