"""The {{ cookiecutter.name }} planner."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import Result
from aiperf.sdk.errors import ConfigError
from aiperf.sdk.planner import PlanEnd, Space
from aiperf.sdk.study import Dimension, StudyRun
from aiperf.testing import PlannerContract, sample_summary

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}

LIST = Dimension("profiling.concurrency", "concurrency", (1, 2, 4, 8))


class TestItKeepsTheContract(PlannerContract):
    planner = {{ cookiecutter.__class }}
    spaces = (Space((LIST,)), Space((LIST,), trials=2))


def test_it_ends_where_throughput_no_longer_grows() -> None:
    planner, finished, throughputs = {{ cookiecutter.__class }}(Space((LIST,))), list[StudyRun](), [10.0, 19.0, 19.5, 40.0]
    while not isinstance(proposal := planner.next(finished), PlanEnd):
        for planned in proposal:
            stats = {"avg": throughputs[planned.cell.index]}
            measured = Result("request_throughput", "Request Throughput", "requests/sec", stats)
            finished.append(StudyRun(planned.cell, planned.trial, Path("none"), 1, sample_summary(measured)))
    assert [run.cell.parameters["concurrency"] for run in finished] == [1, 2, 4]
    assert proposal.reason == "concurrency=4 has 19.5 requests/s, after 19.0"


def test_it_takes_one_list() -> None:
    with pytest.raises(ConfigError):
        {{ cookiecutter.__class }}(Space())
