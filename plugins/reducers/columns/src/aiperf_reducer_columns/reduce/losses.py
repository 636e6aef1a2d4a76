"""Sentences on what files of a journal lack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from aiperf.parts.segments import ShardReader
from aiperf.sdk.model import names


def lacking(columns: Sequence[str], version: str) -> str:
    """The sentence on columns that the run's *version* of this program did not keep."""
    return (
        f"{names(columns)} can't be computed again, nor what needs it: version {version} kept no such column, and the answers"
        " themselves are gone (--export-level raw keeps them)"
    )


def lost_frames(readers: Iterable[ShardReader], unknown: int) -> list[str]:
    """Sentences on what the segments lack.  *unknown*: requests whose input tokens nobody knows for that."""
    lacks = {0: "is missing", 1: "lacks 1 frame"}
    lost = [each for reader in readers for each in reader.lost.items()]
    sentences = [f"{name} {lacks.get(count, f'lacks {count:,} frames')}" for name, count in lost]
    if unknown:
        sentences.append(f"{unknown:,} requests continue one that is lost, and their input tokens are not known")
    return sentences


def lost_columns(journal_path: Path, sizes: dict[str, int]) -> Iterator[str]:
    """A sentence on each file of columns that is shorter than the run left it."""
    for name, size in sizes.items():
        path = journal_path / name
        rest = path.stat().st_size if path.exists() else 0
        if rest < size:
            yield f"{name} lacks {size - rest:,} of {size:,} bytes" if rest else f"{name} is missing"
