"""The GPUs of the CSV against those of the summary JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aiperf_command_validate.faults import Faults

HEAD = ["Endpoint", "GPU_Index", "GPU_Name", "GPU_UUID", "Platform", "Metric"]
"""The first columns of the table of GPUs."""


def gpu_table(summary: dict[str, Any], section: list[list[str]], name: str, faults: Faults) -> None:
    """Each row has a quantity of a GPU of ``telemetry_data``, in its order, and its statistics; codes have no row."""
    header, *body = section
    known = list(_rows(summary))
    if len(body) != len(known):
        faults.add(name, f"has {len(body)} rows of GPUs, the JSON {len(known)} such quantities")
        return
    for row, (endpoint, uuid, statistics) in zip(body, known, strict=True):
        cells = dict(zip(header, row, strict=False))
        wrong = [] if (cells["Endpoint"], cells["GPU_UUID"]) == (endpoint, uuid) else ["its GPU"]
        wrong += [key for key in header if key.islower() and _number(cells.get(key, "")) != statistics.get(key)]
        if wrong:
            faults.add(name, f"{cells['Metric']}: {', '.join(wrong)} is not the JSON's", kind="other GPUs than the JSON")


def _rows(summary: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, float]]]:
    for endpoint, found in summary.get("telemetry_data", {}).get("endpoints", {}).items():
        for gpu in found["gpus"].values():
            for statistics in gpu["metrics"].values():
                if "codes" not in statistics:
                    yield endpoint, gpu["gpu_uuid"], statistics


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
