"""For every test session: no log of a run contains a traceback, and property tests try the same examples each time."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

_EXCUSED = pytest.StashKey[list[Path]]()
_TRACEBACK = "Traceback (most recent call last)"

# A change is judged by what it changes, not by the luck of a draw.  `--hypothesis-profile=default` looks for new examples.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "traceback: provokes a bug on purpose, so the logs of its runs may contain a traceback")
    config.stash[_EXCUSED] = []


def pytest_runtest_setup() -> None:
    # A command of an earlier test may have taken the logger from the root, whose handlers collect what a test logs.
    logging.getLogger("aiperf").propagate = True


def pytest_runtest_teardown(item: pytest.Item) -> None:
    if item.get_closest_marker("traceback") is not None and isinstance(item, pytest.Function):
        folder = item.funcargs.get("tmp_path")
        assert isinstance(folder, Path), f"{item.nodeid} is marked 'traceback' and has no tmp_path"
        item.config.stash[_EXCUSED].append(folder)


@pytest.fixture(scope="session", autouse=True)
def no_log_contains_a_traceback(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[None]:
    """Look through the logs of all runs below the session's temporary directory (of each worker, under pytest-xdist)."""
    yield
    faults = [
        f"{path}:{number}: {line}"
        for path in _logs(tmp_path_factory.getbasetemp())
        if not any(path.is_relative_to(folder) for folder in request.config.stash[_EXCUSED])
        for number, line in _tracebacks(path)
    ]
    if faults:
        pytest.fail("\n".join(["logs of runs contain tracebacks:", *faults]), pytrace=False)


def _logs(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        yield from (Path(folder, name) for name in names if name == "aiperf.log")


def _tracebacks(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers of tracebacks, each with the last line of its traceback, which names the exception."""
    number = 0
    open_at = 0
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if _TRACEBACK in line:
            open_at = number
        elif open_at and not line.startswith((" ", "\t")):
            yield open_at, line
            open_at = 0
    if open_at:
        yield open_at, "(unfinished)"
