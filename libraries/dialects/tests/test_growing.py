"""Streams whose events repeat the whole text so far."""

from __future__ import annotations

import msgspec
import pytest
from aiperf import BadResponse, Delta
from aiperf_dialects.growing import BatchReader, GrowingText


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


@pytest.mark.parametrize(("texts", "usual", "pieces", "whole"), [
    (["a", "a b", "a b c", "a b"], False, ["a", " b", " c", ""], "a b"),
    (["a", "a b", "a b \ufffd", "a b é"], False, ["a", " b", " \ufffd", "é"], "a b é"),
    (["a", "a b", "a b c", "other"], False, ["a", " b", " c", "other"], "other"),
    (["a b STOP", "a b "], True, ["a b STOP", ""], "a b "),
])  # fmt: skip
def test_of_a_text_that_shrinks_what_it_has_in_common_with_the_one_before_counts(
    texts: list[str], usual: bool, pieces: list[str], whole: str
) -> None:
    growing = GrowingText(usual=usual)
    assert [growing.new(text) for text in texts] == pieces
    assert (growing.took_back, growing.whole) == (True, whole)


class Piece(msgspec.Struct):
    text: str | None = None


class Pieces(BatchReader[Piece]):
    dialect, event_type = "pieces", Piece

    def delta(self, event: Piece, data: bytes) -> Delta | None:
        return self.empty(data) if event.text is None else Delta(event.text)


@pytest.mark.parametrize(("events", "deltas"), [
    ([b'{"text":"a"}', b'{"text":"b"}', b"[DONE]"], [Delta("a"), Delta("b"), None]),
    ([b'{"text":"a"}', b"[DONE]", b'{"text":"b"}', b""], [Delta("a"), None, Delta("b"), None]),
    ([b'{"text":"a"}'], [Delta("a")]),
    ([b'{"text":"a"}', b"{}"], [Delta("a"), Delta()]),
    ([b"[DONE]"], [None]),
])  # fmt: skip
def test_a_batch_reader_gives_a_delta_for_each_event(events: list[bytes], deltas: list[Delta | None]) -> None:
    assert Pieces().feed(events, [None] * len(events)) == deltas


@pytest.mark.parametrize(("event", "said"), [
    (b'{"error":"busy"}', "^busy$"), (b"<html>", "^pieces: not JSON$"), (b'{"text":7}', "^pieces: not of this dialect"),
])  # fmt: skip
def test_a_batch_reader_refuses_an_event_with_its_bytes(event: bytes, said: str) -> None:
    with pytest.raises(BadResponse, match=said) as caught:
        Pieces().feed([b'{"text":"a"}', event], [None] * 2)
    assert caught.value.raw == event
