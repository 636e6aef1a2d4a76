"""Sites by the ssh program and Debian's server on loopback; skipped with the reason where that can't be started."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator, running
from arrivals import ledger, same_due
from program import Done, Program, variables_of, wait_for
from ssh_server import NoSshError, ssh_server

COUNTED = ("--request-rate", 40, "--request-count", 400)


@pytest.fixture
def slow() -> Iterator[Simulator]:
    with running(first_token_ms=20, decode_ms=2, decode_batch_us=0) as simulator:
        yield simulator


@pytest.fixture
def options(tmp_path: Path) -> Iterator[tuple[int, str]]:
    """The port of a server that lets this user in, and options of the ssh program for it."""
    try:
        with ssh_server(tmp_path) as found:
            yield found
    except NoSshError as error:
        pytest.skip(str(error))


def test_two_logins_are_two_sites(aiperf: Program, simulator: Simulator, options: tuple[int, str]) -> None:
    port, more = options
    load = (
        "--model", "sim", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 30, "--osl", 4, "--ui", "none",
        "--request-rate", 100, "--request-count", 40,
    )  # fmt: skip
    hosts = f"127.0.0.1:{port},localhost:{port}"
    there = ("--engine", "ssh", "--ssh-hosts", hosts, "--ssh-python", sys.executable)
    refused = aiperf("profile", *load, *there)
    said = rf"error: site (127\.0\.0\.1|localhost):{port}: its command exited with 255"
    assert refused.code == 1 and re.search(said, refused.err)
    assert simulator.summary()["requests"] == 0
    done: Done = aiperf("profile", *load, *there, "--ssh-options", f"{more} -o HostKeyAlias=[127.0.0.1]:{port}")
    assert done.code == 0, done.err
    rows = done.lines("profile_export_arrivals.jsonl")
    assert sorted(row["n"] for row in rows) == [*range(40)] and {row["worker"] for row in rows} == {"worker-0", "worker-1"}
    assert {row["request_id"] for row in simulator.truth()["requests"]} == {row["x_request_id"] for row in rows}
    assert [site["name"] for site in done.json()["measurement"]["sites"]] == hosts.split(",")


def sites(options: tuple[int, str]) -> tuple[str, ...]:
    """Two, by two names of this machine."""
    port, more = options
    hosts, more = f"127.0.0.1:{port},localhost:{port}", f"{more} -o HostKeyAlias=[127.0.0.1]:{port}"
    return "--engine", "ssh", "--ssh-hosts", hosts, "--ssh-options", more


def words(simulator: Simulator, *more: str | int, name: str) -> list[str | int]:
    return [
        "profile", "--model", "sim", "--url", simulator.url, "--tokenizer", "builtin", "--streaming", "--random-seed", 7,
        "--ui", "none", "--artifact-dir", name, *more,
    ]  # fmt: skip


def run(aiperf: Program, simulator: Simulator, *more: str | int, name: str) -> Done:
    simulator.reset()
    done = aiperf(*words(simulator, *more, name=name))
    assert done.code == 0, done.err
    return Done(done.code, done.out, done.err, aiperf.folder / name)


@pytest.mark.long
def test_each_load_over_ssh_is_that_of_one_machine(aiperf: Program, slow: Simulator, options: tuple[int, str]) -> None:
    short, there = ("--isl", 30, "--osl", 4), (*sites(options), "--ssh-python", sys.executable)
    trace = aiperf.folder / "trace.jsonl"
    rows = [{"timestamp": 10 * n, "text_input": f"line {n}", "output_length": 3} for n in range(30)]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    replay = ("--input-file", trace.name, "--custom-dataset-type", "mooncake_trace", "--fixed-schedule")
    for name, load in (("rate", (*short, "--request-rate", 100, "--request-count", 60)), ("replay", replay)):
        local, far = (run(aiperf, slow, *load, *more, name=f"{name}{len(more)}") for more in ((), there))
        assert same_due(local, far) and len(ledger(far)) == slow.summary()["requests"] >= 30
    run(aiperf, slow, *short, "--concurrency", 5, "--request-count", 50, "--workers", 4, *there, name="burst")
    assert slow.summary()["in_flight_max"] <= 5 and slow.summary()["requests"] == 50
    sessions = (*short, "--concurrency", 4, "--num-sessions", 12, "--session-turns-mean", 3)
    local, far = (run(aiperf, slow, *sessions, *more, name=f"sessions{len(more)}") for more in ((), there))
    assert Counter(row["session"] for row in ledger(far)) == Counter(row["session"] for row in ledger(local))
    assert far.json()["is_complete"] and slow.summary()["requests"] == len(ledger(far))


def disturbed(aiperf: Program, simulator: Simulator, options: tuple[int, str], disturb: Callable[[list[int]], None]) -> Done:
    """A run of ten seconds, with *disturb* in its midst, which gets the processes of one site, its own first."""
    python, place = aiperf.folder / "python", f"TEST_PLACE={aiperf.folder}"
    python.write_text(f'#!/bin/sh\n{place} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    started = aiperf.start(
        *words(simulator, "--isl", 30, "--osl", 4, *COUNTED, *sites(options), name="run"), "--ssh-python", python
    )
    columns = [aiperf.folder / "run" / "journal" / f"columns-{site}.0" for site in range(2)]
    wait_for(lambda: all(path.exists() and path.stat().st_size > 0 for path in columns))
    own = [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if place.encode() in variables_of(int(entry.name))]
    site = next(pid for pid in own if b"aiperf.run.site_process" in Path(f"/proc/{pid}/cmdline").read_bytes())
    disturb([site, *(pid for pid in own if parent(pid) == site)])
    done = started.end()
    return Done(done.code, done.out, done.err, aiperf.folder / "run")


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.long
def test_a_site_that_is_killed_over_ssh_is_named(aiperf: Program, simulator: Simulator, options: tuple[int, str]) -> None:
    done = disturbed(aiperf, simulator, options, lambda pids: os.kill(pids[0], signal.SIGKILL))
    assert done.code == 1, done.err
    (site,) = [site for site in done.json()["measurement"]["sites"] if "lost" in site]
    assert done.json()["incomplete_reason"].startswith(f"the site {site['name']} was lost: its command")
    rows = Counter((row.get("worker"), row["outcome"]) for row in ledger(done))
    assert sum(rows.values()) == 400 and rows[f"worker-{site['shards'][0]}", "completed"] > 0 and rows[None, "unknown"] > 0
    seen = {row["request_id"] for row in simulator.truth()["requests"]}
    assert {row["x_request_id"] for row in ledger(done) if row["outcome"] == "completed"} <= seen


@pytest.mark.long
def test_a_site_that_stops_for_five_seconds_over_ssh_loses_nothing(
    aiperf: Program, simulator: Simulator, options: tuple[int, str]
) -> None:
    def stop(pids: list[int]) -> None:
        assert len(pids) > 2
        for number, wait_s in ((signal.SIGSTOP, 5.0), (signal.SIGCONT, 0.0)):
            for pid in pids:
                os.kill(pid, number)
            time.sleep(wait_s)

    done = disturbed(aiperf, simulator, options, stop)
    assert done.code == 0, done.err
    assert [row["outcome"] for row in ledger(done)] == ["completed"] * 400 and simulator.summary()["requests"] == 400


@pytest.mark.long
def test_a_connection_that_ends_is_a_site_that_is_started_again(
    aiperf: Program, simulator: Simulator, options: tuple[int, str]
) -> None:
    port, more = options
    hosts = f"127.0.0.1:{port},localhost:{port}"
    run = aiperf.start(
        "profile", "--model", "sim", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 30, "--osl", 4, "--ui", "none",
        "--request-rate", 20, "--request-count", 300, "--artifact-dir", "run", "--restart-lost-shards", "--engine", "ssh",
        "--ssh-hosts", hosts, "--ssh-python", sys.executable, "--ssh-options", f"{more} -o HostKeyAlias=[127.0.0.1]:{port}",
    )  # fmt: skip
    columns = aiperf.folder / "run" / "journal" / "columns-1.0"
    wait_for(lambda: columns.exists() and columns.stat().st_size > 0)
    (client,) = [pid for pid, command in run.processes().items() if " -R " in command and " -- localhost " in command]
    os.kill(client, signal.SIGKILL)
    done = run.end()
    done = Done(done.code, done.out, done.err, aiperf.folder / "run")
    assert done.code == 1, done.err
    assert f"the site localhost:{port} was lost and started again once" in done.json()["incomplete_reason"]
    rows = sorted(done.lines("profile_export_arrivals.jsonl"), key=lambda row: row["n"])
    assert [row["n"] for row in rows] == [*range(300)] and rows[-1]["outcome"] == "completed"
    assert {row["site"] for row in rows if row["outcome"] == "unknown"} <= {f"localhost:{port}"}
    # One session for each arrival.
    assert max(Counter(row["correlation_id"] for row in simulator.truth()["requests"]).values()) == 1


def test_repeats_log_in_once(aiperf: Program, simulator: Simulator, options: tuple[int, str]) -> None:
    port, more = options
    program, calls = aiperf.folder / "bin" / "ssh", aiperf.folder / "calls"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$$" >> {calls}\nexec {shutil.which("ssh")} "$@"\n')
    program.chmod(0o755)
    aiperf.environment["PATH"] = f"{program.parent}:{aiperf.environment['PATH']}"
    done = aiperf(
        "profile", "--model", "sim", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 30, "--osl", 4, "--ui", "none",
        "--request-rate", 100, "--request-count", 40, "--num-profile-runs", 3, "--artifact-dir", "runs", "--engine", "ssh",
        "--ssh-hosts", f"127.0.0.1:{port},localhost:{port}", "--ssh-python", sys.executable,
        "--ssh-options", f"{more} -o HostKeyAlias=[127.0.0.1]:{port}",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert len(calls.read_text().split()) == 2
    rows = [json.loads(line) for path in (aiperf.folder / "runs").rglob("*arrivals.jsonl") for line in path.open()]
    ids = [row["request_id"] for row in simulator.truth()["requests"]]
    assert Counter(row["x_request_id"] for row in rows) == Counter(ids) and len(ids) == 120


@pytest.mark.long
@pytest.mark.parametrize(("cause", "said"), [
    ("a host that nobody knows", "exited with 255 (Host key verification failed.)"),
    ("a login that wants a password", "Permission denied"), ("a python without aiperf", "No module named 'aiperf'"),
    ("no python", "exited with 127"),
])  # fmt: skip
def test_a_machine_that_can_not_be_used_is_named_before_the_load(
    aiperf: Program, simulator: Simulator, options: tuple[int, str], cause: str, said: str
) -> None:
    *there, more = sites(options)
    python = aiperf.folder / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    if cause == "a host that nobody knows":
        more = more.replace("HostKeyAlias=", "HostKeyAlias=other")
    elif cause == "a login that wants a password":
        more = more.partition(" -o ")[2].join(("-o IdentitiesOnly=yes -i /nobody -o ", ""))
    chosen = {"a python without aiperf": python, "no python": "/no/python"}.get(cause, sys.executable)
    load = ("--isl", 30, "--osl", 4, "--request-rate", 100, "--request-count", 40)
    done = aiperf(*words(simulator, *load, *there, more, "--ssh-python", str(chosen), name="run"))
    assert done.code == 1 and simulator.summary()["requests"] == 0, done.err
    named = rf"error: site (127\.0\.0\.1|localhost):{options[0]}: its command "
    assert re.search(named, done.err) and said in done.err, done.err
