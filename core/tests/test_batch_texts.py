"""Texts of a batch that are made when they are first read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from aiperf.sdk.columns import BatchTexts, RecordBatch


def counted(made: list[str], name: str, *texts: str | None) -> Callable[[], list[str | None]]:
    def make() -> list[str | None]:
        made.append(name)
        return list(texts)

    return make


def test_a_text_is_made_once_and_only_where_it_is_read() -> None:
    made: list[str] = []
    texts = BatchTexts({"a": counted(made, "a", "x", "y"), "b": counted(made, "b", "z", None), "c": [None, "w"]})
    assert "a" in texts and "d" not in texts and list(texts) == ["a", "b", "c"] and len(texts) == 3
    assert texts.get("d") is None
    batch = RecordBatch({}, np.ones(2, dtype=bool), texts).viewed(lambda name: np.zeros(2))
    assert made == []
    assert batch.texts["b"] == batch.texts["b"] == ["z", None]
    assert made == ["b"]
    assert dict(texts) == {"a": ["x", "y"], "b": ["z", None], "c": [None, "w"]}
    assert made == ["b", "a"]
    batch.texts["b"] = ["v", "u"]
    assert texts["b"] == ["z", None], "each batch has a dictionary of its own"
    del batch.texts["c"]
    assert list(batch.texts) == ["a", "b"] and "c" in texts


def test_chosen_requests_have_their_texts() -> None:
    made: list[str] = []
    batch = RecordBatch({}, np.ones(3, dtype=bool), BatchTexts({"a": counted(made, "a", "x", None, "z"), "b": ["1", "2", "3"]}))
    some = batch.select(np.array([True, False, True]))
    assert made == []
    assert dict(some.texts) == {"a": ["x", "z"], "b": ["1", "3"]}
    assert dict(some.take(np.array([1, 0])).texts) == {"a": ["z", "x"], "b": ["3", "1"]}


def test_texts_are_joined_like_dictionaries() -> None:
    texts = RecordBatch({}, np.ones(1, dtype=bool), {"a": ["x"]}).texts
    assert dict(texts | {"b": [None]}) == {**texts, "b": [None]} == {"a": ["x"], "b": [None]}
