"""docs/architecture.md: the two ways through the program are what a run really does, and short."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import running
from program import Program
from requirements import ROOT

TEXT = (ROOT / "docs" / "architecture.md").read_text()
WAYS = {"Options to socket": (30, 16), "Socket to statistic": (30, 30)}
"""Most functions and modules of each way."""


def walk(way: str) -> dict[str, list[str]]:
    """The functions of a way by process, as ``module:function``."""
    section = TEXT.partition(f"\n## {way}\n")[2].partition("\n## ")[0]
    parts = re.split(r"^\*\*(.+?)\*\*", section, flags=re.MULTILINE)[1:]
    return {
        process: re.findall(r"^\d+\. `([\w.]+:[\w.<>]+)`", steps, re.MULTILINE)
        for process, steps in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[list[str]]]:
    """The calls of each process of one run, in order."""
    folder = tmp_path_factory.mktemp("walk")
    (folder / "calls").mkdir()
    aiperf = Program(folder)
    aiperf.program = [str(Path(sys.executable).parent / "aiperf")]  # with -m the first module would have no name of its own
    aiperf.environment |= {"AIPERF_TEST_CALLS": str(folder / "calls"), "PYTHONPATH": str(Path(__file__).parent / "calls")}
    with running() as simulator:
        done = aiperf(
            "profile", "--model", "sim", "--url", simulator.url, "--tokenizer", "builtin", "--streaming", "--isl", 16,
            "--osl", 7, "--request-count", 3, "--ui", "none",
        )  # fmt: skip
        assert done.code == 0, done.err
        assert simulator.summary()["requests"] == 3
    yield [file.read_text().splitlines() for file in (folder / "calls").iterdir()]


@pytest.mark.parametrize("way", WAYS)
def test_a_way_is_as_short_as_promised(way: str) -> None:
    functions = [function for steps in walk(way).values() for function in steps]
    most_functions, most_modules = WAYS[way]
    assert 20 < len(functions) <= most_functions
    assert len({function.partition(":")[0] for function in functions}) <= most_modules


@pytest.mark.parametrize(("way", "process"), [(way, process) for way in WAYS for process in walk(way)])
def test_a_run_calls_the_functions_in_this_order(calls: list[list[str]], way: str, process: str) -> None:
    steps = walk(way)[process]
    reached = max((matched(steps, sequence) for sequence in calls), key=len)
    assert reached == steps


def matched(steps: list[str], calls: list[str]) -> list[str]:
    """As many of the first *steps* as stand in *calls* in their order, other calls between them."""
    remaining = iter(calls)
    reached = []
    for step in steps:
        if step not in remaining:
            break
        reached.append(step)
    return reached
