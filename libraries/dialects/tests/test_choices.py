"""Reasons and token counts of several choices: whose they are."""

from __future__ import annotations

from typing import Any

import pytest
from aiperf import Delta
from aiperf_dialects.choices import Choices, documents, reason_of


def choice(index: int, finish: Any = None) -> dict[str, Any]:
    return {"index": index, "finish_reason": finish}


def told(*documents: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Reason and usage of each of two choices."""
    choices = Choices()
    for document in documents:
        assert [index for index, _ in choices.take(document)] == [each["index"] for each in document.get("choices", ())]
    return [(delta.finish, delta.usage) for delta in choices.told({1: Delta("x"), 0: Delta("a")}) or ()]


ONE, TWO, BOTH = {"completion_tokens": 3}, {"completion_tokens": 4}, {"completion_tokens": 7}
ENDS = ({"choices": [choice(0, "stop")]}, {"choices": [choice(1, "length")]})
UNKNOWN = [("stop", {}), ("length", None)]


@pytest.mark.parametrize(("documents", "wanted"), [
    ((*ENDS, {"choices": [], "usage": BOTH}), [("stop", None), ("length", None)]),
    ((ENDS[0], {"usage": ONE}, ENDS[1], {"usage": TWO}), [("stop", ONE), ("length", TWO)]),
    ((*ENDS, {"usage": ONE}, {"usage": TWO}, {"usage": ONE}), UNKNOWN),
    (({**ENDS[0], "usage": ONE}, {**ENDS[1], "usage": TWO}), [("stop", ONE), ("length", TWO)]),
    (({**ENDS[0], "usage": ONE}, {**ENDS[1], "usage": TWO}, {"usage": BOTH}), [("stop", None), ("length", None)]),
    ((ENDS[0], {**ENDS[1], "usage": BOTH}), [("stop", None), ("length", None)]),  # one alone is of all
    ((ENDS[0], {"choices": [choice(1)], "usage": ONE}, {**ENDS[1], "usage": TWO}), UNKNOWN),
    (({"choices": [choice(0, "stop"), choice(1, "length")], "usage": BOTH},), [("stop", None), ("length", None)]),
    (({"choices": [choice(0, "stop"), choice(1, "length")], "usage": ONE, "timings": {"predicted_n": 3}},), UNKNOWN),
    ((*ENDS, {"usage": None}, {"usage": {}}), [("stop", None), ("length", None)]),
])  # fmt: skip
def test_a_usage_is_of_one_choice_or_of_all_or_unknown(documents: tuple[dict[str, Any], ...], wanted: Any) -> None:
    assert told(*documents) == wanted


def test_one_choice_is_no_several() -> None:
    assert Choices().told({0: Delta("a")}) is None


def test_documents_are_the_objects_among_the_events() -> None:
    assert list(documents([b'{"a":1}', b"[DONE]", b"[1]", b"<html>", b""])) == [{"a": 1}]


@pytest.mark.parametrize(("sent", "reason"), [
    ("stop", "stop"), (None, None), ("", ""), (7, "7"), ({"type": "stop"}, '{"type":"stop"}'),
])  # fmt: skip
def test_a_reason_that_is_no_text_is_its_json(sent: Any, reason: str | None) -> None:
    assert reason_of(sent) == reason
