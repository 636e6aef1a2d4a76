"""Header blocks, coded by ``hpack``; what repeats is coded once.

``hpack`` takes 2 to 5 µs a field.  Requests differ in their ids alone, and answers as a rule in nothing, so that
a block which leaves the table as it is stands for the same fields until the table changes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import hpack

from aiperf_http2.frames import COMPRESSION_ERROR, ENHANCE_YOUR_CALM, Http2Error

Fields = Sequence[tuple[str, str]]

_MOST_BLOCKS, _MOST_BLOCK_BYTES = 256, 128
"""Of the blocks that a decoder keeps."""

_LENGTHS = [bytes((size,)) for size in range(127)]

# It logs every field at debug level, keys among them.
logging.getLogger("hpack").setLevel(logging.WARNING)


class HeaderList(list[tuple[str, str]]):
    """The fields of a head that came.  Equal heads may be one object, so what is found out about it is kept with it.

    faults: what is wrong with it, by its place.  memo: belongs to the user of the connection.
    """

    __slots__ = ("faults", "memo")

    def __init__(self, fields: Iterable[tuple[str, str]]) -> None:
        super().__init__(fields)
        self.faults: dict[tuple[bool, bool], str] = {}
        self.memo: object = None


class HeaderSet:
    """Fields that many requests share, names in small letters, pseudo fields first."""

    __slots__ = ("fields",)

    def __init__(self, fields: Fields) -> None:
        self.fields = tuple(fields)


def literal(name: str, value: str) -> bytes:
    """A field that no table keeps (RFC 7541, 6.2.2), without Huffman's code; *name* in small letters."""
    return literal_name(name) + literal_value(value)


def literal_name(name: str) -> bytes:
    """The first part of a literal."""
    return b"\x00" + literal_value(name)


def literal_value(value: str) -> bytes:
    """The second part of a literal: RFC 7541, 5.2."""
    data = value.encode("latin-1")
    size = len(data)
    if size < 127:
        return _LENGTHS[size] + data
    head, rest = bytearray(b"\x7f"), size - 127
    while rest >= 128:
        head.append(rest & 127 | 128)
        rest >>= 7
    head.append(rest)
    return bytes(head) + data


class HeaderEncoder:
    """Writes the header blocks of one connection, in the order in which they are sent."""

    def __init__(self) -> None:
        self._encoder = hpack.Encoder()
        self._blocks: dict[HeaderSet, bytes] = {}

    def limit(self, size: int) -> None:
        """Keep a table of at most *size* bytes, as the peer's settings say; never more than the 4,096 that all peers have."""
        self._encoder.header_table_size = min(size, 4096)
        self._blocks.clear()

    def encode(self, fields: HeaderSet, behind: bytes = b"") -> bytes:
        """The block of the *fields*, and of the literals *behind* them."""
        block = self._blocks.get(fields)
        if block is None:
            table = self._encoder.header_table
            before, resized = list(table.dynamic_entries), table.resized
            block = self._encoder.encode(fields.fields)
            if before != list(table.dynamic_entries):
                self._blocks.clear()
            elif not resized:
                if len(self._blocks) >= _MOST_BLOCKS:
                    self._blocks.clear()
                self._blocks[fields] = block
        return block + behind


class HeaderDecoder:
    """Reads the header blocks of one connection.  most_bytes: of all fields of one block."""

    def __init__(self, most_bytes: int) -> None:
        self._decoder = hpack.Decoder(most_bytes)
        self._blocks: dict[bytes, HeaderList] = {}
        self._most_bytes = most_bytes

    def decode(self, block: bytes) -> HeaderList:
        """The fields of a block, bytes above 127 as Latin-1.

        Raises:
            Http2Error: It can't be read, or is too long.
        """
        fields = self._blocks.get(block)
        if fields is not None:
            return fields
        before = list(self._decoder.header_table.dynamic_entries)
        try:
            raw = self._decoder.decode(block, raw=True)
        except hpack.OversizedHeaderListError:
            raise Http2Error(ENHANCE_YOUR_CALM, f"a head is longer than {self._most_bytes:,} bytes") from None
        except hpack.HPACKError as error:
            raise Http2Error(COMPRESSION_ERROR, f"a header block can't be read: {error}") from None
        except (IndexError, ValueError) as error:  # hpack 4.1, of blocks that are cut
            raise Http2Error(COMPRESSION_ERROR, f"a header block can't be read: {error}") from None
        fields = HeaderList((bytes(name).decode("latin-1"), bytes(value).decode("latin-1")) for name, value in raw)
        if before != list(self._decoder.header_table.dynamic_entries):
            self._blocks.clear()
        elif len(block) <= _MOST_BLOCK_BYTES:
            if len(self._blocks) >= _MOST_BLOCKS:
                self._blocks.clear()
            self._blocks[block] = fields
        return fields
