"""Runs the tests of one package after another, each in a fork of an interpreter that has loaded what nearly all of them need.

usage: forks.py SOCKET  (isolated.py starts it, in an environment of the kernel and the tools of tests)

A client sends one line of JSON, ``Job``, and reads one line, ``Outcome``.  A fork belongs to the environment of its job: it
sees the packages that are installed there, and starts programs with the interpreter of that environment.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import site
import socketserver
import sys
import tempfile
from pathlib import Path

import pytest
from suite_run import Failures

WARM = """
import zmq
from aiperf.testing import DatasetContract, EndpointContract, HttpTransportContract, MetricContract, SummaryExporterContract

def test_nothing(tmp_path, monkeypatch, capsys, caplog):
    pass
"""
"""A first test: it loads what tests use most.  Every environment has all of it, so no fork finds a package too many."""


class Outcome(Failures):
    """What happened, and the names of the tests that skipped themselves; of a file that did as a whole, its name.

    Tests of a contract that do not apply to a plugin are skipped by the contract, and left out here.
    """

    def __init__(self) -> None:
        super().__init__()
        self.skipped: dict[str, None] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        super().pytest_collectreport(report)
        self._skips(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        super().pytest_runtest_logreport(report)
        self._skips(report)

    def _skips(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple) and "tests" in Path(report.longrepr[0]).parts:
            self.skipped[report.nodeid] = None


def enter(folder: Path) -> None:
    """Make this process one of the environment in *folder*."""
    (packages,) = folder.glob("lib/python*/site-packages")
    ours = site.getsitepackages()
    sys.path[:] = [str(packages) if path in ours else path for path in sys.path]
    sys.prefix = sys.exec_prefix = str(folder)
    sys.executable = str(folder / "bin" / "python")
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    importlib.invalidate_caches()


class Fork(socketserver.StreamRequestHandler):
    """Runs pytest with ``words`` in the environment ``folder``; its output goes to the file ``log``.  The answer is its exit
    code, the processor time of all its processes and the names of an ``Outcome``.
    """

    def handle(self) -> None:
        job = json.loads(self.rfile.readline())
        enter(Path(job["folder"]))
        output = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (1, 2):
            os.dup2(output, stream)
        outcome = Outcome()
        code = int(pytest.main(job["words"], plugins=[outcome]))
        sys.stdout.flush()
        sys.stderr.flush()
        said = {name: list(names) for name, names in vars(outcome).items()}
        self.wfile.write(json.dumps({"code": code, "cpu_s": sum(os.times()[:4]), **said}).encode() + b"\n")


class Forks(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    request_queue_size = 64
    parent = os.getppid()

    def service_actions(self) -> None:
        super().service_actions()
        if os.getppid() != self.parent:  # nobody is left to end this process
            sys.exit(1)


def main(words: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="warm-") as folder:
        warm = Path(folder, "test_warm.py")
        warm.write_text(WARM)
        code = pytest.main(
            ["-p", "no:cacheprovider", "-c", os.devnull, "--import-mode=importlib", "--rootdir", folder, str(warm)]
        )
    if code:
        return int(code)
    gc.collect()
    gc.freeze()
    with Forks(words[0], Fork) as forks:
        forks.serve_forever()
    return 0


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file, as with -P
    sys.exit(main(sys.argv[1:]))
