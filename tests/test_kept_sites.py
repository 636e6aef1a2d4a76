"""Plans one after the other with the same sites: ``aiperf.Run`` with an engine that has sites."""

from __future__ import annotations

import importlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiperf
import pytest
from aiperf.sites.silence import SILENCE_S
from aiperf_command_simulate.testing import Simulator
from annex_runs import ANNEX, ROOMS
from program import variables_of, wait_for
from rogues import install_from
from sent_tokenizers import write_tokenizer
from test_run_again import STARTED, when

TWO = ROOMS[:2]
PLAN: dict[str, Any] = {
    "model": "m", "tokenizer": "builtin", "isl": 10, "osl": 2, "streaming": True, "random_seed": 7, "no_server_metrics": True,
}  # fmt: skip
RATED = {"request_rate": 60, "request_count": 12}


@pytest.fixture(autouse=True)
def rooms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The stranger's engine, and rooms for its sites."""
    packages, folder = tmp_path / "packages", tmp_path / "runs"
    install_from(packages, ANNEX)
    folder.mkdir()
    for room in ROOMS:
        (folder / room).mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("AIPERF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(packages))
    monkeypatch.syspath_prepend(packages)


@pytest.fixture
def run() -> Iterator[aiperf.Run]:
    with aiperf.Run() as run:
        yield run


def at(*rooms: str) -> dict[str, Any]:
    return {"engine": "annex", "annex_rooms": rooms}


def processes(room: str) -> dict[str, list[int]]:
    """Those of a site, by what they are."""
    place = f"TMPDIR={Path(room).absolute()}".encode()
    found: dict[str, list[int]] = {"site_process": [], "worker": [], "reducer_process": []}
    for entry in Path("/proc").glob("[0-9]*"):
        if place in variables_of(int(entry.name)):
            command = (entry / "cmdline").read_bytes().decode()
            for role, pids in found.items():
                if f"aiperf.run.{role}" in command or f"aiperf.{role}.process" in command:
                    pids.append(int(entry.name))
    return {role: sorted(pids) for role, pids in found.items()}


def ledger(name: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in Path(name, "profile_export_arrivals.jsonl").read_text().splitlines()]
    return sorted(rows, key=lambda row: row["n"])


def assert_same_arrivals(name: str, other: str) -> None:
    """The same arrivals were due at the same times.

    In the ledger they are where the clocks of sites are known to have been, which moves them by microseconds.
    """
    dues = [{path.name: path.read_bytes() for path in Path(each, "journal").glob("due*")} for each in (name, other)]
    assert dues[0] == dues[1] and dues[0]
    rows = [ledger(each) for each in (name, other)]
    assert [row["n"] for row in rows[0]] == [row["n"] for row in rows[1]]
    for row, twin in zip(*rows, strict=True):
        assert abs(row["due_ns"] - rows[0][0]["due_ns"] - twin["due_ns"] + rows[1][0]["due_ns"]) < 1e6


def seen(simulator: Simulator) -> set[str]:
    """Ids of the requests that the server saw, each once; it forgets them."""
    ids = [row["request_id"] for row in simulator.truth()["requests"]]
    simulator.reset()
    assert len(set(ids)) == len(ids)
    return set(ids)


def files(folder: str) -> set[str]:
    found = (path for path in Path(folder).rglob("*") if path.is_file() and "telemetry" not in path.name)
    return {str(path.relative_to(folder)) for path in found}


def test_a_second_plan_at_kept_sites_is_that_of_a_fresh_run(simulator: Simulator, run: aiperf.Run) -> None:
    plan = {**PLAN, **RATED, "url": simulator.url, **at(*TWO)}
    aiperf.profile(**plan, artifact_dir="fresh")
    assert [list(Path(room).iterdir()) for room in TWO] == [[], []]
    simulator.reset()
    other = run.profile(**{**plan, "request_count": 30, "isl": 20, "random_seed": 8}, concurrency=4, artifact_dir="first")
    before = {room: processes(room) for room in TWO}
    assert other.valid == 30 and len(seen(simulator)) == 30
    again = run.profile(**plan, artifact_dir="again")
    assert {room: processes(room) for room in TWO} == before, "the same processes"
    assert [[len(pids) for pids in before[room].values()] for room in TWO] == [[1, 1, 1]] * 2
    assert seen(simulator) == {row["x_request_id"] for row in ledger("again")} and again.valid == 12
    assert_same_arrivals("again", "fresh")
    assert {row["outcome"] for row in ledger("again")} == {"completed"}
    assert files("again") == files("fresh")
    sites = json.loads(Path("again/profile_export_aiperf.json").read_text())["measurement"]["sites"]
    assert [(site["name"], site["shards"]) for site in sites] == [("attic", [0]), ("barn", [1])]
    assert all(site["trips"] >= 40 for site in sites)
    run.close()
    assert [list(Path(room).iterdir()) for room in TWO] == [[], []]
    assert all(not any(processes(room).values()) for room in TWO)


@pytest.mark.long
def test_plans_of_any_kind_follow_on_each_other(simulator: Simulator, run: aiperf.Run) -> None:
    """Bursts, rates, sessions, fewer and more workers, a warmup: each sends what a fresh run sends."""
    plans: list[dict[str, Any]] = [
        {"concurrency": 6, "request_count": 90, "workers": 4},
        RATED,
        {"concurrency": 3, "num_sessions": 14, "session_turns_mean": 3, "session_turns_stddev": 1},
        {"concurrency": 2, "request_count": 40, "warmup_request_count": 5},
        {"concurrency": 6, "request_count": 60, "workers": 4, "isl": 20},
        {**RATED, "prefill_concurrency": 4, "export_level": "raw"},
    ]
    kept = set[tuple[int, ...]]()
    for number, plan in enumerate(plans):
        whole = {**PLAN, **plan, "url": simulator.url, **at(*TWO)}
        aiperf.profile(**whole, artifact_dir=f"fresh{number}")
        fresh = simulator.summary()
        simulator.reset()
        summary = run.profile(**whole, artifact_dir=f"kept{number}")
        again = simulator.summary()
        assert len(seen(simulator)) == fresh["requests"] == again["requests"]
        assert summary.incomplete_reason is None and again["in_flight_max"] <= plan.get("concurrency", 100)
        for of in (lambda row: row["n"], lambda row: (row["session"], row["turn"])):
            assert Counter(map(of, ledger(f"kept{number}"))) == Counter(map(of, ledger(f"fresh{number}")))
        if "request_rate" in plan:
            assert_same_arrivals(f"kept{number}", f"fresh{number}")
        assert files(f"kept{number}") >= files(f"fresh{number}") - {name for name in files(f"fresh{number}") if ".seg" in name}
        assert len({row["worker"] for row in ledger(f"kept{number}")}) == plan.get("workers", 2)
        kept.add(tuple(pid for room in TWO for pid in processes(room)["site_process"]))
    assert len(kept) == 1, "the same sites"
    assert [len(processes(room)["worker"]) for room in TWO] == [2, 2]


def sent(room: str, names: str) -> dict[str, tuple[int, int]]:
    """Where each file with such a name is at a site that has a byte: device and inode."""
    places = Path(room).glob(f"aiperf-site-*/plan-*/journal/{names}")
    return {path.name: (path.stat().st_dev, path.stat().st_ino) for path in places if path.stat().st_size}


@pytest.mark.long
def test_a_data_set_goes_once_and_a_disk_does_not_grow(simulator: Simulator, run: aiperf.Run) -> None:
    found, kept = list[dict[str, tuple[int, int]]](), list[int]()
    for number, more in enumerate(({}, {"concurrency": 4}, {"isl": 25}, {"isl": 25, "request_count": 20})):
        few = {"request_count": 10, "concurrency": 2, "num_dataset_entries": 50}
        plan = {**PLAN, **few, "url": simulator.url, **at(*TWO), **more}
        with when(STARTED, lambda: found.append(sent("attic", "dataset.*"))):
            assert run.profile(**plan, artifact_dir=f"{number}").valid == plan["request_count"]
        wait_for(lambda: not [*Path("attic").glob("aiperf-site-*/plan-*")])
        kept.append(sum(path.stat().st_size for path in Path("attic").glob("aiperf-site-*/files/*")))
    assert found[0] and found[0] == found[1] and found[2] == found[3]
    assert {*found[0].values()} != {*found[2].values()}
    assert max(kept) < 2 * min(kept)


@pytest.mark.long
def test_a_tokenizer_goes_once(simulator: Simulator, run: aiperf.Run) -> None:
    write_tokenizer(Path("own"))
    found, sizes = list[dict[str, tuple[int, int]]](), list[float]()
    changes: tuple[dict[str, Any], ...] = ({}, {"isl": 25}, {"isl": 25}, {"isl": 25, "tokenizer": "builtin"}, {"isl": 25})
    for number, more in enumerate(changes):
        plan = {**PLAN, "tokenizer": "own", "request_count": 10, "concurrency": 2, "url": simulator.url, **at(*TWO), **more}
        with when(STARTED, lambda: found.append(sent("attic", "tokenizer.*"))):
            summary = run.profile(**plan, artifact_dir=f"{number}")
        assert summary.valid == 10
        sizes.append(summary.results["input_sequence_length"].stats["avg"])
    assert found[0].keys() == {"tokenizer.tokenizer.json", "tokenizer.tokenizer_config.json"}
    assert found[0] == found[1] == found[2] and not found[3] and found[4].keys() == found[0].keys()
    assert sizes[0] == 10 and {*sizes[1:]} == {25}


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{pid}").exists() or ") Z " in Path(f"/proc/{pid}/stat").read_text())


