"""The real amdsmi on a library of AMD SMI that is compiled here, in a program of its own: it binds the library at import."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).with_name("smi.c")
pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
    pytest.mark.skipif(importlib.util.find_spec("amdsmi") is None, reason="amdsmi is not installed"),
]
PROGRAM = """
import json, os, sys
from aiperf import AiperfError
from aiperf.sdk.telemetry import TelemetryContext
from aiperf_metric_gpu_amd import GpuAmd
from aiperf_metric_gpu_amd.options import AmdOptions

def samples():
    source = GpuAmd(AmdOptions(gpu_telemetry=["amdsmi"]), TelemetryContext())
    source.start()
    points = [[point.name, point.value, point.unit, point.kind.value, point.labels] for point in source.sample()]
    source.stop()
    return points

found = []
for variables in json.loads(sys.argv[1]):
    os.environ.update(variables)
    try:
        found.append(samples())
    except AiperfError as error:
        found.append(error.message)
    for name in variables:
        del os.environ[name]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def rocm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the library below ``lib``, with every function that amdsmi binds."""
    folder = tmp_path_factory.mktemp("rocm")
    (folder / "lib").mkdir()
    spec = importlib.util.find_spec("amdsmi")
    assert spec is not None and spec.submodule_search_locations
    wrapper = (Path(spec.submodule_search_locations[0]) / "amdsmi_wrapper.py").read_text()
    bound = set(re.findall(r"_libraries\['libamd_smi\.so'\]\.(\w+)", wrapper))
    others = bound - set(re.findall(r"^int (\w+)\(", SOURCE.read_text(), re.MULTILINE))
    (folder / "others.h").write_text("".join(f"int {name}(void) {{ return NOT_SUPPORTED; }}\n" for name in sorted(others)))
    words = ["cc", "-shared", "-fPIC", f"-I{folder}", "-o", str(folder / "lib" / "libamd_smi.so"), str(SOURCE)]
    subprocess.run(words, check=True)
    return folder


def asked(rocm: Path, *variables: dict[str, str]) -> list[Any]:
    """The points, or the sentence, with each set of variables."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(variables)], env={**os.environ, "ROCM_PATH": str(rocm)},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def values(points: list[Any], gpu: str = "0") -> dict[str, float]:
    return {name: value for name, value, _, _, labels in points if labels["gpu"] == gpu}


def test_every_quantity_has_the_scale_of_its_unit(rocm: Path) -> None:
    plain, two, old, average, throttled, failing, nameless, none, no_driver = asked(
        rocm, {}, {"SMI_GPUS": "2"}, {"SMI_MAJOR": "25"}, {"SMI_CURRENT": "65535"}, {"SMI_THROTTLE": "1"},
        {"SMI_FAIL": "amdsmi_get_power_info amdsmi_get_energy_count"}, {"SMI_FAIL": "amdsmi_get_gpu_device_uuid"},
        {"SMI_GPUS": "0"}, {"SMI_INIT": "34"},
    )  # fmt: skip
    found = values(plain)
    assert found == pytest.approx({
        "amd_power": 512, "amd_energy_consumption": 0.0305, "amd_gfx_activity": 93, "amd_umc_activity": 41,
        "amd_memory_used": 104.8576, "amd_temperature": 61, "amd_ecc_uncorrectable": 2, "amd_throttle_status": 0,
    })  # fmt: skip
    assert plain[0][4] == {
        "gpu": "0", "uuid": "made-up-0", "model": "AMD Made Up", "platform": "amd", "pci_bus_id": "0000:01:00.0",
        "hostname": "localhost",
    }  # fmt: skip
    assert {name for name, _, _, kind, _ in plain if kind == "counter"} == {"amd_energy_consumption", "amd_ecc_uncorrectable"}
    assert values(two, "1")["amd_power"] == 513
    assert values(old)["amd_temperature"] == 61, "older libraries give thousandths"
    assert values(average)["amd_power"] == 499, "N/A now, and the average is known"
    assert values(throttled)["amd_throttle_status"] == 1
    assert found.keys() - values(failing).keys() == {"amd_power", "amd_energy_consumption"}
    assert nameless[0][4]["uuid"] == "GPU-unknown-0"
    assert none.startswith("--gpu-telemetry amdsmi: the AMD driver of this machine shows no GPU")
    assert no_driver.startswith("--gpu-telemetry amdsmi: the AMD driver can't be used: ")


def test_a_machine_without_the_library_says_what_to_do(tmp_path: Path) -> None:
    (sentence,) = asked(tmp_path, {})
    assert sentence.startswith("--gpu-telemetry amdsmi: this machine has no libamd_smi.so, or one of another version")
