"""Who else gets the reducer's batches: the part files of batch exporters, and hooks."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from aiperf.registry.hooks import Hooks
from aiperf.registry.third_party import isolated
from aiperf.rundir.artifacts import exporters, part_path, target_for
from aiperf.rundir.directory import RunClock
from aiperf.sdk.columns import RecordBatch
from aiperf.sdk.exporter import BatchExporter
from aiperf.sdk.plan import Plan

if TYPE_CHECKING:
    from concurrent.futures import Future

log = logging.getLogger(__name__)


class Failures:
    """The first failure of each plugin, as a sentence."""

    def __init__(self) -> None:
        self.sentences: dict[str, str] = {}

    def report(self, plugin: str, sentence: str) -> None:
        if plugin not in self.sentences:
            self.sentences[plugin] = sentence
            log.warning("%s", sentence)


class BackgroundFile:
    """A file that a thread writes, one piece at a time: a report has a core to spare, and the disk is slow.

    An error of the disk is raised by the next call.
    """

    def __init__(self, file: BinaryIO) -> None:
        from concurrent.futures import ThreadPoolExecutor  # 5 ms, which a reducer beside the load doesn't need

        self._file, self._thread = file, ThreadPoolExecutor(1)
        self._writing: Future[int] | None = None

    def write(self, data: bytes) -> None:
        self._wait()
        self._writing = self._thread.submit(self._file.write, data)

    def close(self) -> None:
        try:
            self._wait()
        finally:
            self._thread.shutdown()
            self._file.close()

    def _wait(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()


class Outlets:
    """Batch exporters, each with its part file, and implementations of ``aiperf_batch_reduced``.

    *background*: part files are written by threads.
    """

    def __init__(self, plan: Plan, journal: Path, index: int, failures: Failures, *, clock: RunClock, background: bool) -> None:
        self._failures = failures
        self._exporters = exporters(plan, target_for(plan, clock), BatchExporter)
        files = [part_path(journal, ref.name, index).open("wb") for ref, _ in self._exporters]
        self._parts: list[BinaryIO | BackgroundFile] = [BackgroundFile(file) for file in files] if background else [*files]
        self._hooks = Hooks.load(plan.plugins.hooked("aiperf_batch_reduced"), lambda message: failures.report(message, message))

    def give(self, batch: RecordBatch) -> None:
        """Export the batch and call the hooks; OSError (a full disk) is the caller's to handle."""
        for (ref, exporter), part in zip(self._exporters, self._parts, strict=True):
            with isolated(ref, partial(self._failures.report, str(ref)), passing=OSError):
                part.write(exporter.rows(batch))
        self._hooks.call("aiperf_batch_reduced", batch=batch)

    def close(self) -> None:
        for part in self._parts:
            part.close()
