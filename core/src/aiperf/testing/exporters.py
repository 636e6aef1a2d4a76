"""What every exporter of batches must do: its parts are joined by the kernel, in any number."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from aiperf.columns import Column, RecordBatch
from aiperf.exporter import LEVELS, BatchExporter, Target
from aiperf.metric import Metric
from aiperf.metric import Unit as _Unit
from aiperf.testing.batches import absent, sample_batch, scored
from aiperf.testing.manifests import check_row


class _Duration(Metric):
    tag, title, unit, display = "request_latency", "Request Latency", _Unit.NANOSECONDS, _Unit.MILLISECONDS
    order = 300

    def column(self, batch: RecordBatch) -> Column:
        return batch["last_token_ns"] - batch["started_ns"]


class _Gaps(Metric):
    tag, title, unit, display = "inter_chunk_latency", "Inter Chunk Latency", _Unit.NANOSECONDS, _Unit.MILLISECONDS

    def column(self, batch: RecordBatch) -> Column:
        return batch.lists("gap_ns")


class BatchExporterContract:
    """Subclass with an exporter's class::

        class TestMineKeepsTheContract(BatchExporterContract):
            exporter = Mine
    """

    exporter: ClassVar[type[BatchExporter]]
    options: ClassVar[Any] = None
    metrics: ClassVar[tuple[Metric, ...]] = (_Duration(), _Gaps())

    @pytest.fixture
    def target(self, tmp_path: Path) -> Target:
        return Target(tmp_path, started_wall_ns=1_700_000_000_000_000_000)

    def _made(self, target: Target) -> BatchExporter:
        return type(self).exporter(target, type(self).options)

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("exporters", self.exporter)
        assert self.exporter.level in LEVELS
        assert self.exporter.kind

    def test_no_requests_are_no_rows(self, target: Target) -> None:
        empty = sample_batch().take(np.empty(0, dtype=np.int64))
        assert self._made(target).rows(scored(self.metrics, empty)) == b""

    def test_the_same_batch_gives_the_same_bytes(self, target: Target) -> None:
        first, second = self._made(target), self._made(target)
        batch = scored(self.metrics, sample_batch())
        assert first.header() == second.header()
        rows = first.rows(batch)
        assert rows, "of the batch to try it on, nothing is written"
        assert rows == first.rows(batch) == second.rows(scored(self.metrics, sample_batch()))

    def test_parts_of_a_batch_join_to_the_whole(self, target: Target) -> None:
        batch = sample_batch()
        parts = [batch.take(rows) for rows in np.array_split(np.arange(len(batch)), 3)]
        joined = b"".join(self._made(target).rows(scored(self.metrics, part)) for part in parts)
        assert joined == self._made(target).rows(scored(self.metrics, batch))

    def test_requests_of_which_nothing_is_known_are_written_too(self, target: Target) -> None:
        self._made(target).rows(scored(self.metrics, absent(sample_batch())))

    def test_it_leaves_the_directory_to_the_kernel(self, target: Target) -> None:
        exporter = self._made(target)
        exporter.header(), exporter.rows(scored(self.metrics, sample_batch()))
        assert list(target.directory.iterdir()) == []
