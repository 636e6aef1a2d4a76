"""A third party's numbers of answers, units, folds and metrics of metrics, in a real run and in its report."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from environments import Shelf, suite
from program import Done, Program
from requirements import ROOT

if importlib.util.find_spec("uv_build") is None:
    pytest.skip("the build backend uv_build is not installed, so no wheel can be made", allow_module_level=True)


@pytest.fixture(scope="module")
def aiperf(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The suite with the stranger and those whose metrics and telemetry it reads, installed as wheels."""
    work = tmp_path_factory.mktemp("meters")
    names = {"acme-meters": "meters", "acme-patience": "metric", "acme-sundries": "sundries"}
    shelf = Shelf(work / "shelf", {name: ROOT / "tests" / "strangers" / folder for name, folder in names.items()})
    made = Program(work, python=shelf.environment(work / "environment", [*suite(), *names]))
    made.environment["AIPERF_CACHE_DIR"] = str(work / "cache")
    return made


@pytest.fixture(scope="module")
def run(aiperf: Program, shared_simulator: Simulator) -> Done:
    """A run of two reducers."""
    done = aiperf(
        "profile", "--model", "m,n", "--url", shared_simulator.url, "--endpoint-type", "metered", "--streaming", "--tokenizer",
        "builtin", "--isl", 20, "--osl", 6, "--request-count", 12, "--ui", "none", "--workers", 2,
        "--request-rate", 300, "--record-processors", 2, "--export-level", "raw",
        "--slice-duration", 0.01,
    )  # fmt: skip
    assert done.code == 0, done.err
    return done


def spent(run: Done) -> list[float]:
    """The energy of each answer in kJ, from the text that the server sent."""
    rows = run.lines("profile_export_raw.jsonl")
    assert len(rows) == 12
    events = [[packet["value"] for response in row["responses"] for packet in response["packets"]] for row in rows]
    pieces = [[json.loads(event)["choices"] for event in answer if event != "[DONE]"] for answer in events]
    return [0.5 * sum(len(choice["text"]) for choices in answer for choice in choices) for answer in pieces]


def test_metrics_read_the_numbers_of_answers(run: Done) -> None:
    expected = sorted(spent(run))
    results = run.json()
    assert results["energy"]["unit"] == "kJ"
    assert (results["energy"]["sum"], results["energy"]["max"]) == (pytest.approx(sum(expected)), expected[-1])
    assert sorted(line["metrics"]["energy"]["value"] for line in run.lines("profile_export.jsonl")) == expected
    assert (results["pieces"]["unit"], results["pieces"]["sum"]) == ("pieces", 72)
    rows = {row[0]: row for row in csv.reader((run.artifacts / "profile_export_aiperf.csv").read_text().splitlines()) if row}
    assert rows["Energy (kJ)"][1] == f"{sum(expected) / 12:.2f}" and "Energy (kJ)" in run.out


def test_a_fold_is_merged_over_reducers_and_slices_and_again_in_a_report(aiperf: Program, run: Done, tmp_path: Path) -> None:
    expected = spent(run)
    typical = math.exp(math.fsum(map(math.log, expected)) / 12)
    found = run.json()["typical_energy"]
    assert (found["unit"], found["avg"], found["ci_level"]) == ("kJ", pytest.approx(typical), 0.95)
    assert found["ci_low"] <= typical <= found["ci_high"]
    records = run.lines("profile_export.jsonl")
    energies = [math.log(line["metrics"]["energy"]["value"]) for line in records]
    assert len(energies) == 12 and len({line["metadata"]["record_processor_id"] for line in records}) == 2
    slices = json.loads((run.artifacts / "profile_export_aiperf_timeslices.json").read_text())["timeslices"]
    means = [(part["typical_energy"]["avg"], part["energy"]["count"]) for part in slices if "typical_energy" in part]
    assert sum(count for _, count in means) == 12 and len(means) > 1
    assert math.fsum(count * math.log(mean) for mean, count in means) == pytest.approx(math.fsum(energies))
    again = aiperf("report", run.copy(tmp_path / "again").artifacts, "--json")
    assert again.code == 0 and json.loads(again.out)["typical_energy"] == run.json()["typical_energy"]


def test_a_metric_reads_metrics_analyses_and_telemetry_of_other_packages(run: Done) -> None:
    results = run.json()
    share, flying = results["patience"]["avg"], results["effective_concurrency"]["avg"]
    assert results["haste"] == {"unit": "requests", "avg": pytest.approx(share / 100 * flying)}
    assert results["energy_per_metre"] == {"unit": "J/m", "avg": pytest.approx(1000 * sum(spent(run)) / 2.5)}
    slices = json.loads((run.artifacts / "profile_export_aiperf_timeslices.json").read_text())["timeslices"]
    for part in (part for part in slices if "energy" in part and "effective_concurrency" in part):
        assert part["haste"]["avg"] == pytest.approx(part["patience"]["avg"] / 100 * part["effective_concurrency"]["avg"])
        assert part["energy_per_metre"]["avg"] == pytest.approx(1000 * part["energy"]["sum"] / 2.5)


def test_metrics_are_given_by_a_text_and_again_in_a_report(aiperf: Program, run: Done, tmp_path: Path) -> None:
    models = [row["payload"]["model"] for row in run.lines("profile_export_raw.jsonl")]
    by_model: dict[str, list[float]] = {}
    for model, energy in zip(models, spent(run), strict=True):
        by_model.setdefault(model, []).append(energy)
    groups = run.json()["groups"]
    assert [(group["text"], group["key"], group["started"]) for group in groups] == [("model", "m", 6), ("model", "n", 6)]
    for group in groups:
        energies = by_model[group["key"]]
        assert group["outcomes"] == {"completed": 6} and set(group["metrics"]) == {"energy", "typical_energy"}
        assert group["metrics"]["energy"]["sum"] == pytest.approx(sum(energies))
        typical = group["metrics"]["typical_energy"]
        assert typical["avg"] == pytest.approx(math.exp(math.fsum(map(math.log, energies)) / 6))
        assert typical["ci_low"] <= typical["avg"] <= typical["ci_high"]
        assert run.json()[f"energy.model.{group['key']}"] == group["metrics"]["energy"]
    rows = [row for row in csv.reader((run.artifacts / "profile_export_aiperf.csv").read_text().splitlines()) if row]
    assert ["Metric", "ci_low", "ci_high", "ci_level"] in rows
    again = aiperf("report", run.copy(tmp_path / "by-model").artifacts, "--json")
    assert again.code == 0 and json.loads(again.out)["groups"] == groups


def test_without_telemetry_the_metric_alone_is_absent(aiperf: Program, run: Done, tmp_path: Path) -> None:
    copy = run.copy(tmp_path / "dry")
    for path in (copy.artifacts / "journal").glob("telemetry-*"):
        path.unlink()
    done = aiperf("report", copy.artifacts, "--json")
    results = json.loads(done.out)
    assert "energy_per_metre" not in results and "haste" in results
    # A sentence is for a source that was sampled and has no such series.
    assert [warning for warning in results["warnings"] if "energy_per_metre" in warning] == []


def test_the_package_has_no_fault(aiperf: Program) -> None:
    done = aiperf("plugins", "validate", "acme-meters", "--json")
    assert done.code == 0 and json.loads(done.out)["faults"] == [], done.out
