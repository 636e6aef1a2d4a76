"""vLLM's classification dialect: what goes out, and what is made of what comes back."""

from __future__ import annotations

import pytest
from aiperf import BadDataset, BadResponse, Delta, HttpRequest, Media, Turn
from aiperf_endpoint_classify import Classify
from aiperf_endpoint_classify.contract import ClassifyContract

BODY = b'{"model":"m","input":["a b","c d"],"use_activation":true}'


class TestClassifyKeepsTheContract(ClassifyContract):
    pass


def test_the_body_is_exactly_this() -> None:
    request = Classify().encode(Turn(("a b", "c d"), model="m", max_tokens=7, extra={"use_activation": True}))
    assert (request.path, request.body) == ("/classify", BODY)


def test_the_inputs_count() -> None:
    counted = Classify().prompt_of(HttpRequest("/", BODY))
    assert counted is not None
    assert ([*counted.texts], Classify().items_of(BODY)) == (["a b", "c d"], 2)


@pytest.mark.parametrize("turn", [Turn(("a",), (Media("image", "i.png"),)), Turn()])
def test_a_turn_that_cannot_be_sent_is_refused(turn: Turn) -> None:
    with pytest.raises(BadDataset, match=r"classify takes texts|nothing to send"):
        Classify().encode(turn)


@pytest.mark.parametrize(("answer", "why"), [
    (b"<html>", "not JSON"),
    (b'{"data":[{"index":0,"label":"a"}]}', "missing required field `probs`"),
    (b'{"data":[{"index":0,"label":"a","probs":[]}]}', "without probabilities"),
    (b'[[{"label":"a","score":0.5}],[]]', "without probabilities"),
    (b'[[{"label":"a"}]]', "missing required field `score`"),
    (b'[{"score":0.5}]', "missing required field `label`"),
    (b"[7]", "not of this dialect"),
])  # fmt: skip
def test_another_answer_is_a_bad_response(answer: bytes, why: str) -> None:
    with pytest.raises(BadResponse, match=rf"^classify: .*{why}"):
        Classify().decode(answer)


@pytest.mark.parametrize(("answer", "items"), [
    (b'[[{"label":"a","score":0.75},{"label":"b","score":0.25}],[{"label":"b","score":1}]]', 2),
    (b' [ {"label":"a","score":0.75}, {"label":"b","score":0.25}]', 1),
    (b"[]", 0),
])  # fmt: skip
def test_lists_of_labels_and_scores_are_classes(answer: bytes, items: int) -> None:
    assert Classify().decode(answer) == Delta(items=items)
