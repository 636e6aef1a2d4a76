"""Plugins put to the contracts of their categories, in a process that may hang or die.

The contracts are pytest classes (``aiperf.testing``).  pytest is no dependency of the kernel; where it isn't installed, a note
says so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from aiperf.sdk.registry import Descriptor, InstalledPlugins
from msgspec import Struct

if TYPE_CHECKING:
    from aiperf.testing import CheckReport, Subjects

PYTEST_MISSING = 'the contract suite was not run, it needs pytest: pip install "aiperf-core[testing]"'
LIMIT_S = 60.0
"""The longest a check may take."""
_REPORTS = "reports.jsonl"
_POLL_S = 0.02


class ContractOutcome(Struct, frozen=True):
    """faults: of each check that failed, the plugin and a sentence.  wanting: plugins without the material of some checks."""

    faults: tuple[tuple[Descriptor, str], ...]
    wanting: tuple[tuple[Descriptor, tuple[str, ...]], ...]


def available() -> bool:
    return all(find_spec(module) is not None for module in ("pytest", "aiperf_testing"))


def check(
    registry: InstalledPlugins, plugins: Sequence[Descriptor], limit_s: float = LIMIT_S,
    passed: Callable[[ContractOutcome, int], None] = lambda verdict, reached: None,
) -> ContractOutcome:  # fmt: skip
    """Put *plugins* to their contracts.

    A plugin that hangs or ends the process is a fault; those behind it are tried in another process.  *passed* is called with
    the verdict so far and the number of plugins whose checks have ended, whenever that grows.
    """
    from aiperf.testing import Subjects

    left = tuple(plugins)
    known = tuple(one for category in registry.categories() for one in registry.all(category))
    faults: list[tuple[Descriptor, str]] = []
    wanting: dict[int, set[str]] = {}
    raised: set[tuple[int, str]] = set()

    def verdict() -> ContractOutcome:
        return ContractOutcome(tuple(faults), tuple((left[i], tuple(sorted(what))) for i, what in sorted(wanting.items())))

    begun = 0
    while begun < len(left):
        reached = begun - 1
        for report in _tried(Subjects(left[begun:], known), limit_s):
            if begun + report.subject > max(reached, 0):
                passed(verdict(), begun + report.subject)
            reached = begun + report.subject
            if report.outcome == "failed" and (reached, report.why) not in raised:
                if not report.why.startswith("AssertionError"):  # an exception of the plugin's fails many checks
                    raised.add((reached, report.why))
                why = report.why.removeprefix("AssertionError: ")
                faults.append((left[reached], f"{report.check}: {why}" if report.check else why))
            elif report.outcome == "wanting":
                wanting.setdefault(reached, set()).add(report.why)
        begun = max(reached, begun) + 1
        passed(verdict(), begun)
    return verdict()


def _tried(subjects: Subjects, limit_s: float) -> Iterator[CheckReport]:
    """Reports of a process on *subjects*, until it has tried them all or fails at one, which is the last report."""
    from aiperf.parts.processes import temporary_directory
    from aiperf.testing import write_subjects

    with temporary_directory("validate") as folder:
        (folder / _REPORTS).touch()
        write_subjects(folder, subjects, "test_subjects", [f"TestSubject{i}" for i in range(len(subjects.tried))])
        (folder / "pytest.ini").write_text("[pytest]\n")
        yield from _followed(folder, limit_s)


def _followed(folder: Path, limit_s: float) -> Iterator[CheckReport]:
    from aiperf.testing import CheckReport

    with (folder / "output").open("w+b") as output, (folder / _REPORTS).open("rb") as lines:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "aiperf_testing.reporting", "-p", "no:cacheprovider", "-p", "no:terminal",
             "--noconftest", "-c", str(folder / "pytest.ini"), f"--basetemp={folder / 'made'}", "test_subjects.py"],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, env=_environment(folder),
            start_new_session=True,
        )  # fmt: skip
        try:
            last = CheckReport(0, "")
            until = time.monotonic() + limit_s
            rest = b""
            while True:
                ended = process.poll() is not None  # before the last look: what it wrote until then is seen
                *whole, rest = (rest + lines.read()).split(b"\n")
                for line in whole:
                    last, until = msgspec.json.decode(line, type=CheckReport), time.monotonic() + limit_s
                    yield last
                if ended or time.monotonic() > until:
                    break
                time.sleep(_POLL_S)
            if process.poll() is None:
                yield CheckReport(last.subject, last.check, "failed", f"it took longer than {limit_s:g} s and was ended")
            elif process.returncode not in (0, 1, 5):  # passed, some failed, nothing to do
                output.seek(0)
                yield CheckReport(last.subject, last.check, "failed", _death(process.returncode, output.read()))
        finally:
            _end(process)


def _environment(folder: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return inherited | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "AIPERF_VALIDATE_REPORTS": str(folder / _REPORTS)}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and those it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _death(code: int, output: bytes) -> str:
    text = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    return f"the process ended ({how})" + (f": {text[-1].strip()}" if text else "")
