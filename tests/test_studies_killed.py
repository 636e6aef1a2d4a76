"""Studies that are broken off, by ``kill -9`` at random instants, by Ctrl-C, and by a disk without room."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import Simulator, running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills by process group")

CELLS, REQUESTS = (1, 2, 3), 6


@pytest.fixture(scope="module")
def server() -> Iterator[Simulator]:
    """One that keeps what it was sent."""
    with running(first_token_ms=5, decode_ms=2, decode_batch_us=0, truth_bodies=True) as simulator:
        yield simulator


def command(server: Simulator, directory: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "aiperf", "profile", "--model", "m", "--url", server.url, "--streaming", "--tokenizer", "builtin",
        "--isl", "20", "--osl", "8", "--request-count", str(REQUESTS), "--extra-inputs", "ignore_eos:true", "--ui", "none",
        "--concurrency", ",".join(map(str, CELLS)), "--artifact-dir", str(directory), "--no-server-metrics", *more,
    ]  # fmt: skip


def finished(directory: Path) -> dict[str, str]:
    """The id of the run of each cell that has a manifest."""
    paths = directory.glob("concurrency_*/run_manifest.json")
    return {path.parent.name: json.loads(path.read_text())["run_id"] for path in paths if ".half" not in path.parent.name}


def bodies(server: Simulator, ids: dict[str, str]) -> dict[str, Counter[str]]:
    """What the server got of each run."""
    got: dict[str, Counter[str]] = {cell: Counter() for cell in ids}
    cells = {f"{run_id[:8]}-{run_id[8:]}": cell for cell, run_id in ids.items()}
    for row in server.truth()["requests"]:
        if cell := cells.get(row["request_id"][:13]):
            got[cell][json.dumps(row["body"], sort_keys=True)] += 1
    return got


def keys(directory: Path) -> Any:
    """The shape of the sweep's aggregate."""
    about = json.loads((directory / "sweep_aggregate" / "profile_export_aiperf_sweep.json").read_text())
    return sorted(about), [(cell["parameters"], sorted(cell["metrics"])) for cell in about["per_combination_metrics"]]


def whole(server: Simulator, directory: Path) -> tuple[Any, float]:
    """A study that nothing breaks off: what the server got, the shape of its aggregate, and how long it took."""
    begun_s = time.monotonic()
    done = subprocess.run(command(server, directory), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return (bodies(server, finished(directory)), keys(directory)), time.monotonic() - begun_s


def broken_off(server: Simulator, directory: Path, takes_s: float, draw: random.Random, kills: int) -> None:
    """Kill the program and all it started at *kills* instants, and then let it end."""
    before: dict[str, str] = {}
    for _ in range(kills):
        process = subprocess.Popen(
            command(server, directory), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            process.wait(draw.uniform(0, takes_s))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)  # the parent alone: the others end with it
            process.wait()
        now = finished(directory)
        assert {cell: now.get(cell) for cell in before} == before, "a finished cell runs again"
        before = now
    done = subprocess.run(command(server, directory), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    now = finished(directory)
    assert {cell: now.get(cell) for cell in before} == before and len(now) == len(CELLS)


@pytest.mark.parametrize("rounds", [pytest.param(1, id="few"), pytest.param(20, id="many", marks=pytest.mark.long)])
def test_a_killed_study_ends_as_the_unbroken_one(tmp_path: Path, server: Simulator, rounds: int) -> None:
    server.reset()
    expected, takes_s = whole(server, tmp_path / "whole")
    assert sum(map(Counter.total, expected[0].values())) == len(CELLS) * REQUESTS
    draw = random.Random(31)
    for number in range(rounds):
        server.reset()
        directory = tmp_path / f"killed_{number}"
        broken_off(server, directory, takes_s, draw, 5)
        assert bodies(server, finished(directory)) == expected[0]
        assert keys(directory) == expected[1]


def test_ctrl_c_keeps_the_cells_that_are_done(tmp_path: Path, server: Simulator) -> None:
    directory = tmp_path / "out"
    line = command(server, directory, "--osl", "400")
    line = [word for at, word in enumerate(line) if not (word == "--osl" or line[at - 1] == "--osl")] + ["--osl", "100"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    until_s, journal = time.monotonic() + 60, directory / "concurrency_2" / "journal"
    while not list(journal.glob("*.seg")):
        assert process.poll() is None and time.monotonic() < until_s
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "concurrency_2  failed" not in err, "a run that was interrupted is partial"
    assert sorted(finished(directory)) == ["concurrency_1"] and not (directory / "concurrency_3").exists()
    assert (directory / "aggregate" / "concurrency_1").is_dir() and "concurrency" in out
    again = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 0 and "concurrency_2 was broken off; it is in concurrency_2.half" in again.stderr
    assert sorted(finished(directory)) == ["concurrency_1", "concurrency_2", "concurrency_3"]


def test_a_file_that_cannot_grow_fails_its_cell_alone(tmp_path: Path, server: Simulator) -> None:
    """A limit of file sizes stands for a full disk (EFBIG for ENOSPC): the third cell's journal does not fit."""
    directory = tmp_path / "out"
    line = command(server, directory)
    at = line.index("--concurrency")
    line[at : at + 2] = [
        "--variant", "one: concurrency=1", "--variant", "two: concurrency=2", "--variant", "large: request-count=80, isl=9000",
    ]  # fmt: skip
    at = line.index("--request-count")
    del line[at : at + 2]
    # A data set that is made while the load goes on has files of 1 MiB from the start.
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))  # noqa: E731
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False, preexec_fn=limit)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert "large  failed: " in done.stderr and "1 of 3 runs failed: large" in done.stderr
    assert (directory / "aggregate" / "one").is_dir() and (directory / "two" / "profile_export_aiperf.json").exists()
