"""The lines of samples of GPUs."""

from __future__ import annotations

import importlib.resources
import json
from pathlib import Path

import jsonschema
from aiperf_exporter_gpu_telemetry import GpuTelemetryLines
from aiperf_exporter_gpu_telemetry.contract import LABELS, LinesContract
from msgspec.structs import replace


class TestItKeepsTheContract(LinesContract):
    pass


def test_a_line_has_the_keys_of_the_reference_and_codes_as_numbers(tmp_path: Path) -> None:
    contract = LinesContract()
    contract.prepare(tmp_path)
    (artifact,) = GpuTelemetryLines(contract.target(tmp_path), contract.options).export(contract.summary())
    assert artifact.path.name == "gpu_telemetry_export.jsonl"
    first, second = map(json.loads, artifact.path.read_text().splitlines())
    schema = importlib.resources.files("aiperf_exporter_gpu_telemetry").joinpath("gpu_telemetry.schema.json").read_text()
    for line in (first, second):
        jsonschema.validate(line, json.loads(schema))
    assert {name: first[name] for name in ("gpu_index", "gpu_uuid", "gpu_model_name", "hostname", "platform")} == {
        "gpu_index": 0, "gpu_uuid": LABELS["uuid"], "gpu_model_name": "H100", "hostname": "node", "platform": "nvidia",
    }  # fmt: skip
    assert first["telemetry_data"] == {"nvidia_power_usage": 300.0, "nvidia_xid_errors": 0.0}
    assert second["telemetry_data"] == {"nvidia_power_usage": 300.0, "nvidia_xid_errors": 31.0}


def test_a_run_without_gpus_leaves_no_file_of_an_earlier_one(tmp_path: Path) -> None:
    contract = LinesContract()
    exporter = GpuTelemetryLines(contract.target(tmp_path), contract.options)
    path = tmp_path / "gpu_telemetry_export.jsonl"
    path.touch()
    assert exporter.export(replace(contract.summary(), telemetry=())) == [] and not path.exists()
