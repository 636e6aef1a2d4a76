"""docs/architecture.md: the two ways through the program are what a run really does, and short."""

from __future__ import annotations

import re

import pytest
import walks
from aiperf_reader import ReaderError, SocketReader
from walks import WAYS

TEXT = walks.PAGE.read_text()
MOST = {"Options to socket": (36, 18), "Socket to statistic": (45, 25)}
"""Most functions and modules on the stacks of each way."""
_FUNCTION = r"[\w.]+:[\w.<>]+"


def section(way: str) -> str:
    return TEXT.partition(f"\n## {way}\n")[2].partition("\n## ")[0]


def steps(way: str) -> dict[str, list[str]]:
    """The numbered functions of a way by process, as ``module:function``."""
    parts = re.split(r"^\*\*(.+?)\*\*", section(way), flags=re.MULTILINE)[1:]
    return {
        process: re.findall(rf"^\d+\. `({_FUNCTION})`", text, re.MULTILINE)
        for process, text in zip(parts[::2], parts[1::2], strict=True)
    }


def stacked(way: str) -> set[str]:
    """The functions of a way that stand in its stacks."""
    return set(re.findall(rf"^ {{4}}({_FUNCTION})$", section(way), re.MULTILINE))


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """The calls of each process of one run, in order."""
    try:
        SocketReader.opened().close()
    except ReaderError as error:
        pytest.skip(str(error))
    return walks.traced(tmp_path_factory.mktemp("walk"))


@pytest.mark.parametrize(("way", "word"), [(way, word) for way in WAYS for word in WAYS[way]])
def test_every_function_on_the_stack_of_a_landmark_stands_in_the_document(calls: list[list[str]], way: str, word: str) -> None:
    stack = walks.usual(calls, WAYS[way][word])
    assert [name for name in stack if name not in stacked(way)] == [], "write them with: make walks"


@pytest.mark.parametrize("way", WAYS)
def test_no_other_function_stands_among_the_stacks(calls: list[list[str]], way: str) -> None:
    called = {name for landmark in WAYS[way].values() for stack in walks.stacks(calls, landmark) for name in stack}
    assert sorted(stacked(way) - called) == [], "write them with: make walks"


@pytest.mark.parametrize("way", WAYS)
def test_a_way_is_as_short_as_promised(calls: list[list[str]], way: str) -> None:
    names, (most_functions, most_modules) = walks.functions(calls, way), MOST[way]
    assert 25 < len(names) <= most_functions
    assert len(walks.modules(names)) <= most_modules
    assert f"\n{len(names)} functions in {len(walks.modules(names))} modules:\n" in section(way), "write it with: make walks"


@pytest.mark.parametrize(("way", "process"), [(way, process) for way in WAYS for process in steps(way)])
def test_a_run_calls_the_numbered_functions_in_this_order(calls: list[list[str]], way: str, process: str) -> None:
    numbered = steps(way)[process]
    assert numbered
    assert max((matched(numbered, sequence) for sequence in calls), key=len) == numbered


def test_most_bodies_come_from_templates(calls: list[list[str]]) -> None:
    encoded, stored = WAYS["Options to socket"]["encode"], WAYS["Options to socket"]["add"]
    like = walks.stacks(calls, walks.Landmark(walks.LIKE)).total()
    assert like > 2 * walks.stacks(calls, walks.Landmark(stored.function)).total()
    assert like > 2 * walks.stacks(calls, walks.Landmark(encoded.function)).total()


def test_the_usual_stack_is_that_of_most_calls() -> None:
    stacks = [["@socket.send a:main a:send", "@socket.send a:main a:queue a:send", "@socket.send a:main a:queue a:send"]]
    assert walks.usual(stacks, walks.Landmark("socket.send")) == ("a:main", "a:queue", "a:send")
    assert walks.usual(stacks, walks.Landmark("socket.send", "a:queue")) == ("a:main", "a:queue", "a:send")
    with pytest.raises(AssertionError, match="has not come to"):
        walks.usual(stacks, walks.Landmark("socket.send", "a:other"))


def matched(numbered: list[str], calls: list[str]) -> list[str]:
    """As many of the first *numbered* functions as stand in *calls* in their order, other calls between them."""
    remaining = iter(calls)
    reached = []
    for name in numbered:
        if name not in remaining:
            break
        reached.append(name)
    return reached
