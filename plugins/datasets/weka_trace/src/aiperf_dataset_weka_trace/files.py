"""Where traces stand: a file of one, JSON lines, or a directory of such files."""

from __future__ import annotations

import codecs
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from aiperf import BadDataset
from aiperf_rows.row_files import opened

ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".json.zst", ".jsonl.zst")
_MOST_BYTES = 1 << 30
"""The longest trace."""
_PIECE = 1 << 20
"""Bytes that are read together."""


def files_of(path: Path) -> list[Path]:
    """The files of a path, in the order of their names.

    Raises:
        BadDataset: A directory has none.
    """
    if not path.is_dir():
        return [path]
    found = sorted(one for one in path.iterdir() if one.name.endswith(ENDINGS) and one.is_file())
    if not found:
        raise BadDataset(f"{path} has no traces", "names of their files end in .json or .jsonl, also with .gz or .zst")
    return found


def traces(files: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Places, a file or a line of it, and the JSON of each trace.

    Raises:
        BadDataset: A file can't be read.
    """
    for path in files:
        try:
            yield from _of_lines(path) if _has_lines(path) else _whole(path)
        except (OSError, EOFError, zlib.error) as error:
            raise BadDataset(f"{path} can't be read: {getattr(error, 'strerror', None) or error}") from error


def digest_of(files: Sequence[Path]) -> str:
    """A digest of the content of the files, and of their order.

    Raises:
        BadDataset: A file can't be read.
    """
    whole = hashlib.sha256()
    for path in files:
        try:
            with path.open("rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise BadDataset(f"{path} can't be read: {error.strerror or error}") from error
    return whole.hexdigest()


def _has_lines(path: Path) -> bool:
    """Whether each line is a trace: by the name, or because the first line ends as one does and is not the only one."""
    if path.name.removesuffix(".gz").removesuffix(".zst").endswith(".jsonl"):
        return True
    with opened(path) as file:
        first = file.readline(_MOST_BYTES).strip()
        return first.startswith((b"{", codecs.BOM_UTF8)) and first.endswith(b"}") and bool(file.readline(_PIECE).strip())


def _of_lines(path: Path) -> Iterator[tuple[str, bytes]]:
    with opened(path) as file:
        number = 0
        while line := file.readline(_MOST_BYTES + 1):
            number += 1
            if len(line) > _MOST_BYTES:
                raise BadDataset(f"{path}:{number}: the line has more than {_MOST_BYTES:,} bytes")
            text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if text.strip():
                yield f"{path}:{number}", text


def _whole(path: Path) -> Iterator[tuple[str, bytes]]:
    with opened(path) as file:
        text = file.read(_MOST_BYTES + 1).removeprefix(codecs.BOM_UTF8)
    if len(text) > _MOST_BYTES:
        raise BadDataset(f"{path} has more than {_MOST_BYTES:,} bytes", "write one trace per line, into a file with .jsonl")
    if text.strip():
        yield str(path), text


__all__ = ["ENDINGS", "digest_of", "files_of", "traces"]
