"""For every test session: no log of a run contains a traceback, and property tests try the same examples each time."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from program import heed_endings

_EXCUSED = pytest.StashKey[list[Path]]()
_LEAST_IDLE, _LOOK_S, _LOOKS = 0.75, 0.1, 3
"""On a machine with fewer of its processors idle, in each of so many looks, tests marked ``timing`` are skipped."""
_TRACEBACK = "Traceback (most recent call last)"

# A change is judged by what it changes, not by the luck of a draw.  `--hypothesis-profile=default` looks for new examples.
# How long an example takes says how busy the machine is: neither a deadline nor the check for slow data judges it.
if find_spec("hypothesis") is not None:  # the tests of most packages do without it
    from hypothesis import HealthCheck, settings

    settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    heed_endings()
    config.addinivalue_line("markers", "traceback: provokes a bug on purpose, so the logs of its runs may contain a traceback")
    config.stash[_EXCUSED] = []


def pytest_runtest_setup(item: pytest.Item) -> None:
    # A command of an earlier test may have taken the logger from the root, whose handlers collect what a test logs.
    logging.getLogger("aiperf").propagate = True
    if item.get_closest_marker("timing") is not None and (share := _idle_share()) < _LEAST_IDLE:
        pytest.skip(f"the machine is busy: {share:.0%} of it is idle, and times are judged from {_LEAST_IDLE:.0%} on")


def _idle_share() -> float:
    """How much of the processors was idle while this process slept; 1 where the system doesn't tell.

    Processes of the test before may still be ending in the first look.
    """
    share = 0.0
    for _ in range(_LOOKS):
        before = _processor_times()
        time.sleep(_LOOK_S)
        spent = [after - earlier for earlier, after in zip(before, _processor_times(), strict=True)]
        share = max(share, spent[3] / sum(spent) if any(spent) else 1.0)
        if share >= _LEAST_IDLE:
            break
    return share


def _processor_times() -> list[int]:
    """user, nice, system, idle and so on, in ticks of 10 ms; see proc_stat(5)."""
    try:
        return [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except OSError:
        return [0] * 8


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
