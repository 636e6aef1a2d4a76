"""Runs pytest; tests that fail run once more, alone, so that a busy machine fails no suite and a flaky test stays visible.

usage: suite_run.py [PYTEST ARGUMENT ...]

Exits with the status of the second run where there is one.  There is none where more than ten tests fail, where a teardown
fails (what it looked at is gone), where the first run stopped early, or where tests could not be collected.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MOST_AGAIN = 10
"""More failures than these have one cause, which no second run removes."""


class Failures:
    """Names of the tests that failed in a run, in order, of those whose teardown did, and of files that could not be read."""

    def __init__(self) -> None:
        self.tests: dict[str, None] = {}
        self.teardowns: dict[str, None] = {}
        self.uncollected: dict[str, None] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.uncollected[report.nodeid] = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            (self.teardowns if report.when == "teardown" else self.tests)[report.nodeid] = None

    def final(self) -> str | None:
        """Why the failed tests can't run once more; None if they can."""
        if self.uncollected:
            return f"{', '.join(self.uncollected)} could not be collected"
        if self.teardowns:
            return f"the teardown of {', '.join(self.teardowns)} failed"
        if len(self.tests) > MOST_AGAIN:
            return f"{len(self.tests)} tests failed, which is more than {MOST_AGAIN}"
        return None


def main(words: list[str]) -> int:
    failures = Failures()
    code = int(pytest.main(words, plugins=[failures]))
    if code != pytest.ExitCode.TESTS_FAILED or not failures.tests:
        return code
    if reason := failures.final():
        print(f"no second run: {reason}")
        return code
    count = f"{len(failures.tests)} {'test' if len(failures.tests) == 1 else 'tests'}"
    print(f"{count} failed, and will run once more, alone", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:xdist", *failures.tests], check=False).returncode
    result = "passed alone" if again == 0 else f"did not all pass alone (status {again})"
    print(f"{count} failed once and {result}: {', '.join(failures.tests)}", flush=True)
    return again


if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())  # as with `python -m pytest`
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main(sys.argv[1:]))
