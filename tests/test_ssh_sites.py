"""Sites by the ssh program and Debian's server on loopback; skipped with the reason where that can't be started."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Done, Program, wait_for
from ssh_server import NoSshError, ssh_server

pytestmark = pytest.mark.long


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
    assert refused.code == 1 and f"error: site 127.0.0.1:{port}: its command exited with 255" in refused.err
    assert simulator.summary()["requests"] == 0
    done: Done = aiperf("profile", *load, *there, "--ssh-options", f"{more} -o HostKeyAlias=[127.0.0.1]:{port}")
    assert done.code == 0, done.err
    rows = done.lines("profile_export_arrivals.jsonl")
    assert sorted(row["n"] for row in rows) == [*range(40)] and {row["worker"] for row in rows} == {"worker-0", "worker-1"}
    assert {row["request_id"] for row in simulator.truth()["requests"]} == {row["x_request_id"] for row in rows}
    assert [site["name"] for site in done.json()["measurement"]["sites"]] == hosts.split(",")


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
