"""A run from Python leaves the calling program as it was."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiperf
import pytest
from aiperf_command_simulate.testing import Simulator
from program import Program
from requirements import ROOT

CALLER = """
import asyncio, json, logging, os, resource, signal, sys, tempfile, threading
from pathlib import Path

import aiperf

assert "aiperf.cli" not in sys.modules, "the door costs nothing"
url, folder = sys.argv[1:]
heard = []


class Ears(logging.Handler):
    def emit(self, record):
        heard.append(record.getMessage())
        if "Waiting for" in record.getMessage():
            os.kill(os.getpid(), signal.SIGINT)


def interrupted(number, frame):
    raise KeyboardInterrupt


def state():
    for thread in threading.enumerate():  # one may be ending
        if thread is not threading.main_thread():
            thread.join()
    logger = logging.getLogger("aiperf")
    return {
        "handlers": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)],
        "logging": (list(logger.handlers), logger.level, logger.propagate),
        "files": resource.getrlimit(resource.RLIMIT_NOFILE),
        "children": Path(f"/proc/self/task/{os.getpid()}/children").read_text(),
        "temporary": os.listdir(tempfile.gettempdir()),
        "threads": threading.active_count(),
        "descriptors": len(os.listdir("/proc/self/fd")),
    }


def run(profile=aiperf.profile, **options):
    return profile("--streaming --isl 10", model="m", osl=2, tokenizer="builtin", **options)


def refused(call):
    try:
        call()
    except aiperf.AiperfError as error:
        told.append([type(error).__name__, str(error)])


async def inside_a_loop():
    return run(url=url, request_count=4, artifact_dir=folder + "/second", header=["X-A:1", "X-B:2"])


signal.signal(signal.SIGINT, interrupted)
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (512, most))
logging.getLogger().addHandler(Ears())
logging.getLogger("aiperf").setLevel(logging.INFO)
first = run(url=url, request_count=3, artifact_dir=Path(folder, "first"), warmup_request_count=None)
before = state()
second = asyncio.run(inside_a_loop())
with aiperf.Run() as kept:
    for name in ("third", "fourth"):
        run(kept.profile, url=url, request_count=2, artifact_dir=folder + "/" + name)
told = []
refused(lambda: run(url=url, concurrency=0, colour="red"))
thread = threading.Thread(target=refused, args=(run,))
thread.start()
thread.join()
try:
    run(url="http://127.0.0.1:9", wait_for_model_timeout=300, artifact_dir=folder + "/fifth")
except KeyboardInterrupt:
    told.append("interrupted")
after = state()
changed = [key for key in before if before[key] != after[key]]
json.dump([first.valid, first.command, second.valid, second.results["request_count"].stats["avg"], told, changed, heard,
           before["files"][0]], sys.stderr)
"""


@pytest.fixture(scope="module")
def told(shared_simulator: Simulator, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], Path, str]:
    """What the calling program saw, the folder of its results, and what stood on its standard output."""
    folder = tmp_path_factory.mktemp("from_code")
    (folder / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-P", "-c", CALLER, shared_simulator.url, str(folder)],
        env={**Program(folder).environment, "TMPDIR": str(folder / "tmp")}, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1]), folder, done.stdout


def test_two_runs_in_a_program_return_their_summaries(told: tuple[list[Any], Path, str]) -> None:
    (first, command, second, count, *_), folder, out = told
    assert (first, second, count) == (3, 4, 4)
    assert command.startswith("aiperf profile --streaming --isl 10 --model=m --osl=2") and "warmup" not in command
    assert out == "", "a calling program's standard output is its own"
    for name in ("first", "second"):
        names = {path.name for path in (folder / name).iterdir()}
        assert {"profile_export_aiperf.json", "profile_export_console.txt", "logs"} <= names


def test_a_run_changes_nothing_of_the_program(told: tuple[list[Any], Path, str]) -> None:
    (*_, changed, _, soft_limit), _, _ = told
    assert changed == [] and soft_limit == 512


def test_the_program_hears_the_log_as_it_asked(told: tuple[list[Any], Path, str]) -> None:
    heard = told[0][6]
    assert sum(line.startswith("Phase profiling (profiling) started") for line in heard) == 4


def test_errors_and_signals_reach_the_caller(told: tuple[list[Any], Path, str]) -> None:
    wrong, elsewhere, interrupted = told[0][4]
    assert wrong[0] == "ConfigErrors" and "unknown keyword colour" in wrong[1] and "\nconcurrency: 0 is not" in wrong[1]
    assert elsewhere[1].startswith("aiperf.profile works in the main thread only")
    assert interrupted == "interrupted"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"urll": "http://h"}, "unknown keyword urll\n  did you mean url?"),
        ({"request_cont": 3}, "unknown keyword request_cont\n  did you mean request_count?"),
        ({"concurrency": 0}, "concurrency: 0 is not allowed; must be at least 1"),
        ({"request_count": 3, "num_sessions": 3}, "keep request_count and drop num_sessions, or the other way round"),
    ],
)
def test_errors_name_keywords_as_the_program_wrote_them(options: dict[str, Any], text: str) -> None:
    with pytest.raises(aiperf.AiperfError) as caught:
        aiperf.profile(model="m", tokenizer="builtin", **options)
    assert text in str(caught.value) and "--" not in str(caught.value)


def test_a_run_that_fails_prints_nothing_in_a_program_without_logging(tmp_path: Path) -> None:
    call = "import aiperf; aiperf.profile(model='m', url='http://127.0.0.1:9', tokenizer='builtin', request_count=12)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", call], env=Program(tmp_path).environment, cwd=tmp_path, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "WARNING" in (next(tmp_path.glob("artifacts/*/logs/aiperf.log"))).read_text()


def test_a_switch_that_is_off_is_no_unknown_option() -> None:
    with pytest.raises(aiperf.UsageError, match="unknown keyword nonsense"):
        aiperf.profile(model="m", verbose=False, nonsense=False, extra_inputs={"a": 1})


def test_the_example_of_the_readme_runs(simulator: Simulator, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    (example,) = re.findall(r"^```python\n(import aiperf\n.*?)^```$", text, re.MULTILINE | re.DOTALL)
    code = example.replace("http://HOST:8000", simulator.url).replace('"MODEL"', '"m", tokenizer="builtin", isl=10, osl=2')
    words = [sys.executable, "-P", "-c", code.replace("request_count=100", "request_count=12")]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=True)
    assert re.fullmatch(r"[0-9.]+ ms; 0 failed\n", done.stdout)
