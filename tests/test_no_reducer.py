"""Without a reducer nothing can be made of what is measured: it is said before the load, and by a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from environments import Shelf, suite
from program import Program

RUN = ("--model", "m", "--tokenizer", "builtin", "--isl", 20, "--osl", 6, "--request-count", 3, "--ui", "none")
INSTALL = "  pip install aiperf-suite"


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the suite, from which somebody has uninstalled the reducer."""
    work = tmp_path_factory.mktemp("without")
    python = Shelf(work / "shelf", {}).environment(work / "environment", suite())
    links = list((work / "environment").glob("lib/python*/site-packages/aiperf_reducer_columns*"))
    assert links
    for link in links:
        link.unlink()
    return python


def test_a_run_is_refused_before_load(without: Path, simulator: Simulator, tmp_path: Path) -> None:
    done = Program(tmp_path, python=without)("profile", "--url", simulator.url, *RUN)
    assert done.code == 1 and done.out == ""
    assert done.err.splitlines()[-2:] == [
        "error: no plugin of the category reducers is installed, and nothing would be made of what is measured", INSTALL,
    ]  # fmt: skip
    assert simulator.summary()["requests"] == 0 and not done.artifacts.exists()


def test_a_run_whose_only_reducer_is_disabled_is_refused(simulator: Simulator, tmp_path: Path) -> None:
    done = Program(tmp_path)("profile", "--url", simulator.url, "--disable-plugin", "reducers:columns", *RUN)
    assert done.code == 1 and "error: no plugin of the category reducers is installed" in done.err
    assert simulator.summary()["requests"] == 0


def test_a_report_names_the_package_that_made_the_run(without: Path, simulator: Simulator, tmp_path: Path) -> None:
    ran = Program(tmp_path)("profile", "--url", simulator.url, *RUN)
    assert ran.code == 0, ran.err
    before = {path: path.read_bytes() for path in ran.artifacts.rglob("*") if path.is_file()}
    done = Program(tmp_path, python=without)("report", ran.artifacts)
    assert (done.code, done.out) == (1, "")
    sentence, hint = done.err.splitlines()
    assert sentence.startswith("error: the plugin reducers:columns of aiperf-reducer-columns 0.1.0 can't be imported: ")
    assert hint == "  pip install aiperf-reducer-columns"
    assert {path: path.read_bytes() for path in ran.artifacts.rglob("*") if path.is_file()} == before


def test_a_report_of_a_run_that_named_none_says_what_is_missing(without: Path, simulator: Simulator, tmp_path: Path) -> None:
    ran = Program(tmp_path)("profile", "--url", simulator.url, *RUN)
    assert ran.code == 0, ran.err
    path = ran.artifacts / "journal" / "run.json"
    run = json.loads(path.read_text())
    del run["plan"]["plugins"]["reducer"]
    path.write_text(json.dumps(run))
    again = Program(tmp_path)("report", ran.artifacts, "--json")
    assert again.code == 0 and json.loads(again.out)["request_count"]["avg"] == 3, "the installed one takes it"
    done = Program(tmp_path, python=without)("report", ran.artifacts)
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        "error: no plugin of the category reducers is installed, and nothing can be read of a journal", INSTALL,
    ]  # fmt: skip
