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


def main(words: list[str]) -> int:
    failures = Failures()
    code = int(pytest.main(words, plugins=[failures]))
    if code != pytest.ExitCode.TESTS_FAILED or not failures.tests:
        return code
    if failures.uncollected:
        print(f"no second run: {', '.join(failures.uncollected)} could not be collected")
        return code
    if failures.teardowns:
        print(f"no second run: the teardown of {', '.join(failures.teardowns)} failed")
        return code
    if len(failures.tests) > MOST_AGAIN:
        print(f"no second run: {len(failures.tests)} tests failed, which is more than {MOST_AGAIN}")
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
