"""The options that all packages for GPUs share, and their variables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aiperf.sdk.environment import number
from aiperf.sdk.errors import ConfigError
from aiperf.sdk.options import After, Options, option

from aiperf_gpus.items import GpuItems, read_items

_GROUP = "GPU telemetry"


def interval_s() -> float:
    """``AIPERF_GPU_COLLECTION_INTERVAL``, 0.333 s."""
    return number("AIPERF_GPU_COLLECTION_INTERVAL", 0.01, 300, 0.333)


def _items(items: list[str] | None) -> list[str] | None:
    for file in read_items(items or ()).files:
        from aiperf_gpus.custom import read_custom  # few runs have one

        read_custom(Path(file))
    return items


class GpuOptions(Options):
    gpu_telemetry: Annotated[list[str] | None, After(_items)] = option("--gpu-telemetry", default=None, arity="maybe",
        group=_GROUP, metavar="ITEM", shown="DCGM exporters at localhost:9400 and localhost:9401", place="gpu_telemetry.items",
        help="Show the GPUs beside the load, from DCGM exporters (HOST:PORT or a URL), pynvml or amdsmi; dashboard shows them"
        " in --ui dashboard, FILE.csv names further metrics of DCGM.")  # fmt: skip
    gpu_telemetry_enabled: bool = option("--collect-gpu-telemetry", negative="--no-gpu-telemetry", default=True,
        group=_GROUP, place="gpu_telemetry.enabled", help="Sample GPUs beside the load.")  # fmt: skip

    def problems(self, typed: dict[str, str]) -> list[str]:
        sentences = []
        asked, off = typed.get("gpu_telemetry", ""), typed.get("gpu_telemetry_enabled", "--no-gpu-telemetry")
        if not self.gpu_telemetry_enabled and asked and asked.startswith("-") == off.startswith("-"):  # else the line wins
            sentences.append(f"{asked} asks for GPUs, and {off} samples none\ndrop one of them")
        if self.gpu_telemetry_enabled:
            try:
                interval_s()
            except ConfigError as error:
                sentences.append(error.message)
        return sentences

    @property
    def items(self) -> GpuItems:
        return read_items(self.gpu_telemetry or ())

    @property
    def local(self) -> str:
        """The library of this machine that is asked; "" for none."""
        return self.items.local if self.gpu_telemetry_enabled else ""


__all__ = ["GpuOptions", "interval_s"]
