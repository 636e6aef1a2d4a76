"""The dashboard of whole runs on a terminal: by keys, stopped, and with every kill the terminal is as before."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyte
import pytest
from aiperf_command_simulate.testing import Simulator, running
from test_strangers import Overlay

LIMIT_S = 240.0
"""Against hanging."""
ENTERS, LEAVES = b"\x1b[?1049h", b"\x1b[?1049l"
MODEL = "m[red]x[/red]"

FLOOD = """
import itertools, logging
from aiperf import hookimpl

class Thing:
    numbers = itertools.count()

    @hookimpl
    def aiperf_snapshot(self):
        for number in itertools.islice(self.numbers, 5000):
            logging.getLogger("aiperf.acme").warning("a drop of the flood %d", number)
"""
"""Ten thousand lines a second: a snapshot comes twice."""


def stty(terminal: int) -> str:
    """The modes of a terminal, as ``stty -a`` says them."""
    return subprocess.run(["stty", "-a"], stdin=terminal, capture_output=True, text=True, check=True).stdout


class Session:
    """A run that has a terminal, as a person sees it."""

    def __init__(self, command: list[str], columns: int, lines: int) -> None:
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen, self.raw, self.before = pyte.Screen(columns, lines), b"", stty(self.theirs)
        self._stream = pyte.ByteStream(self.screen)
        around = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            command, stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
            env=around | {"TERM": "xterm-256color"},
        )  # fmt: skip

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def until(self, seen: Callable[[], Any]) -> None:
        """Read what is written until *seen* is true."""
        end_s = time.monotonic() + LIMIT_S
        while not seen():
            assert time.monotonic() < end_s, self.text
            if select.select([self.ours], [], [], 0.1)[0]:
                piece = os.read(self.ours, 1 << 16)
                self.raw += piece
                self._stream.feed(piece)

    def shows(self, *words: str) -> None:
        self.until(lambda: all(word in self.text for word in words) or self.process.poll() is not None)
        assert all(word in self.text for word in words), self.text

    def press(self, key: str, *words: str) -> None:
        os.write(self.ours, key.encode())
        self.shows(*words)

    def end(self) -> int | None:
        self.until(lambda: self.process.poll() is not None)
        self.until(lambda: not select.select([self.ours], [], [], 0)[0])
        return self.process.returncode

    def display(self) -> int:
        """The process id of the display."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    command = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if parent == self.process.pid and b"aiperf.run.viewing" in command:
                    return int(entry.name)
        raise AssertionError("the run has no display")


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with running() as simulator:
        yield simulator


@contextmanager
def session(
    simulator: Simulator, folder: Path, *words: str, size: tuple[int, int] = (100, 40), shell: bool = False
) -> Iterator[Session]:
    """*shell*: type the command into one that has the terminal."""
    command = [
        sys.executable, "-P", "-m", "aiperf", "profile", "--model", MODEL, "--url", simulator.url, "--endpoint-type", "chat",
        "--streaming", "--tokenizer", "builtin", "--isl", "20", "--osl", "4", "--concurrency", "4", "--no-server-metrics",
        "--artifact-dir", str(folder), *words,
    ]  # fmt: skip
    run = Session(["bash", "--norc", "--noprofile", "-i"] if shell else command, *size)
    try:
        if shell:
            run.press(f"cd {folder.parent}; stty -a > before\r")
            run.press(f"{shlex.join(command)}\r")
        yield run
    finally:
        run.process.kill()
        run.process.wait()
        os.close(run.ours)
        os.close(run.theirs)


