"""Runs the program from a command line in its own process."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
from aiperf.parts.samples import read_samples

_IGNORED = "TESTS_IGNORE_SIGNALS"
"""A variable: the signals that the tests, not their programs, ignore."""


def heed_endings() -> None:
    """Let the programs that this process starts be ended by SIGHUP and SIGINT, where it was started with them ignored.

    That is so under ``nohup`` and behind ``&`` of a script.  This process still ignores them: a handler is for itself alone,
    and a program it starts has the default.
    """
    for number in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) == signal.SIG_IGN or number.name in os.environ.get(_IGNORED, ""):
            os.environ[_IGNORED] = f"{os.environ.get(_IGNORED, '')} {number.name}"  # a worker of pytest-xdist has the default
            signal.signal(number, lambda number, frame: None)


def bytes_of(path: Path) -> bytes:
    """The bytes of a file; of a file of samples, the lines in it: they are compressed."""
    if path.suffix != ".samples":
        return path.read_bytes()
    return b"\n".join(map(msgspec.json.encode, read_samples(path)))


@dataclass(frozen=True)
class Done:
    """The result of a command.  *artifacts*: the directory of its results."""

    code: int
    out: str
    err: str
    artifacts: Path

    @property
    def last_words(self) -> str:
        """What the program itself said last of an error; empty for nothing."""
        said = [line for line in self.err.splitlines() if line.startswith("aiperf: ")]
        return said[-1] if said else ""

    def json(self) -> dict[str, Any]:
        (path,) = self.artifacts.glob("*aiperf.json")
        summary: dict[str, Any] = json.loads(path.read_text())
        return summary

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.artifacts / name).read_text().splitlines()]

    def copy(self, folder: Path) -> Done:
        """The same with a copy of its results in *folder*, for a test that changes them."""
        return replace(self, artifacts=shutil.copytree(self.artifacts, folder))


class Program:
    """Runs ``aiperf`` in *folder*, in an environment without its variables.  *python*: the interpreter to use.

    server_metrics: runs read the servers' pages of metrics, which costs each one a process; most tests have no use for it.
    gpus: runs ask exporters of GPUs, likewise.
    """

    def __init__(
        self, folder: Path, *, python: Path | str = sys.executable, server_metrics: bool = False, gpus: bool = False
    ) -> None:  # fmt: skip
        self.folder, self.python = folder, str(python)
        here = self.python == sys.executable and find_spec("aiperf_metric_server_metrics") is not None
        self.quiet_servers = here and not server_metrics
        without_gpus = self.python == sys.executable and find_spec("aiperf_metric_gpu_dcgm") is not None and not gpus
        self.quiet_gpus = ["--no-gpu-telemetry"] if without_gpus else []
        self.program = [self.python, "-m", "aiperf"]
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("AIPERF_", "COLUMNS"))}

    def __call__(self, *words: str | float | Path) -> Done:
        """Run to the end; a traceback in the output fails the test."""
        running = self.start(*words)
        return running.end()

    def line(self, line: str) -> Done:
        """Run a whole command line that begins with ``aiperf``."""
        name, *words = shlex.split(line)
        assert name == "aiperf"
        return self(*words)

    def start(self, *words: str | float | Path) -> Running:
        command = [*self.program, *map(str, words)]
        if words and words[0] == "profile" and not {"--artifact-dir", "--output-artifact-dir"} & set(words):
            command += ["--artifact-dir", str(self.folder / "artifacts")]
        if self.quiet_servers and words and words[0] == "profile":
            command.append("--no-server-metrics")
        if words and words[0] == "profile" and "--gpu-telemetry" not in words:
            command += self.quiet_gpus
        directory = Path(command[command.index("--artifact-dir") + 1]) if "--artifact-dir" in command else self.folder
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return Running(process, directory)


class Running:
    """A running command in its own session, as in a terminal."""

    def __init__(self, process: subprocess.Popen[str], artifacts: Path) -> None:
        self.process, self.artifacts = process, artifacts
        self._said = ""

    def interrupt(self) -> None:
        """Ctrl-C: a terminal signals all processes in the foreground, children included."""
        os.killpg(self.process.pid, signal.SIGINT)

    def hears(self, text: str) -> None:
        """Wait until standard error has *text*."""
        assert self.process.stderr is not None
        while text not in self._said:
            piece = os.read(self.process.stderr.fileno(), 1 << 16)
            assert piece, f"it ended without {text!r}: {self._said}"
            self._said += piece.decode(errors="replace")

    def terminate(self) -> None:
        self.process.terminate()

    def signal_all(self, number: int) -> None:
        """Send a signal to every process of this session."""
        for pid in self._processes():
            os.kill(pid, number)

    def survivors(self) -> list[str]:
        """Command lines of the processes that are left in this session."""
        return list(self._processes().values())

    def _processes(self) -> dict[int, str]:
        commands = {}
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = entry.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.process.pid and fields[0] != "Z":
                    commands[int(entry.parent.name)] = entry.with_name("cmdline").read_text().replace("\0", " ")
            except OSError:  # the process has just ended
                continue
        return commands

    def end(self, seconds: float = 300) -> Done:
        try:
            out, err = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            out, err = self.process.communicate()
            raise AssertionError(f"the command did not end in {seconds} s\n{out}\n{self._said}{err}") from None
        err = self._said + err
        assert "Traceback" not in out + err, err
        return Done(self.process.returncode, out, err, self.artifacts)


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "the condition never became true"
        time.sleep(0.02)
