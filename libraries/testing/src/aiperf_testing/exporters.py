"""The contracts of batch and data set exporters: the kernel joins any number of parts."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import pytest
from aiperf.sdk.columns import Column, RecordBatch
from aiperf.sdk.exporter import BatchExporter, DatasetExporter, Target
from aiperf.sdk.metric import Metric
from aiperf.sdk.metric import Unit as _Unit
from aiperf.sdk.model import Conversation, Turn

from aiperf_testing.batches import absent, sample_batch, scored
from aiperf_testing.findings import shown
from aiperf_testing.manifests import check_exporter_row


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

    def batch(self) -> RecordBatch:
        """The requests of the tests."""
        return sample_batch()

    @pytest.fixture
    def target(self, tmp_path: Path) -> Target:
        return Target(tmp_path, started_wall_ns=1_700_000_000_000_000_000)

    def _made(self, target: Target) -> BatchExporter:
        return type(self).exporter(target, type(self).options)

    def test_its_manifest_says_what_it_is(self) -> None:
        check_exporter_row(self.exporter)
        assert self.exporter.kind in self.exporter.files, "its file is not declared in files"

    def test_what_it_plans_is_among_its_files(self, target: Target) -> None:
        planned = set(self._made(target).planned())
        assert planned <= set(self.exporter.files), f"planned() has {shown(sorted(planned))}: give kinds of files"

    def test_no_requests_are_no_rows(self, target: Target) -> None:
        empty = self.batch().take(np.empty(0, dtype=np.int64))
        assert self._made(target).rows(scored(self.metrics, empty)) == b"", (
            "rows of an empty batch are not empty: write a row for each request, and nothing else"
        )

    def test_the_same_batch_gives_the_same_bytes(self, target: Target) -> None:
        first, second = self._made(target), self._made(target)
        batch = scored(self.metrics, self.batch())
        assert first.header() == second.header(), (
            "two exporters begin a file differently: header must not depend on clock or chance"
        )
        rows = first.rows(batch)
        assert rows, "the exporter writes nothing for the test batch"
        assert rows == first.rows(batch) == second.rows(scored(self.metrics, self.batch())), (
            "the same batch gives other bytes: rows must depend on the batch alone"
        )

    def test_parts_of_a_batch_join_to_the_whole(self, target: Target) -> None:
        batch = self.batch()
        parts = [batch.take(rows) for rows in np.array_split(np.arange(len(batch)), 3)]
        joined = b"".join(self._made(target).rows(scored(self.metrics, part)) for part in parts)
        whole = self._made(target).rows(scored(self.metrics, batch))
        if self.exporter.join is BatchExporter.join:
            assert joined == whole, "rows of two parts differ from those of the whole: keep nothing between batches"
            return
        with TemporaryDirectory() as folder:  # its parts have a format of their own: the file counts
            part, files = Path(folder) / "part", list[bytes]()
            for data in (joined, whole):
                part.write_bytes(data)
                files.append(b"".join(self._made(target).join([part])))
        assert files[0] == files[1], "files of two parts differ from those of the whole: keep nothing between batches"

    def test_requests_of_which_nothing_is_known_are_written_too(self, target: Target) -> None:
        self._made(target).rows(scored(self.metrics, absent(self.batch())))

    def test_it_leaves_the_directory_to_the_kernel(self, target: Target) -> None:
        exporter = self._made(target)
        exporter.header(), exporter.rows(scored(self.metrics, self.batch()))
        assert list(target.directory.iterdir()) == [], (
            f"it left {shown([path.name for path in target.directory.iterdir()])}: give rows to the kernel, which"
            f" writes the files"
        )


class DatasetExporterContract:
    """Subclass with an exporter's class::

        class TestMineKeepsTheContract(DatasetExporterContract):
            exporter = Mine
    """

    exporter: ClassVar[type[DatasetExporter]]
    options: ClassVar[Any] = None

    def _written(self, target: Path, count: int) -> bytes:
        made = type(self).exporter(Target(target), type(self).options)
        entries = (
            made.entry(Conversation(f"session_{n}", (Turn(texts=("Grüße",)),)), (b'{"n":%d}' % n, b"\xff\x00"), first=n == 0)
            for n in range(count)
        )
        return b"".join([made.header(), *entries, made.footer()])

    def test_its_manifest_says_what_it_is(self) -> None:
        check_exporter_row(self.exporter)
        assert self.exporter.kind in self.exporter.files, "its file is not declared in files"

    @pytest.mark.parametrize("count", [0, 1, 5])
    def test_the_same_conversations_give_the_same_bytes(self, count: int, tmp_path: Path) -> None:
        assert self._written(tmp_path, count) == self._written(tmp_path, count), (
            "the same conversations give other bytes: no clock, no chance, no number of the process"
        )

    def test_every_conversation_is_written(self, tmp_path: Path) -> None:
        sizes = [len(self._written(tmp_path, count)) for count in range(4)]
        assert sizes == sorted(set(sizes)), (
            f"files of more conversations have the sizes {sizes}: each conversation adds to the file"
        )

    def test_it_leaves_the_directory_to_the_kernel(self, tmp_path: Path) -> None:
        self._written(tmp_path, 2)
        assert list(tmp_path.iterdir()) == [], (
            f"it left {shown([path.name for path in tmp_path.iterdir()])}: give parts to the kernel, which writes the files"
        )
