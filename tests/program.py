"""Runs the program from a command line in its own process."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
from aiperf.parts.samples import read_samples

if TYPE_CHECKING:
    from aiperf_command_simulate.testing import Nursery

_MOST_S = 300.0
MARK = "TESTS_MARK_OF_RUN"
"""A variable that all processes of one run have."""
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


def _read(end: int) -> str:
    """What comes there until the end, as :mod:`subprocess` gives it."""
    with os.fdopen(end) as file:
        return file.read()


def _limits() -> tuple[object, ...]:
    """What a process gets of the one that starts it, and a fork of another one doesn't."""
    umask = os.umask(0o22)
    os.umask(umask)
    limits = [resource.getrlimit(number) for number in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_AS)]
    return umask, os.nice(0), *limits


def _variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Those that an interpreter and its libraries may read when they start."""
    others = ("AIPERF_", "COLUMNS", "PYTEST_", _IGNORED, MARK)
    return {name: value for name, value in environment.items() if not name.startswith(others)}


_LIMITS, _VARIABLES = _limits(), _variables(os.environ)


@cache
def _warm(python: str) -> Nursery | None:
    """What forks runs of an interpreter; None where that or this one lacks the package of its code."""
    package = "aiperf_command_simulate"
    there = Path(python).parent.parent.glob(f"lib/python*/site-packages/{package}")
    if find_spec(package) is None or not (python == sys.executable or any(there)):
        return None
    from aiperf_command_simulate.testing import Nursery

    return Nursery("-P", str(Path(__file__).with_name("warm.py")), python=python)


class Program:
    """Runs ``aiperf`` in *folder*, in an environment without its variables.  *python*: the interpreter to use.

    A command that nobody disturbs is a fork of a process that has imported what a usual run does: two thirds of the processor
    time of a short run are imports of its processes.  What :meth:`start` starts, and what has other variables than those of
    the program, is a process of its own.

    server_metrics: runs read the servers' pages of metrics, which costs each one a process.  gpus: runs ask exporters of GPUs,
    likewise.  parquet: their tables are written as Parquet, too, whose package a usual installation lacks: it costs each one a
    fifth of its processor time.  Most tests have no use for these.  site: a folder of packages that runs find besides, none of
    which replaces another one.
    """

    def __init__(
        self, folder: Path, *, python: Path | str = sys.executable, server_metrics: bool = False, gpus: bool = False,
        parquet: bool = False, site: Path | None = None,
    ) -> None:  # fmt: skip
        self.folder, self.python, self.site = folder, str(python), site
        here = self.python == sys.executable and find_spec("aiperf_metric_server_metrics") is not None
        self.quiet_servers = here and not server_metrics
        without_gpus = self.python == sys.executable and find_spec("aiperf_metric_gpu_dcgm") is not None and not gpus
        self.quiet_gpus = ["--no-gpu-telemetry"] if without_gpus else []
        self.usual_files = self.python == sys.executable and not parquet
        self.program = [self.python, "-m", "aiperf"]
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("AIPERF_", "COLUMNS"))}
        self.environment[MARK] = uuid4().hex
        self.environment |= {} if site is None else {"PYTHONPATH": str(site)}

    def __call__(self, *words: str | float | Path) -> Done:
        """Run to the end; a traceback in the output fails the test."""
        if self.is_usual():
            return self._forked(*words)
        return self.start(*words).end()

    def is_usual(self) -> bool:
        """Whether a command is started as every other one, and so is a fork."""
        usual = _VARIABLES if self.site is None else _VARIABLES | {"PYTHONPATH": str(self.site)}
        alike = _variables(self.environment) == usual and _limits() == _LIMITS
        return alike and self.program == [self.python, "-m", "aiperf"] and _warm(self.python) is not None

    def _forked(self, *words: str | float | Path) -> Done:
        warm = _warm(self.python)
        assert warm is not None
        command, directory = self._command(*words)
        pipes = os.pipe(), os.pipe()
        given = {"words": command, "path": [] if self.site is None else [str(self.site)]}
        process = warm.fork(given, pipes[0][1], pipes[1][1], folder=self.folder, environment=self._environment_of(words[:1]))
        for _, end in pipes:
            os.close(end)
        with ThreadPoolExecutor(2) as readers:
            texts = [readers.submit(_read, end) for end, _ in pipes]
            late = process.poll(_MOST_S) is None
            if late:
                os.killpg(process.pid, signal.SIGKILL)
            out, err = (text.result() for text in texts)
        assert not late, f"the command did not end in {_MOST_S} s\n{out}\n{err}"
        assert "Traceback" not in out + err, err
        code = process.poll()
        assert code is not None
        return Done(code, out, err, directory)

    def line(self, line: str) -> Done:
        """Run a whole command line that begins with ``aiperf``."""
        name, *words = shlex.split(line)
        assert name == "aiperf"
        return self(*words)

    def _command(self, *words: str | float | Path) -> tuple[list[str], Path]:
        """The words behind the program, and the directory of its results."""
        command = [*map(str, words)]
        if words and words[0] == "profile" and not {"--artifact-dir", "--output-artifact-dir"} & set(words):
            command += ["--artifact-dir", str(self.folder / "artifacts")]
        if self.quiet_servers and words and words[0] == "profile":
            command.append("--no-server-metrics")
        if words and words[0] == "profile" and "--gpu-telemetry" not in words:
            command += self.quiet_gpus
        return command, Path(command[command.index("--artifact-dir") + 1]) if "--artifact-dir" in command else self.folder

    def start(self, *words: str | float | Path) -> Running:
        command, directory = self._command(*words)
        process = subprocess.Popen(
            [*self.program, *command],
            cwd=self.folder,
            env={**self._environment_of(words[:1]), MARK: uuid4().hex},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return Running(process, directory)

    def _environment_of(self, words: Sequence[str | float | Path]) -> dict[str, str]:
        usual = {"AIPERF_DISABLE_PLUGINS": "exporters:parquet"} if self.usual_files and {"profile", "report"} & {*words} else {}
        return usual | self.environment


def variables_of(pid: int) -> list[bytes]:
    """The environment that a process began with; [] where it has ended."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


class Running:
    """A running command in its own session, as in a terminal.

    Some processes of a run have sessions of their own, and outlive their parent's: they are known by a variable.
    """

    def __init__(self, process: subprocess.Popen[str], artifacts: Path) -> None:
        self.process, self.artifacts = process, artifacts
        self._said = ""
        self._mark = next((one for one in variables_of(process.pid) if one.startswith(f"{MARK}=".encode())), None)

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
        """Send a signal to every process of the run."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def survivors(self) -> list[str]:
        """Command lines of the processes of the run that are left."""
        return list(self.processes().values())

    def processes(self) -> dict[int, str]:
        """Command lines of the run's processes, by their ids."""
        commands = {}
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = entry.read_text().rpartition(")")[2].split()
                pid = int(entry.parent.name)
                ours = int(fields[3]) == self.process.pid or (self._mark is not None and self._mark in variables_of(pid))
                if ours and fields[0] != "Z":
                    commands[pid] = entry.with_name("cmdline").read_text().replace("\0", " ")
            except OSError:  # the process has just ended
                continue
        return commands

    def end(self, seconds: float = _MOST_S) -> Done:
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
