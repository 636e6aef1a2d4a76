"""From a checkout to results, as a newcomer does it: ``make dist``, pip, the service, curl, ``aiperf validate``."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from environments import SUITE
from program import heed_endings
from requirements import ROOT
from test_service_runs import file

SERVICE_S = 300


def said(words: list[str | Path], cwd: Path) -> str:
    """Standard output of a command that ends well."""
    variables = {"HOME": str(cwd), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    done = subprocess.run(words, cwd=cwd, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@contextlib.contextmanager
def served(scripts: Path, port: int, cwd: Path) -> Iterator[str]:
    """The service on its port; the token that it prints."""
    variables = {"HOME": str(cwd), "PATH": f"{scripts}:{os.environ['PATH']}", "LANG": "C.UTF-8"}
    words: list[str | Path] = [scripts / "aiperf", "service", "--port", str(port)]
    with subprocess.Popen(
        words, cwd=cwd, env=variables, stdout=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=heed_endings,  # noqa: PLW1509  # no thread of ours is there
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            assert f":{port}" in process.stdout.readline()
            yield process.stdout.readline().split()[-1]
            process.send_signal(signal.SIGTERM)
            assert process.wait(SERVICE_S) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None or shutil.which("make") is None, reason="there is no curl or no make here")
def test_a_checkout_becomes_a_service_whose_archive_is_valid(simulator: Simulator, tmp_path: Path) -> None:
    assert "tests/dist.py --output dist\n" in said(["make", "-n", "-C", ROOT, "dist"], tmp_path)
    said([sys.executable, ROOT / "tests" / "dist.py", "--output", tmp_path / "dist"], tmp_path)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    scripts = tmp_path / "venv" / "bin"
    words = [str(scripts / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*words, "--find-links", "dist", SUITE], cwd=tmp_path, check=False).returncode:
        pytest.skip("packages of others can't be had here")

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "run.yaml").write_bytes(file(simulator.url))
    with served(scripts, port, tmp_path) as token:

        def curl(path: str, *more: str | Path) -> str:
            return said(["curl", "-sS", "-H", f"Authorization: Bearer {token}", *more, f"localhost:{port}{path}"], tmp_path)

        told = curl("/runs", "-i", "--data-binary", "@run.yaml")
        assert told.startswith("HTTP/1.1 201 "), told
        run = re.search(r"^location: (/runs/\S+)", told, re.MULTILINE | re.IGNORECASE)
        assert run is not None, told
        events = re.findall(r"^data: (\{\"id\".*)", curl(f"{run[1]}/events", "-N"), re.MULTILINE)
        assert json.loads(events[-1])["state"] == "done"
        names = [each["name"] for each in json.loads(curl(f"{run[1]}/files"))["files"]]
        assert "profile_export_aiperf.json" in names
        curl(f"{run[1]}/archive", "-o", "run.tar")
    shutil.unpack_archive(tmp_path / "run.tar", tmp_path / "fetched", filter="data")
    (results,) = (tmp_path / "fetched").iterdir()
    said([scripts / "aiperf", "validate", results], tmp_path)
    assert simulator.summary()["requests"] == 6
