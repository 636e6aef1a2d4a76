"""Sites by the ssh program and Debian's server on loopback; skipped with the reason where that can't be started."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Done, Program

pytestmark = pytest.mark.long
SERVER = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/login.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
PidFile none
"""


@pytest.fixture
def options(tmp_path: Path) -> Iterator[tuple[int, str]]:
    """The port of a server that lets this user in, and options of the ssh program for it."""
    program, maker = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin"), shutil.which("ssh-keygen")
    if program is None or maker is None or shutil.which("ssh") is None:
        pytest.skip("no server of ssh is installed")
    for name in ("host", "login"):
        subprocess.run([maker, "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    (tmp_path / "config").write_text(SERVER.format(port=port, folder=tmp_path))
    (tmp_path / "known").write_text(f"[127.0.0.1]:{port} {(tmp_path / 'host.pub').read_text()}")
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen([program, "-D", "-e", "-f", str(tmp_path / "config")], stderr=log)
    try:
        until_s = time.monotonic() + 60
        while "Server listening" not in (said := (tmp_path / "log").read_text()):
            if server.poll() is not None:
                pytest.skip(f"a server of ssh can't be started here: {said.strip()}")
            assert time.monotonic() < until_s
            time.sleep(0.02)
        yield port, f"-i {tmp_path}/login -o UserKnownHostsFile={tmp_path}/known"
    finally:
        server.terminate()
        server.wait()


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
