"""Files of a measured plan that are written between two loads: ``measure(..., later=True)``."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiperf.cli.from_code import _settings, unchanged
from aiperf.errors import AiperfError
from aiperf.run.fleet import Fleet
from aiperf.run.measured import Measured
from aiperf.run.run import execute, measure
from aiperf_command_simulate.testing import Simulator, running
from program import Program, wait_for

PLAN: dict[str, Any] = {
    "model": "m", "tokenizer": "builtin", "isl": 10, "osl": 2, "streaming": True, "request_count": 8, "concurrency": 2,
    "random_seed": 1,
}  # fmt: skip


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AIPERF_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with running() as simulator:
        yield simulator


def measured(fleet: Fleet, directory: str, url: str, *, later: bool = True, **options: Any) -> Measured:
    settings, registry = _settings([], {**PLAN, "url": url, "artifact_dir": directory, **options}, console=False)
    with unchanged(settings) as signals:
        return measure(settings, registry, signals, fleet, console=False, later=later)


def names(directory: Path) -> set[str]:
    """Without those of the server's metrics: on a busy machine a short load is over before their first sample."""
    found = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith(("journal/telemetry", "server_metrics"))}


def times(directory: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((directory / "journal" / "run-times.json").read_text())
    return found


def test_put_off_files_are_written_between_two_loads(simulator: Simulator, tmp_path: Path) -> None:
    told: list[tuple[str, int, bool]] = []

    def done(each: Measured, error: AiperfError | None) -> None:
        told.append((each.directory.name, each.code, error is None))

    with contextlib.closing(Fleet(kept=True)) as fleet:
        for name in ("first", "second"):
            plan = measured(fleet, name, simulator.url)
            assert not (tmp_path / name / "profile_export_aiperf.json").exists()
            assert plan.summary.valid == 8
            fleet.files_of(plan, done)
            fleet.settle(0, lambda seconds: True)
        assert told == [("first", 0, True)]
        fleet.finish_files()
        assert told == [("first", 0, True), ("second", 0, True)]
        settings, registry = _settings([], {**PLAN, "url": simulator.url, "artifact_dir": "at_once"}, console=False)
        with unchanged(settings) as signals:
            execute(settings, registry, signals, fleet, console=False)
    first, second = times(tmp_path / "first"), times(tmp_path / "second")
    assert first["last_answer_ns"] < first["export_ns"] < first["exported_ns"] < second["begin_ns"]
    assert second["last_answer_ns"] < second["export_ns"]
    assert names(tmp_path / "first") == names(tmp_path / "at_once")
    assert "8 succeeded" in (tmp_path / "first" / "logs" / "aiperf.log").read_text()
    assert (tmp_path / "second" / "logs" / "aiperf.log").read_text().count("8 succeeded") == 1


def test_a_kept_data_set_sends_the_same_bytes(tmp_path: Path) -> None:
    def sent(server: Simulator) -> list[Any]:
        rows = [row["body"] for row in server.truth()["requests"]]
        server.reset()
        return sorted(rows)

    def builder(fleet: Fleet) -> int:
        assert fleet._builder is not None
        return fleet._builder.pid

    with running(truth_bodies=True, first_token_ms=5, decode_ms=1) as server, contextlib.closing(Fleet(kept=True)) as fleet:
        assert measured(fleet, "made", server.url, later=False).code == 0
        kept, before = sent(server), builder(fleet)
        assert measured(fleet, "kept", server.url, later=False).code == 0
        assert sent(server) == kept and len(kept) == 8 and builder(fleet) == before
        stored = [tmp_path / name / "journal" / "dataset.bodies" for name in ("made", "kept")]
        assert stored[0].samefile(stored[1])
        shutil.rmtree(tmp_path / "made")
        assert (tmp_path / "kept" / "inputs.json").stat().st_size > 100 and stored[1].stat().st_size > 100

        os.kill(before, signal.SIGKILL)
        wait_for(lambda: Path(f"/proc/{before}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        assert measured(fleet, "replaced", server.url, later=False).code == 0
        assert builder(fleet) != before and sent(server) == kept
        assert measured(fleet, "other", server.url, later=False, random_seed=2).code == 0
        assert sent(server) != kept


MEMORY = """
import json, os, sys
from pathlib import Path
import aiperf

def resident_kb():
    found = {}
    for pid in ["self", *Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        found[pid] = next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))
    return found

with aiperf.Run() as run:
    for number in range(100):
        run.profile(url=sys.argv[1], artifact_dir="same", model="m", tokenizer="builtin", isl=10, osl=2, request_count=8,
            concurrency=2, random_seed=number)
        if number == 1:
            second = resident_kb()
    print(json.dumps([second, resident_kb()]))
"""


@pytest.mark.long
def test_a_hundred_plans_take_no_more_memory_than_two(simulator: Simulator, tmp_path: Path) -> None:
    words = [sys.executable, "-P", "-c", MEMORY, simulator.url]
    environment = Program(tmp_path).environment
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, check=True)
    second, last = json.loads(done.stdout)
    kept = second.keys() & last.keys()
    assert len(kept) >= 4, "the program, builder, worker, reducer"
    assert {pid: last[pid] / second[pid] for pid in kept if last[pid] > 1.1 * second[pid]} == {}
