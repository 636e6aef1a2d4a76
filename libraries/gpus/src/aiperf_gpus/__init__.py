"""What the packages that sample GPUs share, and what exporters write of GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aiperf_gpus.sources import SOURCES

if TYPE_CHECKING:
    from aiperf import Summary


def has_gpus(summary: Summary) -> bool:
    """Whether the run has telemetry of GPUs."""
    return any(source.name in SOURCES and source.series for source in summary.telemetry)


def telemetry_data(summary: Summary) -> dict[str, Any]:
    """``telemetry_data`` of the summary JSON: the GPUs of the profiling phase by endpoint."""
    from aiperf_gpus import document  # most runs have no GPUs

    return document.telemetry_data(summary)


def csv_rows(summary: Summary) -> Iterator[list[str]]:
    """The header and a row for each GPU and quantity; none without GPUs."""
    from aiperf_gpus import document

    return document.csv_rows(summary)


__all__ = ["SOURCES", "csv_rows", "has_gpus", "telemetry_data"]
