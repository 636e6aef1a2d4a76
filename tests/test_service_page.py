"""The commands of docs/service.md, run as they stand there; of the laptop's alone the port is another one."""

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
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Program, heed_endings
from requirements import ROOT
from test_service_runs import file

END = "\nSTATUS=$?\nkill %1 2>/dev/null && wait %1 2>/dev/null\nexit $STATUS\n"


def blocks() -> dict[str, str]:
    """Commands of the page by the title that they stand below."""
    page = (ROOT / "docs" / "service.md").read_text()
    parts = re.split(r"^## (.*)$", page, flags=re.MULTILINE)
    titled = zip(parts[1::2], parts[2::2], strict=True)
    found = {title: re.search(r"```sh\n(.*?)```", text, re.DOTALL) for title, text in titled}
    return {title: match[1] for title, match in found.items() if match}


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None or shutil.which("bash") is None, reason="there is no curl or no bash here")
def test_the_commands_of_the_page_work(simulator: Simulator, tmp_path: Path) -> None:
    found = blocks()
    laptop, job = found["On a laptop"], found["A CI job that posts, waits and gates"]
    assert laptop.count("8080") == 4 and len(found) == 2
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "run.yaml").write_bytes(file(simulator.url))
    (tmp_path / "python3").symlink_to(sys.executable)  # the page's python3 is any
    variables = Program(tmp_path).environment | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "URL": f"localhost:{port}", "CI_JOB_ID": "17",
    }  # fmt: skip
    script = f"set -m\n{laptop}\n{job}{END}".replace("8080", str(port))
    with contextlib.ExitStack() as stack:
        process = subprocess.Popen(
            ["bash", "-c", script], cwd=tmp_path, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=heed_endings, start_new_session=True,  # noqa: PLW1509  # no thread of ours is there
        )  # fmt: skip
        stack.callback(ended, process.pid)
        out, err = process.communicate(timeout=300)
    found_states = [json.loads(path.read_bytes()) for path in (tmp_path / "aiperf-service" / "runs").glob("*/state.json")]
    first, second = sorted(found_states, key=lambda state: state["number"])
    assert (first["state"], second["state"]) == ("done", "done"), (out, err)
    assert simulator.summary()["requests"] == 12
    last = json.loads(re.findall(r"^data: (\{\"id\".*)", (tmp_path / "events.txt").read_text(), re.MULTILINE)[-1])
    assert last["state"] == "done"
    good = second["verdict"] == "trustworthy" and second["numbers"]["time_to_first_token_p99"] < 500
    assert process.returncode == int(not good), (out, err)


def ended(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


@pytest.mark.parametrize(("state", "verdict", "ttft", "code"), [
    ("done", "trustworthy", 499, 0), ("done", "trustworthy", 500, 1), ("done", "suspect", 1, 1),
    ("failed", "trustworthy", 1, 1),
])  # fmt: skip
def test_the_gate_of_the_page_lets_good_runs_pass(state: str, verdict: str, ttft: float, code: int) -> None:
    run = json.dumps({"state": state, "verdict": verdict, "numbers": {"time_to_first_token_p99": ttft}})
    gate = blocks()["A CI job that posts, waits and gates"].strip().splitlines()[-1].partition("| ")[2]
    done = subprocess.run(["sh", "-c", gate], input=run, text=True, check=False)
    assert done.returncode == code
