"""What endpoints of vectors share."""

from __future__ import annotations

import base64
import struct

import pytest
from aiperf.errors import BadDataset, BadResponse
from aiperf.sdk.model import Delta, Turn
from aiperf_dialects.prompts import prompt_of
from aiperf_dialects.vectors import count_inputs, inputs_request, read_embeddings, vectors, without_pictures


def test_vectors_of_numbers_and_of_base64_count_alike() -> None:
    numbers = [0.5, -1.25, 3.0]
    packed = base64.b64encode(struct.pack("<3f", *numbers)).decode()
    assert vectors("x", [numbers, packed], None, b"") == Delta(items=2, extra={"dimensions": 3.0})
    assert vectors("x", [], {"prompt_tokens": 0}, b"") == Delta(usage={"prompt_tokens": 0})


def test_inputs_are_needed_unless_the_turn_has_a_payload() -> None:
    with pytest.raises(BadDataset, match="nothing to send"):
        inputs_request("/", Turn(model="m"), ())
    assert inputs_request("/p", Turn(model="m", payload=b"x"), ()).path == "/p"


@pytest.mark.parametrize(("body", "items", "texts", "ids"), [
    (b'{"input":"a b"}', 1, ["a b"], []),
    (b'{"input":["a","b data:image/png;base64,AA","data:image/png;base64,AA"]}', 3, ["a", "b"], []),
    (b'{"input":[1,2]}', 1, [], [1, 2]),
    (b'{"input":[[1,2],[3]]}', 2, [], [1, 2, 3]),
])  # fmt: skip
def test_pictures_among_the_inputs_are_no_text(body: bytes, items: int, texts: list[str], ids: list[int]) -> None:
    counted = without_pictures(prompt_of(body))
    assert counted is not None
    assert (count_inputs(body), [*counted.texts], [*counted.ids]) == (items, texts, ids)


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b"{}", b'{"input":{"a":1}}', b'{"messages":{}}'])
def test_a_body_without_inputs_is_not_counted(body: bytes) -> None:
    assert (count_inputs(body), without_pictures(prompt_of(body))) == (None, None)


def test_an_error_in_a_good_answer_is_the_servers_own() -> None:
    with pytest.raises(BadResponse, match=r'^"input" must not be empty$') as caught:
        read_embeddings("x", b'{"error":{"code":400,"message":"\\"input\\" must not be empty","type":"invalid_request_error"}}')
    assert (caught.value.code, caught.value.kind) == (400, "invalid_request_error")
