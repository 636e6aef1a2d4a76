"""A third party's planner and its exporter of all runs, installed as wheels, in one sweep; and what reads the sweep later."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from aiperf.results import open_study
from aiperf_command_simulate.testing import Simulator
from environments import Shelf, suite
from program import Done, Program
from requirements import ROOT

if importlib.util.find_spec("uv_build") is None:
    pytest.skip("the build backend uv_build is not installed, so no wheel can be made", allow_module_level=True)

PACKAGE = ROOT / "tests" / "strangers" / "ladder"


@pytest.fixture(scope="module")
def aiperf(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The suite with the stranger, installed as a wheel."""
    work = tmp_path_factory.mktemp("ladder")
    shelf = Shelf(work / "shelf", {"acme-ladder": PACKAGE})
    packages = [*suite(), "aiperf-core[testing]", "acme-ladder"]
    return Program(work, python=shelf.environment(work / "environment", packages))


@pytest.fixture(scope="module")
def swept(aiperf: Program, shared_simulator: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Done:
    done = aiperf(
        "profile", "--model", "m", "--url", shared_simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", 16,
        "--osl", 2, "--request-count", 16, "--concurrency", "1,8,16", "--num-profile-runs", 2, "--sweep-type", "halving",
        "--podium-places", 2, "--ui", "none", "--artifact-dir", tmp_path_factory.mktemp("sweep"),
    )  # fmt: skip
    assert done.code == 0, done.err
    return done


def latencies(folder: Path) -> dict[str, float]:
    """The mean latency of each cell, from the summaries of its runs."""
    found: dict[str, list[float]] = {}
    for path in folder.glob("profile_runs/trial_*/*/profile_export_aiperf.json"):
        found.setdefault(path.parent.name, []).append(json.loads(path.read_bytes())["request_latency"]["avg"])
    assert all(len(each) == 2 for each in found.values())
    return {name: sum(each) / 2 for name, each in found.items()}


def test_the_search_went_on_beyond_the_list(swept: Done) -> None:
    cells = latencies(swept.artifacts)
    assert {"concurrency-1", "concurrency-8", "concurrency-16"} < set(cells), "it searched between these"


def test_the_podium_has_the_fastest_cells(swept: Done) -> None:
    best = sorted((latency, name) for name, latency in latencies(swept.artifacts).items())[:2]
    lines = (swept.artifacts / "podium.txt").read_text().splitlines()
    assert lines == [f"{place}. {name}: {latency:.3f} ms" for place, (latency, name) in enumerate(best, 1)]


def test_every_run_was_told_behind_its_load(swept: Done) -> None:
    labels = (swept.artifacts / "progress.txt").read_text().splitlines()
    assert sorted(labels) == sorted(f"{name}/trial_000{trial}" for name in latencies(swept.artifacts) for trial in (1, 2))


def test_its_files_are_named_behind_the_last_run(swept: Done) -> None:
    assert "podium.txt" in swept.out and "profile_export_aiperf_sweep.json" in swept.out


def test_a_reader_has_its_cells_and_their_means(swept: Done) -> None:
    study = open_study(swept.artifacts)
    cells, expected = study.cells, latencies(swept.artifacts)
    assert {cell.name: cell.number("request_latency") for cell in cells} == pytest.approx(expected)
    assert [cell.parameters["concurrency"] for cell in cells][:3] == [1, 8, 16], "in the order in which they were planned"
    rows = study.table(["request_latency_avg"]).rows
    assert [row["request_latency_avg"] for row in rows] == [cell.number("request_latency") for cell in cells]
    path = swept.artifacts / "aggregate" / "sweep_aggregate" / "profile_export_aiperf_sweep.json"
    sweep = json.loads(path.read_bytes())
    assert [each["cell"] for each in sweep["per_combination_metrics"]] == [cell.name for cell in cells]


def test_both_plugins_keep_their_contracts(aiperf: Program) -> None:
    done = aiperf("plugins", "validate", "acme-ladder")
    assert done.code == 0 and "was not run" not in done.err, done.out + done.err
