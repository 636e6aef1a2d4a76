"""What batches go to: the part files of exporters, and hooks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf.parts import journal
from aiperf.parts.hooks import Hooks
from aiperf.parts.loading import calls, isolated
from aiperf.parts.reporting import exporters, part_path, target_for
from aiperf.sdk.columns import RecordBatch
from aiperf.sdk.exporter import BatchExporter
from aiperf.sdk.plan import Plan

from aiperf_reducer_columns.reduce.request_errors import Report

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_HOOKS = ("aiperf_batch_reduced", "aiperf_reduction_ended")


class Outlets:
    """Batch exporters, each with its part file, and implementations of ``aiperf_batch_reduced``.

    answers: whether an exporter wants the texts of answers.  *background*: of a report, which has no load beside it: a thread
    writes the part files, one batch at a time, and an error of the disk is raised by the next call.
    """

    def __init__(
        self, plan: Plan, journal_path: Path, index: int, report: Report, *, clock: journal.RunClock, background: bool
    ) -> None:
        self._plan, self._live = plan, not background
        self._report, self._files = report, contextlib.ExitStack()
        self._exporters = exporters(plan, target_for(plan, clock), BatchExporter)
        self.answers = any(exporter.answers for _, exporter in self._exporters)
        paths = [part_path(journal_path, ref.name, index) for ref, _ in self._exporters]
        self._parts = [self._files.enter_context(path.open("wb", buffering=0)).fileno() for path in paths]
        self._sizes: list[int] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._writing: Future[None] | None = None
        if background:
            from concurrent.futures import ThreadPoolExecutor  # 5 ms, which a reducer beside the load doesn't need

            self._thread = self._files.enter_context(ThreadPoolExecutor(1))
        self._hooks = Hooks.load(plan.plugins.hooked(*_HOOKS), lambda message: report(message, message))

    def give(self, batch: RecordBatch) -> None:
        """Export the batch, unless rows are put off, and call the hooks; OSError (a full disk) is the caller's to handle."""
        if self._sizes is None:
            self.write(self.rows(batch))
        self._hooks.call("aiperf_batch_reduced", batch=batch, plan=self._plan, live=self._live)

    def end(self) -> None:
        """All batches were given."""
        self._hooks.call("aiperf_reduction_ended", plan=self._plan, live=self._live)

    def put_off(self) -> bool:
        """From now on :meth:`give` makes no rows; False where nothing is exported at all."""
        self._sizes = [os.fstat(part).st_size for part in self._parts]
        return bool(self._parts)

    def rewind(self) -> None:
        """Drop all that was written since :meth:`put_off`."""
        for part, size in zip(self._parts, self._sizes or (), strict=True):
            os.truncate(part, size)
            os.lseek(part, size, os.SEEK_SET)

    def rows(self, batch: RecordBatch) -> list[bytes]:
        """The batch's rows for each exporter, none for one that fails."""
        rows = [b""] * len(self._exporters)
        for place, (ref, exporter) in enumerate(self._exporters):
            if ref.key in calls.left:
                continue
            with isolated(ref, partial(self._report, str(ref)), passing=OSError):
                rows[place] = exporter.rows(batch)
                for sentence in exporter.left_out():
                    self._report(sentence, sentence)
        return rows

    def write(self, rows: Sequence[bytes]) -> None:
        self._wait()
        if self._thread is None:
            self._write(rows)
        else:
            self._writing = self._thread.submit(self._write, rows)

    def _write(self, rows: Sequence[bytes]) -> None:
        for part, data in zip(self._parts, rows, strict=True):
            journal.write_all(part, data)

    def _wait(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def close(self) -> None:
        with self._files:
            self._wait()
