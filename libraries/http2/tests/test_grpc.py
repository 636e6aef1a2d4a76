"""What gRPC puts into HTTP/2."""

from __future__ import annotations

import base64

import pytest
from aiperf_http2.grpc import (
    MessageError,
    MessageReader,
    binary,
    decoded_message,
    encoded_message,
    framed,
    http_code,
    status_name,
    status_of_http,
    timeout,
    timeout_ns,
)

MESSAGES = [b"", b"a", b"bc" * 200, b"", b"d" * 5]


@pytest.mark.parametrize("step", [1, 2, 4, 5, 6, 7, 100, 1000])
def test_messages_are_read_wherever_they_are_cut(step: int) -> None:
    reader, body, messages = MessageReader(), b"".join(map(framed, MESSAGES)), []
    for at in range(0, len(body), step):
        messages += reader.feed(body[at : at + step])
    assert messages == MESSAGES and not reader.cut
    reader.feed(b"\0\0\0")
    assert reader.cut


@pytest.mark.parametrize(
    ("data", "words"), [(b"\x01\0\0\0\x01a", "compressed"), (b"\0\x10\0\0\x01", "268,435,457 bytes, more than 268,435,456")]
)
def test_messages_that_can_not_be_read_are_named(data: bytes, words: str) -> None:
    with pytest.raises(MessageError, match=words):
        MessageReader().feed(data)


def test_a_long_message_is_refused_whole_too() -> None:
    with pytest.raises(MessageError, match="11 bytes, more than 10"):
        MessageReader(10).feed(framed(b"x" * 11))


@pytest.mark.parametrize(
    ("ns", "text"),
    [(1, "1n"), (0, "1n"), (99_999_999, "99999999n"), (100_000_000, "100000u"), (21_600_000_000_000, "21600000m"),
     (10**14 + 1, "100001S"), (10**30, "99999999H")],
)  # fmt: skip
def test_timeouts_have_at_most_eight_digits(ns: int, text: str) -> None:
    assert timeout(ns) == text


@pytest.mark.parametrize(
    ("text", "ns"), [("5S", 5 * 10**9), ("1H", 3600 * 10**9), ("", None), ("S", None), ("x", None), ("123456789S", None)]
)
def test_timeouts_are_read(text: str, ns: int | None) -> None:
    assert timeout_ns(text) == ns


def test_texts_of_errors_survive_their_encoding() -> None:
    text = "50% of “Grüße”\nfailed"
    assert encoded_message(text).isascii() and "\n" not in encoded_message(text)
    assert decoded_message(encoded_message(text)) == text
    assert decoded_message("100%, %zz and %FF") == "100%, %zz and \ufffd"


def test_binary_values_are_read_with_and_without_padding() -> None:
    for data in (b"", b"a", b"ab", b"abc", bytes(range(256))):
        text = base64.b64encode(data).decode()
        assert binary(text) == binary(text.rstrip("=")) == data
    with pytest.raises(ValueError, match="no base64"):
        binary("a!")


def test_statuses_have_names_and_codes() -> None:
    assert (status_name(5), http_code(5)) == ("NOT_FOUND", 404)
    assert (status_name(99), http_code(99)) == ("UNKNOWN", 500)
    assert [status_name(status_of_http(code)) for code in (502, 404, 418)] == ["UNAVAILABLE", "UNIMPLEMENTED", "UNKNOWN"]
