"""Whatever JSON a server answers, each endpoint type gives a Delta, nothing, or an error that says so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiperf.sdk.errors import BadResponse
from aiperf.sdk.model import Delta
from aiperf_reducer_columns.reduce.answer import Answer, read_answer
from hypothesis import given, settings
from hypothesis import strategies as st
from test_bad_answers import TYPES, framed

HUGE = 10**400
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.just(HUGE), st.floats(), st.text(max_size=4), st.just("\ud800")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


def spoiled(value: Any, draw: Any) -> Any:
    """The value with one of its parts, or all of it, replaced by any other."""
    if isinstance(value, dict) and value and draw(st.integers(0, 3)):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: spoiled(value[key], draw)}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], spoiled(value[at], draw), *value[at + 1 :]]
    return draw(VALUES)


@st.composite
def bodies(draw: Any, originals: list[bytes]) -> bytes:
    original = draw(st.sampled_from(originals))
    try:
        value = json.loads(original)
    except ValueError:
        value = None
    return json.dumps(spoiled(value, draw)).encode()


@pytest.mark.parametrize("name", sorted(TYPES))
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_any_json_is_a_delta_or_an_error(name: str, data: st.DataObject) -> None:
    kind = TYPES[name]
    body = data.draw(bodies([*kind.transcript, *([kind.whole] if kind.whole is not None else [])]))
    try:
        delta = kind.endpoint.decode(body)
    except NotImplementedError:  # it reads several events together
        delta = None
    except BadResponse:
        return
    assert delta is None or type(delta) is Delta
    wrapped = framed(kind, body, next(iter(kind.names), None)) if kind.endpoint.capabilities.streaming else body
    reads = [(10, 11, 0, wrapped)]
    answer = read_answer(reads, kind.endpoint.reader, streamed=True, repeats=kind.endpoint.repeats_envelope)
    assert isinstance(answer, Answer)
    assert isinstance(answer.text, str)
