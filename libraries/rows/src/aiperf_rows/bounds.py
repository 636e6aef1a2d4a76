"""Bounds of what files may ask of this machine, and why a line is no JSON."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from aiperf import BadDataset
from aiperf.sdk.environment import most_expansion, most_line_bytes

_FREE_BYTES = 64 << 20
"""What a compressed file may always unpack to."""
_BLANK, _MOST_BLANK = (b"\n", b"\r\n"), 1_000_000
"""Line ends of a blank line; blank lines that may follow each other."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_PACKED = {
    b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz",
    b"PAR1": "Parquet",
}  # fmt: skip
_ENDINGS = {"gzip": ".gz", "zstd": ".zst", "Parquet": ".parquet"}


class Unpacked(io.RawIOBase):
    """The bytes of a compressed file, as long as they are not too many for its size.

    Reading raises BadDataset where they are.
    """

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self._path, self._stream, self._times = path, stream, most_expansion()
        self._left = _FREE_BYTES + self._times * path.stat().st_size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the interface has no name for a buffer
        piece = self._stream.read(len(buffer))
        self._left -= len(piece)
        if self._left < 0:
            raise BadDataset(
                f"{self._path} unpacks to more than {self._times:,} times its size and {_FREE_BYTES >> 20} MiB",
                "unpack it to see what it holds; AIPERF_DATASET_MAX_EXPANSION allows more",
            )
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._stream.close()
        super().close()


def regular(path: Path) -> None:
    """
    Raises:
        BadDataset: The path is a pipe, a socket or a device, which may block for ever, and can be read once.
        OSError: It can't be looked at.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise BadDataset(f"{path} is {kind}, and not a file", "write what it gives to a file, and name that")


def bounded_lines(path: Path, file: BinaryIO, first: int = 1) -> Iterator[bytes]:
    """The lines of *file*, whose next line has the number *first*.

    Raises:
        BadDataset: A line is longer than AIPERF_DATASET_MAX_LINE_BYTES.
    """
    most, blank = most_line_bytes(), 0
    while line := file.readline(most + 1):
        if len(line) > most:
            raise too_long(path, first, most)
        blank = blank + 1 if line in _BLANK else 0
        if blank > _MOST_BLANK:
            raise BadDataset(f"{path}:{first}: {_MOST_BLANK:,} blank lines one after the other", "leave them out")
        yield line
        first += 1


def too_long(path: Path, number: int, most: int) -> BadDataset:
    """The error of a line that is longer than *most* bytes."""
    return BadDataset(
        f"{path}:{number}: the line has more than {most:,} bytes",
        "write one row per line; AIPERF_DATASET_MAX_LINE_BYTES allows longer ones",
    )


def packed_as(content: bytes) -> str | None:
    """What the first bytes of a file say that it is packed with; None for a text."""
    return next((name for mark, name in _PACKED.items() if content.startswith(mark)), None)


def why_no_json(path: Path, line: bytes, error: Exception) -> tuple[str, str]:
    """Why a line of *path* is no JSON, and what to do."""
    usual = "write one JSON object per line"
    if isinstance(error, RecursionError):
        return "its arrays or objects are nested too deep", usual
    if line.startswith(_UTF_16) or line[:64].count(0) * 4 >= len(line[:64]):
        return "it is not UTF-8, but looks like UTF-16", f"write it as UTF-8: iconv -f UTF-16 -t UTF-8 {path.name}"
    if (packed := packed_as(line)) is not None:
        name = f"give its name the end {_ENDINGS[packed]}" if packed in _ENDINGS else "unpack it"
        return f"its content is {packed}, which its name doesn't say", name
    if b"\\u" in line and _has_lone_surrogate(line):
        what = "a lone surrogate (\\ud800 to \\udfff) is half a character, which UTF-8 can't hold"
        return what, "write the pair, or leave it out"
    return str(error), usual


def _has_lone_surrogate(line: bytes) -> bool:
    """Whether the line is JSON but for half characters."""
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):
        return False
    return any("\ud800" <= character <= "\udfff" for character in text)


def unpacked(path: Path, stream: BinaryIO) -> BinaryIO:
    """The bytes of *stream*, which unpacks *path*, within its bounds."""
    return cast("BinaryIO", io.BufferedReader(Unpacked(path, stream), 1 << 18))


__all__ = ["Unpacked", "bounded_lines", "packed_as", "regular", "too_long", "unpacked", "why_no_json"]
