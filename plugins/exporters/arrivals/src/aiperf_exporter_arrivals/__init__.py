"""The ledger: one line of JSON per planned arrival of every phase, whatever became of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf import BatchExporter

if TYPE_CHECKING:
    from aiperf import RecordBatch

RECORD_LINE = b"\0"
"""Stands in the parts for a number that is only known when they are joined; no JSON text has this byte."""

_BLOCK_BYTES = 1 << 20


class Arrivals(BatchExporter):
    """``profile_export_arrivals.jsonl``: when each arrival was due, what happened when, and how it ended."""

    label = "Arrivals Export"
    kind = "arrivals.jsonl"
    files = {kind: "{prefix}_arrivals.jsonl"}

    def rows(self, batch: RecordBatch) -> bytes:
        from aiperf_exporter_arrivals.lines import lines  # numpy: not in the parent, which only joins parts

        return lines(batch, self.target)

    def join(self, parts: Sequence[Path]) -> Iterator[bytes]:
        """The parts one after the other, each recorded arrival with the number of its line in the per-request file.

        That file is joined from parts in the same order, which have the recorded arrivals in the same order.
        """
        line = 1
        for part in parts:
            with part.open("rb") as file:
                while block := file.read(_BLOCK_BYTES):
                    pieces = block.split(RECORD_LINE)
                    numbers = map(b"%d".__mod__, range(line, line + len(pieces) - 1))
                    line += len(pieces) - 1
                    yield b"".join(chain.from_iterable(zip(pieces, numbers, strict=False)))
                    yield pieces[-1]
