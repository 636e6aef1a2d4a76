"""Bodies in encodings whose packages are optional."""

from __future__ import annotations

import pytest
from aiperf.errors import BadResponse
from aiperf_reducer_columns.reduce import heads
from aiperf_reducer_columns.reduce.heads import decoded

BODY = b'data: {"text": "one"}\n\ndata: {"text": "two"}\n\n'
Read = tuple[int, int, int, bytes]


def reads(body: bytes, *, cut: int) -> list[Read]:
    return [(10, 11, 0, body[:cut]), (20, 21, 1, body[cut:])]


def packed(encoding: str, parts: list[bytes]) -> list[bytes]:
    """Each part as a server sends it that flushes behind every event; the last ends the stream."""
    if encoding == "br":
        brotli = pytest.importorskip("brotli", reason="brotli is not installed: br needs it")
        packer = brotli.Compressor()
        flushed = [packer.process(part) + packer.flush() for part in parts]
        return [*flushed[:-1], flushed[-1] + packer.finish()]
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed: zstd needs it")
    stream = zstandard.ZstdCompressor().compressobj()
    flushed = [stream.compress(part) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for part in parts]
    return [*flushed[:-1], flushed[-1] + stream.flush()]


@pytest.mark.parametrize("encoding", ["br", "zstd"])
@pytest.mark.parametrize("cut", [1, 12, 30])
def test_a_body_is_decoded_read_by_read(encoding: str, cut: int) -> None:
    (body,) = packed(encoding, [BODY])
    plain = decoded(reads(body, cut=cut), encoding, asked=f"gzip, {encoding};q=0.5")
    assert b"".join(read[3] for read in plain) == BODY
    assert [read[:3] for read in plain] == [(10, 11, 0), (20, 21, 1)]


@pytest.mark.parametrize("encoding", ["br", "zstd"])
def test_flushed_events_keep_the_stamps_of_their_reads(encoding: str) -> None:
    pieces = packed(encoding, [b"data: 1\n\n", b"data: 2\n\n"])
    plain = decoded([(stamp, stamp, 0, piece) for stamp, piece in zip((5, 9), pieces, strict=True)], encoding, asked=encoding)
    assert plain == [(5, 5, 0, b"data: 1\n\n"), (9, 9, 0, b"data: 2\n\n")]


@pytest.mark.parametrize("encoding", ["br", "zstd"])
def test_bytes_of_another_encoding_are_told(encoding: str) -> None:
    packed(encoding, [b""])  # or the package is missing
    with pytest.raises(BadResponse, match=f"says that it is encoded as {encoding}, and is not"):
        decoded(reads(BODY, cut=2), encoding, asked=encoding)


@pytest.mark.parametrize("encoding", ["br", "zstd"])
def test_a_few_bytes_that_stand_for_too_many_are_refused(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    monkeypatch.setattr(heads, "_MOST_BYTES", 1 << 20)
    (body,) = packed(encoding, [bytes(1 << 24)])
    assert len(body) < 2000
    with pytest.raises(BadResponse, match="longer than 1,048,576 bytes when it is decoded"):
        decoded(reads(body, cut=2), encoding, asked="*")


@pytest.mark.parametrize(("encoding", "package"), [("br", "brotli"), ("zstd", "zstandard")])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, encoding: str, package: str) -> None:
    monkeypatch.setattr("aiperf.sdk.headers.find_spec", lambda name: None if name == package else True)
    with pytest.raises(BadResponse) as failure:
        decoded(reads(b"\x00\x00", cut=1), encoding, asked=encoding)
    assert f"needs the package {package}: pip install 'aiperf-core[encodings]'" in failure.value.message
