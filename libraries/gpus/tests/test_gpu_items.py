"""The items of ``--gpu-telemetry``."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import AiperfError
from aiperf_gpus.items import GpuItems, read_items
from aiperf_gpus.options import GpuOptions, interval_s
from aiperf_gpus.series import AMD, NVIDIA, Fold


@pytest.mark.parametrize(
    ("items", "found"),
    [
        ([], GpuItems()),
        (["pynvml"], GpuItems("pynvml")),
        (["AMDSMI", "dashboard"], GpuItems("amdsmi", dashboard=True)),
        (["node:9400"], GpuItems(urls=("http://node:9400/metrics",))),
        (["http://node:9400/", "node:9400/metrics"], GpuItems(urls=("http://node:9400/metrics",))),
        (["https://[::1]:9400/dcgm"], GpuItems(urls=("https://[::1]:9400/dcgm/metrics",))),
        (["http://node"], GpuItems(urls=("http://node/metrics",))),
    ],
)
def test_an_item_is_of_one_kind(items: list[str], found: GpuItems) -> None:
    assert read_items(items) == found


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        (["gpus"], "'gpus' is no item of it: write HOST:PORT or a URL of a DCGM exporter, pynvml, amdsmi, dashboard"),
        (["ftp://node:1"], "'ftp://node:1' is no item of it"),
        (["node:what"], "'node:what' is no item of it"),
        (["pynvml", "amdsmi"], "pynvml and amdsmi exclude each other"),
        (["pynvml", "node:9400"], "pynvml asks this machine's GPUs, and http://node:9400/metrics is for DCGM exporters"),
        (["metrics.csv"], "there is no file metrics.csv"),
    ],
)
def test_a_wrong_item_gets_a_sentence(items: list[str], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_items(items)
    assert sentence in str(caught.value)


def test_metrics_of_dcgm_are_not_for_a_local_library(tmp_path: Path) -> None:
    (tmp_path / "more.csv").touch()
    with pytest.raises(ValueError, match="drop one of the two"):
        read_items(["pynvml", str(tmp_path / "more.csv")])


def test_a_password_in_an_item_is_not_shown() -> None:
    with pytest.raises(ValueError) as caught:
        read_items(["http://ada:hushhush@node:1/x://"])
    assert "hushhush" not in str(caught.value)


def test_both_flags_at_once_are_refused() -> None:
    options = GpuOptions(gpu_telemetry=[], gpu_telemetry_enabled=False)
    (sentence,) = options.problems({"gpu_telemetry": "--gpu-telemetry", "gpu_telemetry_enabled": "--no-gpu-telemetry"})
    assert sentence.startswith("--gpu-telemetry asks for GPUs, and --no-gpu-telemetry samples none")


def test_an_impossible_interval_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_GPU_COLLECTION_INTERVAL", "0.001")
    assert "AIPERF_GPU_COLLECTION_INTERVAL" in GpuOptions().problems({})[0]
    with pytest.raises(AiperfError):
        interval_s()


def test_only_growths_are_counters_that_flow() -> None:
    for quantity in (*NVIDIA.values(), *AMD.values()):
        point = quantity.point(1.0, {"gpu": "0"})
        assert point.flows is (quantity.fold is Fold.GROWTH) and (point.kind.value == "counter") is point.flows
