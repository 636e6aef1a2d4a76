"""The files of data set exporters: written while entries are made, or of the whole store where these come in another order."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from aiperf.registry.third_party import isolated
from aiperf.rundir.artifacts import exporters, target_for
from aiperf.rundir.journal import RunClock
from aiperf.rundir.links import link
from aiperf.rundir.store import Store
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.exporter import DatasetExporter
from aiperf.sdk.model import Conversation
from aiperf.sdk.plan import ModelStrategy, Plan

log = logging.getLogger(__name__)

_AT_ONCE, _AT_ONCE_BYTES = 64, 1 << 18
"""Conversations that an exporter writes at once, and the size of their bodies."""


class DatasetExport:
    """The file of one data set exporter: a draft beside the final path, which replaces it when the file is whole.

    An exporter that fails is reported and leaves no file; the run continues without it.
    """

    def __init__(self, ref: PluginRef, exporter: DatasetExporter) -> None:
        self._ref, self._exporter = ref, exporter
        self._path = exporter.target.file(exporter.kind)
        self._draft = self._path.with_name(f".{self._path.name}.draft")
        self._file: BinaryIO | None = None
        self._first = True
        self._entries: list[tuple[Conversation, Sequence[bytes]]] = []
        self._bytes = 0

    def __enter__(self) -> DatasetExport:
        self._draft.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._draft.open("wb")
        self._write(self._exporter.header)
        return self

    def entry(self, conversation: Conversation, bodies: Sequence[bytes]) -> None:
        """Write one conversation, with others.  *bodies*: request bodies by turn."""
        self._entries.append((conversation, bodies))
        self._bytes += sum(map(len, bodies))
        if len(self._entries) == _AT_ONCE or self._bytes > _AT_ONCE_BYTES:
            self._flush()

    def finish(self) -> None:
        """Write the end and move the draft to the final path."""
        self._flush()
        self._write(self._exporter.footer)
        if self._file is not None:
            self._file.close()
            self._draft.replace(self._path)

    def _flush(self) -> None:
        entries, self._entries, self._bytes = self._entries, [], 0
        if entries:
            self._write(partial(self._exporter.entries, entries, first=self._first))
            self._first = False

    def _write(self, piece: Callable[[], bytes]) -> None:
        if self._file is not None:
            # An OSError is a fault of the disk, not of the exporter.
            with isolated(self._ref, self._failed, f"failed, and {self._path.name} is not written", passing=OSError):
                self._file.write(piece())

    def _failed(self, message: str) -> None:
        log.error("%s", message)
        self.__exit__()

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._draft.unlink(missing_ok=True)


class DatasetExports:
    """The files of all data set exporters of a plan; use as a context manager.

    *earlier*: files of the same data set for a plan before, by ``category:name``.
    live: those that get each entry when it is made; none once the entries come out of order.
    """

    def __init__(self, plan: Plan, earlier: Mapping[str, Path] | None = None) -> None:
        self._chosen = exporters(plan, target_for(plan, RunClock(0, 0)), DatasetExporter)  # these exporters use no time
        self._every, self._earlier = self._chosen, earlier or {}
        self._journal, self._target = Path(plan.output.journal), plan.target
        self._all: list[DatasetExport] = []
        self.live = self._all
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> DatasetExports:
        self._chosen = [pair for pair in self._every if not self._taken_over(*pair)]
        with contextlib.ExitStack() as stack:
            self._all += [stack.enter_context(DatasetExport(ref, exporter)) for ref, exporter in self._chosen]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def files(self) -> dict[str, Path]:
        """The files that are there, by ``category:name``."""
        paths = {ref.key: exporter.target.file(exporter.kind) for ref, exporter in self._every}
        return {key: path for key, path in paths.items() if path.exists()}

    def _taken_over(self, ref: PluginRef, exporter: DatasetExporter) -> bool:
        """Whether the exporter's file is that of the plan before, which is now in this run's directory, too."""
        path, earlier = exporter.target.file(exporter.kind), self._earlier.get(ref.key)
        if earlier is None or not exporter.of_data_alone:
            return False
        draft = path.with_name(f".{path.name}.draft")
        with contextlib.suppress(FileNotFoundError):  # somebody has removed it
            draft.parent.mkdir(parents=True, exist_ok=True)
            draft.unlink(missing_ok=True)
            link(earlier, draft)
            draft.replace(path)
            return True
        return False

    def model(self, number: int) -> int:
        """With models in turn and entries in order, the first body of the entry *number* has this one."""
        target = self._target
        return number % len(target.models) if target.model_strategy == ModelStrategy.ROUND_ROBIN else 0

    def out_of_order(self) -> None:
        """The entries won't come by their numbers, which the files have: :meth:`finish` reads them from the store."""
        self.live = []

    def entry(self, conversation: Conversation, bodies: Sequence[bytes]) -> None:
        """Write an entry.  *bodies*: by turn."""
        for export in self.live:
            export.entry(conversation, bodies)

    def finish(self) -> None:
        """Complete the files; the store is closed."""
        if self._all and not self.live:
            stored, self.live = Store(self._journal), self._all
            for number in stored.readable():
                turns, model = range(stored.turns(number)), self.model(number)
                self.entry(stored.conversation(number), [stored.body(number, turn, model) for turn in turns])
        for export in self._all:
            export.finish()
