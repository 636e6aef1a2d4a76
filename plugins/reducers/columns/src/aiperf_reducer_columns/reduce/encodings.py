"""Decoders of encoded bodies: gzip and deflate of the standard library, br and zstd where their packages are installed."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Protocol

from aiperf import BadResponse
from aiperf.sdk.headers import undecodable

_ZLIB_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_SLICE = 64
"""Bytes: of a library that can't be told where to stop, so many may become 2 MB of zstd, more of br."""


class Decoder(Protocol):
    """Decodes a stream, piece by piece."""

    def __call__(self, data: bytes, most: int, /) -> bytes:
        """What *data* completes; a little more than *most* bytes, or less, where it is more than that.

        Raises:
            ValueError: The bytes are not of the encoding.
        """


def decoder(encoding: str, begin: bytes) -> Decoder:
    """The decoder of a body that begins with *begin*, its first two bytes.

    Raises:
        BadResponse: The encoding is unknown here, or needs a package that is missing.
    """
    if why := undecodable(encoding):
        raise BadResponse(f"the answer is encoded as {encoding}, which {why}")
    return _brotli() if encoding == "br" else _zstd() if encoding == "zstd" else _zlib(encoding, begin)


def _zlib(encoding: str, begin: bytes) -> Decoder:
    """Many servers send deflate without its header (RFC 1950, 2.2)."""
    bare = len(begin) == 2 and (begin[0] & 15 != 8 or int.from_bytes(begin, "big") % 31)
    stream = zlib.decompressobj(-15 if encoding == "deflate" and bare else _ZLIB_BITS[encoding])

    def decode(data: bytes, most: int) -> bytes:
        try:
            return stream.decompress(data, most)
        except zlib.error as error:
            raise ValueError(str(error)) from error

    return decode


def _brotli() -> Decoder:
    import brotli

    return _sliced(brotli.Decompressor().process, brotli.error)


def _zstd() -> Decoder:
    import zstandard

    return _sliced(zstandard.ZstdDecompressor().decompressobj().decompress, zstandard.ZstdError)


def _sliced(decompress: Callable[[bytes], bytes], failure: type[Exception]) -> Decoder:
    def decode(data: bytes, most: int) -> bytes:
        pieces, size = [], 0
        for at in range(0, len(data), _SLICE):
            try:
                pieces.append(decompress(data[at : at + _SLICE]))
            except failure as error:
                raise ValueError(str(error)) from error
            size += len(pieces[-1])
            if size > most:
                break
        return b"".join(pieces)

    return decode
