"""A pytest plugin that tells ``aiperf plugins validate`` how each check ends, a line of JSON each, as it happens."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pytest
from aiperf.registry.imports import leave

from aiperf_testing.subjects import WANTING
from aiperf_testing.trials import CheckReport

_NODE = re.compile(r".*::TestSubject(?P<subject>\d+)(?:::test_(?P<check>\w+)(?P<case>\[.*\])?)?", re.DOTALL)


def _tell(nodeid: str, outcome: str = "", why: str = "") -> None:
    match = _NODE.match(nodeid)
    subject = int(match["subject"]) if match else 0
    check = ((match["check"] or "").replace("_", " ") + (match["case"] or "").replace("\n", " ")) if match else ""
    with Path(os.environ["AIPERF_VALIDATE_REPORTS"]).open("ab") as file:
        file.write(msgspec.json.encode(CheckReport(subject, check.strip(), outcome, why)) + b"\n")


def pytest_runtest_logstart(nodeid: str) -> None:
    _tell(nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _tell(report.nodeid, "failed", _reason(report))
    elif report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if reason.startswith(WANTING):
            _tell(report.nodeid, "wanting", reason.removeprefix(WANTING))


def pytest_sessionfinish(exitstatus: int) -> None:
    leave(int(exitstatus))  # a plugin may have left a thread


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _tell(report.nodeid, "failed", _reason(report))


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The first lines of what was raised, in one."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = report.longreprtext if crash is None else str(crash.message)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = " ".join(lines[:2]).removeprefix("Failed: ")[:400] or "it failed"
    if said.startswith("DID NOT RAISE "):
        wanted = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", said.removeprefix("DID NOT RAISE "))
        return f"nothing was raised where {wanted} was expected: raise it"
    if crash is not None and re.fullmatch(r"(AssertionError:?|assert .*)", said):
        return f"an assertion without a message failed, at {crash.path}:{crash.lineno}: give it a message; {said}"
    return said
