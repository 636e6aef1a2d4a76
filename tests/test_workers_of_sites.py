"""How many workers and reducers sites get, and what a site says that has too few cores for them."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from annex_runs import ROOMS, Annex
from program import Done, Program

STREAMS = ("--model", "m", "--url", "http://127.0.0.1:9", "--tokenizer", "builtin", "--isl", 20, "--osl", 256, "--streaming",
           "--num-dataset-entries", 3, "--concurrency", 4000, "--request-count", 9000, "--dry-run")  # fmt: skip


@pytest.fixture
def annex(tmp_path: Path, simulator: Simulator) -> Annex:
    return Annex(tmp_path, simulator)


@pytest.fixture
def one_core() -> str:
    """What lets a command have a single core."""
    if shutil.which("taskset") is None:
        pytest.skip("taskset is not installed")
    return f"taskset -c {min(os.sched_getaffinity(0))}"


def planned(annex: Annex, *more: str | int, rooms: tuple[str, ...] = ROOMS) -> tuple[str, str]:
    """What a dry run says of the number of processes: the number, and why."""
    done = annex.aiperf("profile", *STREAMS, *more, "--engine", "annex", "--annex-rooms", ",".join(rooms))
    assert done.code == 0, done.err
    match = re.search(r"(\d+ workers? and \d+ reducers?): (.+)", done.err)
    assert match is not None, done.err
    return match[1], match[2]


def test_workers_of_sites_follow_the_load_whatever_this_machine_has(annex: Annex, one_core: str) -> None:
    many, why = planned(annex)
    assert many == "6 workers and 3 reducers"
    assert why.startswith("781 requests/s with 200,000 chunks/s, 4,000 sessions at a time are expected to take 4.0 cores")
    annex.aiperf.program = [*one_core.split(), *Program(annex.folder).program]
    assert planned(annex)[0] == many
    here = annex.aiperf("profile", *STREAMS)
    assert "1 worker and 1 reducer: " in here.err and "1 CPUs" in here.err, here.err


def test_workers_of_sites_are_bounded_by_options_and_by_the_cap_of_each(annex: Annex) -> None:
    assert planned(annex, "--workers-max", 4)[0] == "3 workers and 3 reducers"
    annex.aiperf.environment["AIPERF_WORKER_MAX_WORKERS_CAP"] = "2"
    many, why = planned(annex, rooms=ROOMS[:2])
    assert many == "4 workers and 2 reducers" and "and 2 workers of a site and the load's own limits leave room for 4" in why


def test_a_site_with_fewer_cores_than_processes_says_so(annex: Annex, one_core: str) -> None:
    annex.enter_through(f'case "$place" in *barn) exec {one_core} "$@";; esac; exec "$@"')
    load = ("--tokenizer", "builtin", "--osl", 4, "--request-rate", 100, "--request-count", 8)
    done: Done = annex(*load, rooms=ROOMS[:2])
    assert done.code == 0, done.err
    note = "site barn: it has 1 core for 1 worker and 1 reducer, which wait for each other: set --workers, or use more sites"
    assert done.err.index(note) < done.err.index("Phase profiling (profiling) started")
    assert note in done.json()["warnings"]
    assert len(os.sched_getaffinity(0)) < 2 or "site attic: it has" not in done.err
