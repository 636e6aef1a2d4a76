"""The GPUs of a CSV against those of the JSON."""

from __future__ import annotations

from typing import Any

import pytest
from aiperf_command_validate.faults import Faults
from aiperf_command_validate.gpus import HEAD, gpu_table

SUMMARY: dict[str, Any] = {"telemetry_data": {"endpoints": {"node:9400": {"gpus": {"gpu_0": {
    "gpu_uuid": "GPU-0", "metrics": {"nvidia_power_usage": {"unit": "W", "avg": 300.5, "max": 400.0}, "xid": {"codes": [31]}},
}}}}}}  # fmt: skip
HEADER = [*HEAD, "avg", "max", "sum", "Hostname"]
ROW = ["node:9400", "0", "H100", "GPU-0", "nvidia", "Power (W)", "300.5", "400", "", "n1"]


def faults(*rows: list[str]) -> list[str]:
    found = Faults()
    gpu_table(SUMMARY, [HEADER, *rows], "a.csv", found)
    return [str(each) for each in found.all()]


def test_the_same_figures_are_no_fault() -> None:
    assert faults(ROW) == []


@pytest.mark.parametrize(("place", "cell"), [(3, "GPU-1"), (6, "300"), (7, ""), (8, "5")])
def test_another_figure_or_gpu_is_one(place: int, cell: str) -> None:
    assert len(faults([cell if at == place else text for at, text in enumerate(ROW)])) == 1


def test_a_missing_row_is_one() -> None:
    assert len(faults()) == 1
