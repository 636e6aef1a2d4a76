"""Streams whose events repeat the whole text so far."""

from __future__ import annotations

import msgspec
import pytest
from aiperf import BadResponse
from aiperf.sdk.growing import GrowingText, decode_batch


def new(*texts: str, usual: bool = False) -> list[str]:
    growing = GrowingText(usual=usual)
    return [growing.new(text) for text in texts]


@pytest.mark.parametrize(("texts", "usual", "pieces"), [
    (["a", "a b", "a b c"], False, ["a", " b", " c"]),
    (["", "a", "a b", "", "a b"], False, ["", "a", " b", "", ""]),
    (["a", " b", " c", " b"], False, ["a", " b", " c", " b"]),
    (["ha", "ha", "ha"], False, ["ha", "ha", "ha"]),
    (["ha", "ha", "ha!"], True, ["ha", "", "!"]),
    (["1", "12", " x", " y"], False, ["1", "2", "1 x", " y"]),
    (["ha", "ha", " x"], True, ["ha", "", "ha x"]),
    ([], False, []),
])  # fmt: skip
def test_the_new_text_is_the_difference(texts: list[str], usual: bool, pieces: list[str]) -> None:
    assert new(*texts, usual=usual) == pieces


@pytest.mark.parametrize("last", ["a b", "a", "other"])
def test_a_text_that_shrinks_is_an_error_with_its_bytes(last: str) -> None:
    growing = GrowingText()
    for text in ("a", "a b", "a b c"):
        growing.new(text)
    with pytest.raises(BadResponse, match=f"shrank from 5 characters to another of {len(last)}") as caught:
        growing.new(last, b"x" * 1000)
    assert caught.value.raw == b"x" * 200


read = msgspec.json.Decoder(list[dict[str, int]]).decode


def test_a_batch_is_decoded_at_once() -> None:
    assert decode_batch([b'{"a":1}', b'{"a":2}'], read) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("events", [
    [b'{"a":1}', b"[DONE]"], [b'{"a":1},{"a":2}'], [b'{"a":1}', b""], [b'{"a":"\xff"}'], [b"<html>"],
])  # fmt: skip
def test_a_batch_with_anything_else_is_not_decoded(events: list[bytes]) -> None:
    assert decode_batch(events, read) is None
