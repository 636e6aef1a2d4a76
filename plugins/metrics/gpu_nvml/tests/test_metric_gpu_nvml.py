"""The real nvidia-ml-py on a driver's library that is compiled here."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest
from aiperf import AiperfError, Point
from aiperf.sdk.telemetry import SeriesKind, TelemetryContext
from aiperf_metric_gpu_nvml import GpuNvml
from aiperf_metric_gpu_nvml.options import NvmlOptions

SOURCE = Path(__file__).with_name("nvml.c")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def compiled(folder: Path, *words: str) -> Path:
    """The library, from its source."""
    path = folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", *words, "-o", path, SOURCE], check=True)
    return path


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("new"))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("old"), "-DOLD")


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path | None], None]:
    """nvidia-ml-py loads this library; with None it finds none."""

    def take(path: Path | None) -> None:
        def load(name: str) -> ctypes.CDLL:
            assert name == "libnvidia-ml.so.1"
            if path is None:
                raise OSError(name)
            return ctypes.CDLL(str(path))

        monkeypatch.setattr(pynvml, "CDLL", load)
        monkeypatch.setattr(pynvml, "nvmlLib", None)
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})

    return take


def source() -> GpuNvml:
    made = GpuNvml(NvmlOptions(gpu_telemetry=["pynvml"]), TelemetryContext())
    made.start()
    return made


def values(points: list[Point], gpu: str = "0", mig: str | None = None) -> dict[str, float | object]:
    own = [each for each in points if each.labels["gpu"] == gpu and each.labels.get("mig") == mig]
    return {each.name: int(each.labels["code"]) if "code" in each.labels else each.value for each in own}


def test_every_quantity_has_the_scale_of_its_unit(use: Callable[[Path | None], None], new: Path) -> None:
    use(new)
    made = source()
    list(made.sample())
    points = list(made.sample())
    made.stop()
    found = values(points)
    energy = found.pop("nvidia_energy_consumption")
    assert isinstance(energy, float) and 0.005 <= energy < 0.006
    assert found == {
        "nvidia_power_usage": 300.0, "nvidia_gpu_utilization": 90, "nvidia_memory_utilization": 40, "nvidia_sm_clock": 1980,
        "nvidia_memory_clock": 2619, "nvidia_throttle_reasons": 4, "nvidia_memory_used": 10.4, "nvidia_temperature": 61,
        "nvidia_sm_utilization": 73.5, "nvidia_decoder_utilization": 7, "nvidia_encoder_utilization": 8,
        "nvidia_jpg_utilization": 9, "nvidia_power_violation": 2500.0,
    }  # fmt: skip
    assert points[0].labels == {
        "gpu": "0", "uuid": "GPU-made-up-0", "model": "NVIDIA Made Up", "platform": "nvidia", "pci_bus_id": "00000000:01:00.0",
        "device": "nvidia0", "hostname": "localhost",
    }  # fmt: skip
    (growing,) = (each for each in points if each.name == "nvidia_energy_consumption")
    assert growing.kind is SeriesKind.COUNTER and growing.flows and growing.unit == "MJ"


def test_an_instance_of_a_gpu_has_its_own_memory(
    use: Callable[[Path | None], None], new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVML_GPUS", "2")
    use(new)
    made = source()
    points = list(made.sample())
    assert values(points, "1")["nvidia_power_usage"] == 100.0
    assert values(points, "1", "3") == {"nvidia_memory_used": 3.0} and values(points, "1", "5") == {"nvidia_memory_used": 5.0}
    made.stop()


def test_without_counters_processes_say_how_busy_a_gpu_is(
    use: Callable[[Path | None], None], new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVML_GPUS", "2")
    use(new)
    made = source()
    shares = [values(list(made.sample()), "1").get("nvidia_sm_utilization") for _ in range(4)]
    assert shares == [None, 55.0, 0.0, 0.0]
    made.stop()


def test_an_older_driver_leaves_out_what_it_lacks(use: Callable[[Path | None], None], old: Path) -> None:
    use(old)
    made = source()
    found = values(list(made.sample()))
    assert found["nvidia_memory_used"] == 11.0 and found["nvidia_throttle_reasons"] == 4
    assert "nvidia_jpg_utilization" not in found and found["nvidia_encoder_utilization"] == 8
    made.stop()


def test_a_failing_call_leaves_out_its_series_alone(
    use: Callable[[Path | None], None], new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(new)
    made = source()
    whole = len(list(made.sample())) + 1  # the second sample knows how busy the SMs were
    monkeypatch.setenv("NVML_FAIL", "nvmlDeviceGetPowerUsage=999,nvmlDeviceGetJpgUtilization=3")
    for _ in range(2):
        found = values(list(made.sample()))
        assert len(found) == whole - 2 and not {"nvidia_power_usage", "nvidia_jpg_utilization"} & found.keys()
    monkeypatch.delenv("NVML_FAIL")
    found = values(list(made.sample()))
    assert "nvidia_power_usage" in found, "a passing fault is asked again"
    assert "nvidia_jpg_utilization" not in found, "what is not supported is not"
    made.stop()


def test_a_lost_gpu_has_no_figures_and_others_go_on(
    use: Callable[[Path | None], None], new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVML_GPUS", "2")
    use(new)
    made = source()
    assert values(list(made.sample()))
    monkeypatch.setenv("NVML_GONE_MS", "0")
    points = list(made.sample())
    assert not values(points) and values(points, "1")
    made.stop()


def test_the_only_gpu_that_is_lost_is_said(
    use: Callable[[Path | None], None], new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(new)
    made = source()
    monkeypatch.setenv("NVML_GONE_MS", "0")
    with pytest.raises(AiperfError, match="no GPU answers any more"):
        made.sample()
    made.stop()


def test_a_gpu_without_uuid_is_known_by_its_index(
    use: Callable[[Path | None], None], new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVML_FAIL", "nvmlDeviceGetUUID=999")
    use(new)
    made = source()
    assert next(iter(made.sample())).labels["uuid"] == "GPU-unknown-0"
    made.stop()


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        (None, "this machine has no library of an NVIDIA driver (libnvidia-ml.so.1)"),
        ({"NVML_FAIL": "nvmlInitWithFlags=9"}, "the NVIDIA driver can't be used: "),
        ({"NVML_GPUS": "0"}, "the NVIDIA driver of this machine shows no GPU"),
    ],
)
def test_a_machine_without_gpus_says_what_to_do(
    use: Callable[[Path | None], None], new: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str] | None,
    sentence: str,
) -> None:  # fmt: skip
    for name, value in (variables or {}).items():
        monkeypatch.setenv(name, value)
    use(None if variables is None else new)
    with pytest.raises(AiperfError) as caught:
        source()
    assert sentence in caught.value.message and "name a DCGM exporter, --gpu-telemetry HOST:9400" in caught.value.message
