"""Two runs of one plan are alike but for whose they are and their times: what else differs is named."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def alike(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import alike

    return alike


def wrote(folder: Path, at_ns: int) -> Path:
    """Files of a run at an instant."""
    api = [{"category": "live", "name": "api"}] if at_ns > 1 else []
    record = {"metadata": {"session_num": 0, "request_start_ns": at_ns, "x_request_id": f"r{at_ns}"}, "metrics": {
        "request_latency": {"value": 1.5 * at_ns, "unit": "ms"}, "osl": {"value": 4, "unit": "tokens"},
        "inter_chunk_latency": {"value": [1.0 * at_ns], "unit": "ms"},
    }}  # fmt: skip
    summary = {
        "benchmark_id": f"id-{at_ns}", "request_latency": {"unit": "ms", "avg": 1.0 * at_ns},
        "request_count": {"unit": "requests", "avg": 6.0}, "request_error_rate": {"unit": "%", "avg": 0.0},
        "measurement": {"verdict": "trustworthy", "loop_lag_ms": {"p50": 0.1 * at_ns}}, "plugins": [{"name": "chat"}, *api],
    }  # fmt: skip
    command = f"CLI Command: aiperf --x {'y ' * at_ns}\nBenchmark Duration: {at_ns} sec\n"
    texts = {
        "inputs.json": '{"data": [1]}', "journal/columns-0.0": f"{at_ns}", "journal/dataset.bodies": "abc",
        "profile_export.jsonl": json.dumps(record), "profile_export_aiperf.json": json.dumps(summary),
        "profile_export_aiperf.csv": f"Metric,avg\n# benchmark_id: {at_ns}\nRequest Latency (ms),{at_ns}.5\n",
        "profile_export_console.txt": f"│ Latency │ {10**at_ns}.5 │\n{command}",
        "logs/aiperf.log": f"12:00:0{at_ns} - INFO - Phase started",
    }  # fmt: skip
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_identity_and_times_may_differ(alike: ModuleType, tmp_path: Path) -> None:
    assert alike.differing(wrote(tmp_path / "a", 1), wrote(tmp_path / "b", 2)) == []


@pytest.mark.parametrize(("name", "old", "new", "said"), [
    ("profile_export_aiperf.json", '"avg": 6.0', '"avg": 5.0', "request_count.avg: 6.0 and 5.0"),
    ("profile_export_aiperf.json", '"%", "avg": 0.0', '"%", "avg": 1.0', "request_error_rate.avg: 0.0 and 1.0"),
    ("profile_export_aiperf.json", "trustworthy", "suspect", "measurement.verdict: trustworthy and suspect"),
    ("profile_export_aiperf.json", '"p50"', '"p99"', "measurement.loop_lag_ms.p50: in one alone"),
    ("profile_export_aiperf.json", '"chat"', '"chatt"', "plugins.0.name: chat and chatt"),
    ("profile_export.jsonl", '"value": 4', '"value": 5', "line 0.metrics.osl.value: 4 and 5"),
    ("profile_export_aiperf.csv", ",2.5", ",", "row 1.1: True and False"),
    ("profile_export_console.txt", "Latency", "Throughput", "in one alone: Throughput #"),
    ("logs/aiperf.log", "INFO", "ERROR", "in one alone: #:#:# - ERROR - Phase started"),
    ("journal/dataset.bodies", "abc", "abd", "its bytes"),
])  # fmt: skip
def test_what_else_differs_is_named(alike: ModuleType, tmp_path: Path, name: str, old: str, new: str, said: str) -> None:
    one, other = wrote(tmp_path / "a", 1), wrote(tmp_path / "b", 2)
    text = (other / name).read_text()
    assert old in text
    (other / name).write_text(text.replace(old, new))
    assert f"{name}: {said}" in alike.differing(one, other)


def test_a_file_that_one_lacks_is_named(alike: ModuleType, tmp_path: Path) -> None:
    one, other = wrote(tmp_path / "a", 1), wrote(tmp_path / "b", 2)
    (other / "inputs.json").unlink()
    assert alike.differing(one, other) == [f"inputs.json: in {one} alone"]
