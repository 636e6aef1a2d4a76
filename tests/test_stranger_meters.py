"""A third party's numbers of answers, units, folds and metrics of metrics, in a real run and in its report."""

from __future__ import annotations

import csv
import importlib.util
import json

import pytest
from aiperf_command_simulate.testing import Simulator
from environments import Shelf, suite
from program import Done, Program
from requirements import ROOT

if importlib.util.find_spec("uv_build") is None:
    pytest.skip("the build backend uv_build is not installed, so no wheel can be made", allow_module_level=True)


@pytest.fixture(scope="module")
def aiperf(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The suite with the stranger, installed as a wheel."""
    work = tmp_path_factory.mktemp("meters")
    shelf = Shelf(work / "shelf", {"acme-meters": ROOT / "tests" / "strangers" / "meters"})
    made = Program(work, python=shelf.environment(work / "environment", [*suite(), "acme-meters"]))
    made.environment["AIPERF_CACHE_DIR"] = str(work / "cache")
    return made


@pytest.fixture(scope="module")
def run(aiperf: Program, shared_simulator: Simulator) -> Done:
    """A run of two reducers."""
    done = aiperf(
        "profile", "--model", "m", "--url", shared_simulator.url, "--endpoint-type", "metered", "--streaming", "--tokenizer",
        "builtin", "--isl", 20, "--osl", 6, "--request-count", 12, "--ui", "none", "--workers-max", 2,
        "--concurrency", 4, "--record-processors", 2, "--export-level", "raw",
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


def test_the_package_has_no_fault(aiperf: Program) -> None:
    done = aiperf("plugins", "validate", "acme-meters", "--json")
    assert done.code == 0 and json.loads(done.out)["faults"] == [], done.out
