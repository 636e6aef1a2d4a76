"""Sites by the ssh program and Debian's server on loopback; skipped with the reason where that can't be started."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Done, Program
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
