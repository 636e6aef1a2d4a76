"""What a shell or a script leaves to a run: streams without a reader, limits, odd names, signals that come early."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Program

READY = ".aiperf_results_ready.json"


def words(url: str) -> list[str]:
    short = ["--tokenizer", "builtin", "--isl", "8", "--osl", "2", "--request-count", "4"]
    return ["profile", "--model", "m", "--url", url, *short]


def in_shell(aiperf: Program, url: str, behind: str) -> subprocess.CompletedProcess[str]:
    """A run in bash, with this text behind its command line."""
    line = f'set -o pipefail; "$@" {behind}'
    command = ["bash", "-c", line, "bash", *aiperf.program, *words(url), "--artifact-dir", str(aiperf.folder / "run")]
    return subprocess.run(command, cwd=aiperf.folder, env=aiperf.environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("behind", ["| head -1", "2>&1 | head -1", ">&- 2>&-", "2>&-", "<&- >&-"])
def test_a_good_run_is_good_whoever_reads_what_it_prints(aiperf: Program, simulator: Simulator, behind: str) -> None:
    done = in_shell(aiperf, simulator.url, behind)
    assert done.returncode == 0, done.stderr
    assert (aiperf.folder / "run" / READY).is_file()
    assert "Traceback" not in done.stderr + (aiperf.folder / "run" / "logs" / "aiperf.log").read_text()
    assert len((aiperf.folder / "run" / "profile_export.jsonl").read_text().splitlines()) == 4


def test_a_report_that_has_no_room_on_the_disk_is_said(aiperf: Program, simulator: Simulator) -> None:
    done = in_shell(aiperf, simulator.url, ">/dev/full")
    assert done.returncode == 1 and (aiperf.folder / "run" / READY).is_file()
    assert done.stderr.endswith("error: standard output can't be written: No space left on device\n")


def test_a_name_that_is_no_text_is_refused(aiperf: Program) -> None:
    command = [*map(os.fsencode, aiperf.program), *map(str.encode, words("http://127.0.0.1:9"))]
    done = subprocess.run([*command, b"--artifact-dir", b"run\xff"], cwd=aiperf.folder, env=aiperf.environment,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "error: 'run\\udcff' is not UTF-8\n  rename it, or give another name\n")
    here = os.fsencode(aiperf.folder) + b"/work\xff"
    Path(os.fsdecode(here)).mkdir()
    done = subprocess.run(command, cwd=here, env=aiperf.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "work\\udcff/artifacts" in done.stderr and "is not UTF-8" in done.stderr
    assert done.stderr.endswith("  rename it, or work in another directory\n")
    assert list(Path(os.fsdecode(here)).rglob("journal")) == []


def test_a_file_that_may_not_grow_is_named(aiperf: Program) -> None:
    command = [*aiperf.program, *words("http://127.0.0.1:9"), "--artifact-dir", "run"]
    done = subprocess.run(
        command, cwd=aiperf.folder, env=aiperf.environment, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )  # fmt: skip
    assert done.returncode == 1
    assert f"error: {aiperf.folder}/run/journal can't be written: File too large\n" in done.stderr
    assert "Traceback" not in done.stderr and not (aiperf.folder / "run").exists()


EARLY = """
import os, signal, sys

class Early:
    def find_spec(name, path=None, target=None):
        if name == "aiperf.cli.help_text":  # among the first of some hundred modules
            os.kill(os.getpid(), int(os.environ["EARLY"]))

sys.meta_path.insert(0, Early)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_that_comes_before_everything_ends_a_run(aiperf: Program, number: signal.Signals) -> None:
    site = aiperf.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(EARLY)
    aiperf.environment |= {"PYTHONPATH": str(site), "EARLY": str(int(number))}

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what a script starts with &

    done = subprocess.run(
        [*aiperf.program, *words("http://127.0.0.1:9"), "--artifact-dir", "run"], cwd=aiperf.folder, env=aiperf.environment,
        capture_output=True, text=True, check=False, preexec_fn=ignore,
    )  # fmt: skip
    assert done.returncode == 128 + number, done.stderr
    assert done.stderr == "aiperf: the load had not begun: there are no results\n"
    assert not (aiperf.folder / "run").exists()