def test_a_site_that_dies_between_two_plans_is_started_anew(
    simulator: Simulator, run: aiperf.Run, caplog: pytest.LogCaptureFixture
) -> None:
    plan = {**PLAN, **RATED, "url": simulator.url, **at(*TWO)}
    run.profile(**plan, artifact_dir="first")
    (site,) = processes("barn")["site_process"]
    kill(site)
    seen(simulator)
    with caplog.at_level(logging.WARNING):
        again = run.profile(**plan, artifact_dir="again")
    said = "the site barn has ended between two plans: its command was killed by SIGKILL; all sites are started anew"
    assert said in caplog.messages
    assert (again.valid, again.incomplete_reason, len(seen(simulator))) == (12, None, 12)
    assert_same_arrivals("again", "first")


@pytest.mark.long
def test_a_site_that_cannot_be_started_again_is_named(
    simulator: Simulator, run: aiperf.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, full = Path("bin/env").absolute(), Path("full").absolute()
    door.parent.mkdir()
    door.write_text(f'#!/bin/sh\n[ -e {full} ] && echo no room >&2 && exit 7\nexec {shutil.which("env")} "$@"\n')
    door.chmod(0o755)
    monkeypatch.setenv("PATH", f"{door.parent}:{os.environ['PATH']}")
    plan = {**PLAN, **RATED, "url": simulator.url, **at(*TWO)}
    run.profile(**plan, artifact_dir="first")
    kill(processes("barn")["site_process"][0])
    full.touch()
    seen(simulator)
    with pytest.raises(aiperf.AiperfError, match=r"site barn: its command exited with 7 \(no room\)"):
        run.profile(**plan, artifact_dir="refused")
    assert not seen(simulator) and not any(any(processes(room).values()) for room in TWO)
    full.unlink()
    assert run.profile(**plan, artifact_dir="again").valid == 12


@pytest.mark.long
def test_processes_that_die_at_a_site_between_two_plans_are_replaced(simulator: Simulator, run: aiperf.Run) -> None:
    plan = {**PLAN, **RATED, "url": simulator.url, **at(*TWO)}
    run.profile(**plan, artifact_dir="first")
    before = processes("barn")
    kill(before["worker"][0])
    kill(before["reducer_process"][0])
    seen(simulator)
    again = run.profile(**plan, artifact_dir="again")
    assert (again.valid, again.incomplete_reason, len(seen(simulator))) == (12, None, 12)
    now = processes("barn")
    assert now["site_process"] == before["site_process"] and now["worker"] != before["worker"]


@pytest.mark.long
def test_sites_wait_while_the_program_does_something_else(simulator: Simulator, run: aiperf.Run) -> None:
    plan = {**PLAN, **RATED, "url": simulator.url, **at(*TWO)}
    run.profile(**plan, artifact_dir="first")
    before = processes("attic")
    used = cpu_ticks(before)
    time.sleep(SILENCE_S + 10)  # a program that computes: nobody hears of it
    assert cpu_ticks(before) - used <= 10
    assert run.profile(**plan, artifact_dir="again").valid == 12 and processes("attic") == before


def cpu_ticks(pids: dict[str, list[int]]) -> int:
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for of in pids.values() for pid in of]
    return sum(int(stat[11]) + int(stat[12]) for stat in stats)


