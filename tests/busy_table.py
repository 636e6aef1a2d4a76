"""The busy machine: a run beside two processes that never rest, as root and as an ordinary user.

An ordinary user can't take a low priority back; root plays one without the capability for it.  What is judged: six requests are
reduced within 5 s of the last answer; 2 s after the run's own process was killed, no process of it is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import rogues
from aiperf_command_simulate.testing import running
from program import Program, Running

USERS = ("root", "ordinary user") if os.geteuid() == 0 else ("ordinary user",)
REDUCED_S, GONE_S = 5.0, 2.0
KILLS = 100
_WITHOUT = ("setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice")
_PATIENCE_S = 120.0


@contextlib.contextmanager
def busy(number: int = 2) -> Iterator[None]:
    """So many processes that never rest."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _started(user: str, url: str, folder: Path, tokens: int) -> Running:
    before = _WITHOUT if os.geteuid() == 0 and user != "root" else ()
    command = [
        *before, *Program(folder).program, "profile", "--model", "sim", "--url", url, "--endpoint-type", "chat", "--streaming",
        "--tokenizer", "builtin", "--concurrency", "2", "--request-count", "6", "--isl", "20", "--osl", str(tokens),
        "--random-seed", "1", "--ui", "none", "--artifact-dir", str(folder / "artifacts"),
    ]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=folder, env=Program(folder).environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=(folder / "stderr.txt").open("wb"), text=True, start_new_session=True,
    )  # fmt: skip
    return Running(process, folder / "artifacts")


def reduced_s(user: str, folder: Path) -> float:
    """Seconds from the last of six answers until all are reduced."""
    with busy(), running(first_token_ms=5, decode_ms=1, decode_batch_us=0) as server:
        started = _started(user, server.url, folder, 10)
        code = started.process.wait(_PATIENCE_S)
    assert code == 0, (folder / "stderr.txt").read_text()
    times = json.loads((folder / "artifacts" / "journal" / "run-times.json").read_text())
    return float(times["reduced_ns"] - times["last_answer_ns"]) / 1e9


def slowest_end_s(user: str, folder: Path, kills: int) -> float:
    """The longest time that a process of a killed run was left, of so many runs, each killed at another instant."""
    chance, worst = random.Random(1), 0.0
    with busy(), running(first_token_ms=5, decode_ms=1, decode_batch_us=0) as server:
        for number in range(kills):
            (run := folder / str(number)).mkdir(parents=True)
            started = _started(user, server.url, run, 200)
            over = time.monotonic() + _PATIENCE_S
            while not (started.artifacts / "journal" / "shard-0.0.seg").exists() and time.monotonic() < over:
                time.sleep(0.01)
            time.sleep(chance.random())
            started.process.kill()
            killed = time.monotonic()
            started.process.wait()
            while started.survivors() and time.monotonic() < killed + 30:
                time.sleep(0.01)
            worst = max(worst, time.monotonic() - killed)
            shutil.rmtree(run)
    return worst


HANGING = ("exporter", "rows", "hook", "batch hook", "grader", "companion", "display")


def hanging_s(what: str, folder: Path) -> float:
    """The time for which a process was left of a run that was killed while this part of a stranger's package hung."""
    rogues.install(folder / "site", "sloth")
    begun, aiperf = folder / "begun", Program(folder)
    aiperf.environment |= {
        "PYTHONPATH": str(folder / "site"), "AIPERF_CACHE_DIR": str(folder / "cache"), "SLOTH": what, "SLOTH_SAYS": str(begun),
        "TMPDIR": "/tmp",
    }  # fmt: skip
    with running(first_token_ms=5, decode_ms=1, decode_batch_us=0) as server:
        started = aiperf.start(
            "profile", "--model", "m", "--url", server.url, "--streaming", "--tokenizer", "builtin", "--custom-dataset-type",
            "sloth", "--accuracy-grader", "sloth", "--ui", "sloth", "--concurrency", 2, "--request-count", 6,
        )  # fmt: skip
        over = time.monotonic() + _PATIENCE_S
        while not begun.exists() and started.process.poll() is None and time.monotonic() < over:
            time.sleep(0.01)
        assert begun.exists(), f"the {what} never began"
        started.process.kill()
        killed = time.monotonic()
        started.process.communicate()
        while started.survivors() and time.monotonic() < killed + 30:
            time.sleep(0.01)
        return time.monotonic() - killed


CELLS = {
    **{f"busy reduced {user}": f"six requests are reduced within {REDUCED_S:g} s of the last answer, {user}" for user in USERS},
    **{f"busy hanging {what}": f"a run killed while a stranger's {what} hangs is gone after {GONE_S:g} s" for what in HANGING},
    **{f"busy killed {user}": f"{KILLS} of {KILLS} killed runs leave no process after {GONE_S:g} s, {user}" for user in USERS},
}  # fmt: skip


def run(name: str, folder: Path, *, kills: int = KILLS) -> tuple[list[str], float]:
    """What is wrong, and the seconds that were measured."""
    _, what, user = name.split(" ", 2)
    if what == "hanging":
        took, most = hanging_s(user, folder), GONE_S
    elif what == "reduced":
        took, most = max(reduced_s(user, folder), 0.0), REDUCED_S
    else:
        took, most = slowest_end_s(user, folder, kills), GONE_S
    return ([f"{took:.1f} s, not {most:g}"] if took > most else []), took
