"""When a run warns of failed requests while it goes on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from aiperf.run.failing import Failing
from aiperf.sdk.reducer import Ended


def said(text: str, *, phase: int = 0, failing: Failing | None = None, step: int = 1) -> list[str]:
    """What is said of requests in this order, told *step* at a time; a letter is a cause, and a dot no failure."""
    follows = failing or Failing()
    requests = [Ended(n, phase, None if each == "." else (each, f"cause {each}")) for n, each in enumerate(text)]
    told = (follows.follow(requests[start : start + step]) for start in range(0, len(requests), step))
    return [sentence for sentence in told if sentence]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("a" * 9, []),
        ("a" * 500, ["the first 10 requests failed: cause a"]),
        ("aaaaaaaaa." + "." * 300, []),
        (".aaaaaaaaa" + "." * 300, []),
        ("." * 1000, []),
        ("." * 200 + "a" * 49 + "." * 200, []),
        ("." * 200 + "a" * 50, ["50 of the last 100 requests failed: cause a"]),
        (".a" * 500, ["50 of the last 100 requests failed: cause a"]),
        ("..a" * 500, []),
        ("a" * 200 + "b" * 200, ["the first 10 requests failed: cause a", "100 of the last 100 requests failed: cause b"]),
        ("a" * 200 + "." * 200 + "a" * 200, ["the first 10 requests failed: cause a"]),
        ("ab" * 500, ["the first 10 requests failed: cause a"]),
        ("aaaaaaab" * 100, ["the first 10 requests failed: cause a"]),
    ],
)
def test_many_failures_are_told_once_for_each_cause(text: str, sentences: Sequence[str]) -> None:
    assert said(text) == sentences


@pytest.mark.parametrize(
    ("text", "count"), [("a" * 10, 1), ("a" * 100, 1), ("a" * 50 + "." * 50, 1), ("aaaaaaaaa" + "." * 91, 0)]
)
def test_requests_may_come_together(text: str, count: int) -> None:
    assert len(said(text, step=len(text))) == count


def test_the_order_of_their_ends_counts() -> None:
    failing = Failing()
    assert not failing.follow([Ended(n, 0, ("a", "cause a")) for n in range(5, 14)])
    assert not failing.follow([Ended(4, 0)])
    assert not failing.follow([Ended(n, 0, ("a", "cause a")) for n in range(20, 22)])


def test_each_phase_has_its_first_requests() -> None:
    failing = Failing()
    assert said("." * 5, phase=0, failing=failing) == []
    assert said("a" * 10, phase=1, failing=failing) == ["the first 10 requests failed: cause a"]
    assert failing.follow([Ended(99, 0, ("b", "late"))] * 50) is None


def test_a_cause_of_the_warmup_is_not_told_again() -> None:
    failing = Failing()
    assert len(said("a" * 20, phase=0, failing=failing)) == 1
    assert said("a" * 200, phase=1, failing=failing) == []


def test_what_a_server_says_changes_no_terminal() -> None:
    told = Failing().follow([Ended(n, 0, ("a", "\x1b[31mred\n")) for n in range(10)])
    assert told == "the first 10 requests failed:  [31mred "