@pytest.mark.long
def test_plans_that_end_badly_or_differ_in_surroundings_have_new_sites(
    simulator: Simulator, run: aiperf.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = {**PLAN, **RATED, "url": simulator.url, **at(*TWO)}
    found = list[tuple[list[int], ...]]()

    def note() -> None:
        found.append(tuple(processes(room)["site_process"] for room in ROOMS))

    run.profile(**plan, artifact_dir="first")
    note()
    with pytest.raises(aiperf.AiperfError, match=r"not ready within 0\.2 s"):
        run.profile(**{**plan, "url": "http://127.0.0.1:9"}, wait_for_model_timeout=0.2, artifact_dir="nobody")
    run.profile(**plan, artifact_dir="second")
    note()
    with when(STARTED, lambda: kill(processes("barn")["site_process"][0])):
        lost = run.profile(**{**plan, "request_count": 120}, artifact_dir="lost")
    assert lost.incomplete_reason is not None and "the site barn was lost" in lost.incomplete_reason
    run.profile(**plan, artifact_dir="third")
    note()
    monkeypatch.setenv("AIPERF_HTTP_IP_VERSION", "4")
    run.profile(**plan, artifact_dir="fourth")
    note()
    run.profile(**{**plan, **at(*ROOMS)}, artifact_dir="fifth")
    note()
    run.profile(**{**plan, **at(*ROOMS)}, workers=6, artifact_dir="sixth")
    note()
    run.profile(**{**plan, "engine": None, "annex_rooms": None}, artifact_dir="seventh")
    note()
    assert [[len(pids) for pids in rooms] for rooms in found] == [[1, 1, 0]] * 4 + [[1, 1, 1]] * 2 + [[0, 0, 0]]
    pids = [pid for rooms in found for of in rooms for pid in of]
    assert len({*pids}) == len(pids), "each has other processes"


@pytest.mark.long
def test_a_stop_reaches_the_sites_of_a_second_plan(simulator: Simulator, run: aiperf.Run) -> None:
    plan = {**PLAN, "url": simulator.url, "request_rate": 40, **at(*TWO)}
    run.profile(**plan, request_count=10, artifact_dir="first")
    before = {room: processes(room) for room in TWO}
    seen(simulator)
    timer = threading.Timer(0.0, lambda: None)

    def soon() -> None:
        nonlocal timer
        timer = threading.Timer(1.0, run.stop, ["enough"])
        timer.start()

    with when(STARTED, soon):
        second = run.profile(**plan, benchmark_duration=60, artifact_dir="second")
    timer.join()
    outcomes = Counter(row["outcome"] for row in ledger("second"))
    assert second.cancelled and "the program stopped the run: enough" in str(second.incomplete_reason)
    assert outcomes["unknown"] == 0 and outcomes["completed"] == len(seen(simulator)) > 0
    assert run.profile(**plan, request_count=10, artifact_dir="third").valid == 10
    assert {room: processes(room) for room in TWO} == before


@pytest.mark.long
def test_a_sweep_has_the_same_sites(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = importlib.import_module("acme_annex").Annex
    starts, start = list[int](), engine.start

    def counted(self: aiperf.SiteEngine[Any], about: aiperf.SiteStart) -> aiperf.Shard:
        starts.append(about.index)
        started: aiperf.Shard = start(self, about)
        return started

    monkeypatch.setattr(engine, "start", counted)
    study = aiperf.sweep(**PLAN, url=simulator.url, request_count=12, concurrency=[2, 3, 4], artifact_dir="sweep", **at(*TWO))
    assert [(run.summary.valid if run.summary is not None else 0, run.failed) for run in study.runs] == [(12, "")] * 3
    assert starts == [0, 1]
    assert len(seen(simulator)) == 36
    assert [list(Path(room).iterdir()) for room in TWO] == [[], []]


PROGRAM = """
import os, signal, sys
import aiperf

url, *rooms = sys.argv[1:]
run = aiperf.Run()
run.profile(
    model="m", tokenizer="builtin", isl=10, osl=2, url=url, request_rate=60, request_count=12, artifact_dir="first",
    engine="annex", annex_rooms=rooms,
)
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.mark.long
def test_sites_at_rest_end_with_the_program(simulator: Simulator) -> None:
    words = [sys.executable, "-P", "-c", PROGRAM, simulator.url, *TWO]
    for number in (signal.SIGKILL, signal.SIGSTOP):
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            assert program.stdin is not None and program.stdout is not None
            assert program.stdout.readline() == b"ready\n"
            assert all(processes(room)["site_process"] for room in TWO)
            program.send_signal(number)
            wait_for(lambda: not any(any(processes(room).values()) for room in TWO), seconds=90)
            assert [list(Path(room).iterdir()) for room in TWO] == [[], []]
            program.kill()


@pytest.mark.long
def test_a_site_that_says_nothing_any_more_is_started_anew(
    simulator: Simulator, run: aiperf.Run, caplog: pytest.LogCaptureFixture
) -> None:
    plan = {**PLAN, **RATED, "url": simulator.url, **at(*TWO)}
    run.profile(**plan, artifact_dir="first")
    (site,) = processes("barn")["site_process"]
    os.kill(site, signal.SIGSTOP)
    seen(simulator)
    with caplog.at_level(logging.WARNING):
        again = run.profile(**plan, artifact_dir="again")
    assert f"nothing was heard of the site barn for {SILENCE_S:g} s; all sites are started anew" in caplog.messages
    assert (again.valid, again.incomplete_reason, len(seen(simulator))) == (12, None, 12)
    assert site not in processes("barn")["site_process"]
