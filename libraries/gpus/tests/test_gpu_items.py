"""The items of ``--gpu-telemetry``."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import AiperfError
from aiperf_gpus.custom import read_custom
from aiperf_gpus.items import GpuItems, read_items
from aiperf_gpus.options import GpuOptions, interval_s
from aiperf_gpus.series import AMD, NVIDIA, Fold, GpuQuantity


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


def test_a_code_is_seen_and_has_no_mean() -> None:
    point = NVIDIA["nvidia_xid_errors"].point(31.0, {"gpu": "0"})
    assert (point.kind.value, point.value, point.labels) == ("info", 1.0, {"gpu": "0", "code": "31"})


def test_lines_of_a_file_are_further_metrics(tmp_path: Path) -> None:
    path = tmp_path / "more.csv"
    path.write_text(
        "# field, kind, help\n\nDCGM_FI_DEV_FAN_SPEED, gauge, Fan speed (in %)\n"
        "DCGM_FI_DEV_PCIE_TX_BYTES, counter, pcie tx bytes, all lanes (in mJ).\nDCGM_FI_PROF_DRAM_ACTIVE,gauge,Dram active\n"
    )
    assert read_custom(path) == {
        "DCGM_FI_DEV_FAN_SPEED": GpuQuantity("nvidia_fan_speed", "Fan Speed", "%"),
        "DCGM_FI_DEV_PCIE_TX_BYTES": GpuQuantity("nvidia_pcie_tx_bytes", "PCIe TX Bytes, All Lanes", "mJ", Fold.GROWTH),
        "DCGM_FI_PROF_DRAM_ACTIVE": GpuQuantity("nvidia_dram_active", "DRAM Active", ""),
    }


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("DCGM_FI_DEV_FAN_SPEED, gauge", "line 2: 'DCGM_FI_DEV_FAN_SPEED, gauge' is not FIELD, gauge or counter,"),
        ("FAN_SPEED, gauge, Fan", "line 2: 'FAN_SPEED' is no field of DCGM: its name begins with DCGM_FI_"),
        ("DCGM_FI_DEV_FAN_SPEED, level, Fan", "line 2: 'level' is no kind: gauge and counter are"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(tmp_path: Path, line: str, sentence: str) -> None:
    path = tmp_path / "more.csv"
    path.write_text(f"# further metrics\n{line}\n")
    with pytest.raises(ValueError) as caught:
        read_custom(path)
    assert f"{path}, {sentence}" in str(caught.value)