def test_a_run_is_watched_and_stopped_by_keys(simulator: Simulator, tmp_path: Path) -> None:
    with session(simulator, tmp_path / "run", "--benchmark-duration", "600", "-v") as run:
        run.shows("─ 2 Progress", "─ 3 Metrics", f"aiperf  {MODEL}  chat  {simulator.url}")
        assert os.getsid(run.display()) == run.display(), "Linux shares the cores among sessions first"
        for title in ("4 Workers", "5 Telemetry", "6 Log", "7 Failures", "8 Goodput", "9 Curves"):
            run.press(title[0], f"─ {title}")
        run.press("4", "healthy")
        fcntl.ioctl(run.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 3, 10, 0, 0))
        fcntl.ioctl(run.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        run.press("1", "─ 2 Progress")
        run.press("\x03")
        assert run.end() == 130
        assert stty(run.theirs) == run.before
    screen, _, after = run.raw.rpartition(LEAVES)
    assert b"Benchmark Duration" in after and b"cancelled early" in after and b"Benchmark Duration" not in screen


def test_a_run_ends_by_itself_and_leaves_the_results(simulator: Simulator, tmp_path: Path) -> None:
    with session(simulator, tmp_path / "run", "--benchmark-duration", "4", "--ui", "dashboard") as run:
        assert run.end() == 0
        assert stty(run.theirs) == run.before
    assert b"Request Throughput" in run.raw.rpartition(LEAVES)[2]


def test_a_sweep_has_one_dashboard_from_its_first_run_to_its_last(simulator: Simulator, tmp_path: Path) -> None:
    words = ("--request-rate", "30,60", "--benchmark-duration", "3")
    with session(simulator, tmp_path / "sweep", *words) as run:
        run.shows("run 1 of 2  rate_30", "─ 3 Metrics")
        display = run.display()
        run.shows("run 2 of 2  rate_60")
        assert run.display() == display
        assert run.end() == 0
        assert stty(run.theirs) == run.before
    assert (run.raw.count(ENTERS), run.raw.count(LEAVES)) == (1, 1)
    after = run.raw.rpartition(LEAVES)[2]
    assert b"rate_30" in after and b"rate_60" in after, "results stay on the ordinary screen"


def test_a_killed_run_leaves_the_terminal_as_it_was(simulator: Simulator, tmp_path: Path) -> None:
    with session(simulator, tmp_path / "run", "--benchmark-duration", "600") as run:
        run.shows("─ 3 Metrics")
        assert stty(run.theirs) != run.before
        run.process.send_signal(signal.SIGKILL)
        run.until(lambda: LEAVES in run.raw and stty(run.theirs) == run.before)


def test_ten_thousand_log_lines_a_second_are_all_in_the_file(
    simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Overlay(tmp_path / "overlay").add("acme-flood", "hooks", "flood", code=FLOOD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "overlay"))
    with session(simulator, tmp_path / "run", "--benchmark-duration", "2") as run:
        assert run.end() == 0
        assert stty(run.theirs) == run.before
    logged = (tmp_path / "run" / "logs" / "aiperf.log").read_text().splitlines()
    numbers = [int(line.rpartition(" ")[2]) for line in logged if " drop of the flood " in line]
    assert len(numbers) >= 10_000 and numbers == list(range(len(numbers)))
    assert b"Request Throughput" in run.raw.rpartition(LEAVES)[2]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=lambda number: number.name)
def test_a_run_outlives_its_display(simulator: Simulator, tmp_path: Path, number: signal.Signals) -> None:
    with session(simulator, tmp_path / "run", "--benchmark-duration", "6") as run:
        run.shows("─ 3 Metrics")
        os.kill(run.display(), number)
        assert run.end() == 0
        assert stty(run.theirs) == run.before
    assert b"Request Throughput" in run.raw.rpartition(LEAVES)[2]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("bash") is None, reason="a shell with job control")
def test_a_stopped_run_leaves_the_keys_to_the_shell(simulator: Simulator, tmp_path: Path) -> None:
    with session(simulator, tmp_path / "run", "--benchmark-duration", "600", shell=True) as run:
        run.shows("─ 3 Metrics")
        (job,) = map(int, Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children").read_text().split())
        os.killpg(job, signal.SIGTSTP)
        run.shows("Stopped")
        run.press("echo $((40 + 2)) keys\r", "42 keys")
        run.press("fg\r", "─ 3 Metrics")
        fcntl.ioctl(run.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 99, 0, 0))
        run.press("4", "─ 4 Workers", "healthy")
        run.press("\x03", "cancelled early")
        run.press("echo $? code\r", "130 code")
        run.press("stty -a > after\r")
        run.press("exit\r")
        assert run.end() == 0
    assert (tmp_path / "after").read_text() == (tmp_path / "before").read_text().replace("columns 100", "columns 99")


@pytest.mark.parametrize("words", [(), ("--ui", "dashboard")], ids=["default", "typed"])
def test_a_small_terminal_has_the_simple_display(simulator: Simulator, tmp_path: Path, words: tuple[str, ...]) -> None:
    with session(simulator, tmp_path / "run", "--request-count", "8", *words, size=(59, 40)) as run:
        assert run.end() == 0
    said = " ".join(run.raw.decode().split())
    assert ("needs 60 columns and 15 lines, and the terminal has 59 and 40; using the simple one" in said) is bool(words)
    assert b"[?1049h" not in run.raw
