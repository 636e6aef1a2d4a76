"""What the head of an answer says of its body."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import pytest
from aiperf.errors import BadResponse
from aiperf_reducer_columns.reduce.heads import decoded, encoding_of, kind_of, redirect_of

BODY = b'data: {"text": "one"}\n\ndata: {"text": "two"}\n\n'


def head(**fields: str) -> dict[str, Any]:
    headers = [(name.replace("_", "-").title(), value) for name, value in fields.items()]
    return {"status": 200, "reason": "OK", "headers": headers}


def reads(body: bytes, *, cut: int) -> list[tuple[int, int, int, bytes]]:
    return [(10, 11, 0, body[:cut]), (20, 21, 1, body[cut:])]


def bare_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(BODY, mtime=0)),
        ("x-gzip", gzip.compress(BODY, mtime=0)),
        ("deflate", zlib.compress(BODY)),
        ("deflate", bare_deflate(BODY)),
    ],
)
@pytest.mark.parametrize("cut", [1, 12, 30])
def test_a_body_that_was_asked_for_encoded_is_decoded_read_by_read(encoding: str, packed: bytes, cut: int) -> None:
    plain = decoded(reads(packed, cut=cut), encoding, asked=f"compress, {encoding};q=0.5")
    assert b"".join(read[3] for read in plain) == BODY
    assert [read[:3] for read in plain] == [(10, 11, 0), (20, 21, 1)]


def test_each_flushed_event_of_a_stream_keeps_the_stamp_of_its_read() -> None:
    packer = zlib.compressobj(wbits=31)
    pieces = [packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) for part in (b"data: 1\n\n", b"data: 2\n\n")]
    plain = decoded([(stamp, stamp, 0, piece) for stamp, piece in zip((5, 9), pieces, strict=True)], "gzip", asked="gzip")
    assert plain == [(5, 5, 0, b"data: 1\n\n"), (9, 9, 0, b"data: 2\n\n")]


@pytest.mark.parametrize(
    ("packed", "encoding", "asked", "said"),
    [
        (
            gzip.compress(BODY, mtime=0),
            "gzip",
            "identity",
            "the answer is encoded as gzip, and no header Accept-Encoding asked for that",
        ),
        (gzip.compress(BODY, mtime=0), "gzip", "", "no header Accept-Encoding asked"),
        (BODY, "compress", "compress", "the answer is encoded as compress, which can't be read here; ask for gzip,"),
        (BODY, "dcb", "*", "encoded as dcb, which can't be read here"),
        (BODY, "gzip", "gzip", "the answer says that it is encoded as gzip, and is not"),
        (gzip.compress(bytes(1 << 28)), "gzip", "gzip", "the answer is longer than 268,435,456 bytes when it is decoded"),
    ],
)
def test_an_encoding_that_cannot_be_read_is_named(packed: bytes, encoding: str, asked: str, said: str) -> None:
    with pytest.raises(BadResponse) as failure:
        decoded(reads(packed, cut=2), encoding, asked=asked)
    assert said in failure.value.message


@pytest.mark.parametrize(
    ("fields", "encoding"), [({}, ""), ({"content_encoding": "identity"}, ""), ({"content_encoding": " GZIP "}, "gzip")]
)
def test_the_encoding_of_a_body(fields: dict[str, str], encoding: str) -> None:
    assert encoding_of(head(**fields)) == encoding
    assert encoding_of(None) == ""


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("text/html; charset=utf-8", "; the answer is text/html"),
        ("application/json", ""),
        ("application/problem+json", ""),
        ("text/event-stream", ""),
    ],
)
def test_only_a_type_that_explains_a_failure_is_named(kind: str, words: str) -> None:
    assert kind_of(head(content_type=kind)) == words


def test_a_redirect_names_its_place_without_secrets() -> None:
    moved = head(location="https://user:secret@example.com/v1?token=abc")
    assert redirect_of(307, moved) == "redirected to https://<redacted>@example.com/v1?<redacted>, which is not followed"
    assert redirect_of(304, head()) == redirect_of(200, moved) == ""
