"""The ledger: one line of JSON per planned arrival of every phase, whatever became of it; a long one in gzip."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf import BatchExporter

from aiperf_exporter_arrivals.record_line import RECORD_LINE

if TYPE_CHECKING:
    from aiperf import RecordBatch

MOST_PLAIN = 100_000
"""Arrivals: a longer ledger is compressed, to about a ninth."""

_BLOCK_BYTES = 1 << 20
_THREADS, _AHEAD = 2, 4
"""Of compressing, and the blocks that may wait for their turn."""


class Arrivals(BatchExporter):
    """``profile_export_arrivals.jsonl``: when each arrival was due, what happened when, and how it ended.

    More than :data:`MOST_PLAIN` arrivals are ``profile_export_arrivals.jsonl.gz``, a gzip member for every MB of the lines.
    """

    label = "Arrivals Export"
    kind = "arrivals.jsonl"
    packed = "arrivals.jsonl.gz"
    files = {kind: "{prefix}_arrivals.jsonl", packed: "{prefix}_arrivals.jsonl.gz"}

    def rows(self, batch: RecordBatch) -> bytes:
        from aiperf_exporter_arrivals.lines import lines  # numpy: not in the parent, which only joins parts

        return lines(batch, self.target)

    def form(self, parts: Sequence[Path]) -> str:
        left = MOST_PLAIN
        for block in _blocks(parts):
            left -= block.count(b"\n")
            if left < 0:
                return self.packed
        return self.kind

    def join(self, parts: Sequence[Path]) -> Iterator[bytes]:
        """The parts one after the other, each recorded arrival with the number of its line in the per-request file.

        That file is joined from parts in the same order, which have the recorded arrivals in the same order.
        """
        blocks = _numbered(parts)
        return blocks if self.form(parts) == self.kind else _compressed(blocks)


def _blocks(parts: Sequence[Path]) -> Iterator[bytes]:
    for part in parts:
        with part.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                yield block


def _numbered(parts: Sequence[Path]) -> Iterator[bytes]:
    """The blocks of the parts with the numbers of the records' lines."""
    line = 1
    for block in _blocks(parts):
        pieces = block.split(RECORD_LINE)
        numbers = map(b"%d".__mod__, range(line, line + len(pieces)))
        line += len(pieces) - 1
        yield b"".join([*chain.from_iterable(zip(pieces[:-1], numbers, strict=False)), pieces[-1]])


def _compressed(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Each block as a gzip member of the same bytes every time; threads compress the ones ahead, as zlib leaves the lock."""
    import gzip
    from concurrent.futures import Future, ThreadPoolExecutor  # not for a short run

    with ThreadPoolExecutor(_THREADS) as threads:
        waiting = deque[Future[bytes]]()
        for block in blocks:
            waiting.append(threads.submit(gzip.compress, block, 1, mtime=0))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        for member in waiting:
            yield member.result()
