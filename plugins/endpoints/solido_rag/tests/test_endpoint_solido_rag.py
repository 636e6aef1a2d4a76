"""The SOLIDO RAG dialect: what goes out, and what is made of what comes back."""

from __future__ import annotations

import numpy as np
import pytest
from aiperf import BadResponse, Delta, HttpRequest, RecordBatch, Turn
from aiperf.testing import MetricContract
from aiperf_endpoint_solido_rag import SolidoRag
from aiperf_endpoint_solido_rag.contract import SolidoRagContract
from aiperf_endpoint_solido_rag.metrics import SourceCount


def test_the_body_is_exactly_this() -> None:
    request = SolidoRag().encode(Turn(("a", "b"), model="m1", max_tokens=8, extra={"top": 3}, stream=True))
    assert request.body == (b'{"query":["a","b"],"filters":{"family":"Solido","tool":"SDE"},"inference_model":"m1","top":3}')
    assert request.path == "/rag/api/prompt"


def test_extras_replace_the_filters_of_one_request_alone() -> None:
    endpoint, turn = SolidoRag(), Turn(("a",), model="m1")
    endpoint.encode(Turn(("a",), model="m1", extra={"filters": {}}))
    assert b'"filters":{"family":"Solido","tool":"SDE"}' in endpoint.encode(turn).body


@pytest.mark.parametrize(("event", "delta"), [
    (b'{"content":"Cat"}', Delta("Cat")),
    (b'{"content":"Cat","sources":[{"a":1}]}', Delta("Cat", extra={"sources": 1})),
    (b'{"sources":[]}', Delta(extra={"sources": 0})),
    (b'{"other":1}', Delta()),
    (b"", None),
])  # fmt: skip
def test_an_event_means(event: bytes, delta: Delta | None) -> None:
    assert SolidoRag().decode(event) == delta


@pytest.mark.parametrize("event", [b"<html>", b'{"content":7}', b'{"content":"a', b"[]"])
def test_other_answers_are_bad_responses(event: bytes) -> None:
    with pytest.raises(BadResponse, match=r"^solido_rag: not ") as caught:
        SolidoRag().decode(event)
    assert caught.value.raw == event


def test_the_input_counts_as_it_was_sent() -> None:
    counted = SolidoRag().prompt_of(HttpRequest("/", b'{"query":["a","b"],"filters":{}}'))
    assert counted is not None
    assert [*counted.texts] == ["a", "b"]


class TestSolidoRagKeepsTheContract(SolidoRagContract):
    pass


class TestSourceCountKeepsTheContract(MetricContract):
    metric = SourceCount()


# Answers with three sources, with none, and one that names no list of them.
WORKED = {"source_count": [3.0, 0.0, None]}


def test_values_are_those_worked_out_by_hand() -> None:
    batch = RecordBatch({"sources": np.array([3.0, 0.0, np.nan])}, np.ones(3, dtype=bool), {})
    found = [None if np.isnan(value) else value for value in SourceCount().column(batch)]
    assert {SourceCount.tag: found} == WORKED
