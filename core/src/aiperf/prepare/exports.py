"""Files of data set exporters, written while the data set streams by."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import BinaryIO

from aiperf.registry.third_party import isolated
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.exporter import DatasetExporter
from aiperf.sdk.model import Conversation

log = logging.getLogger(__name__)


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

    def __enter__(self) -> DatasetExport:
        self._draft.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._draft.open("wb")
        self._write(self._exporter.header)
        return self

    def entry(self, conversation: Conversation, bodies: Sequence[bytes]) -> None:
        """Write one conversation.  *bodies*: request bodies by turn."""
        self._write(partial(self._exporter.entry, conversation, bodies, first=self._first))
        self._first = False

    def finish(self) -> None:
        """Write the end and move the draft to the final path."""
        self._write(self._exporter.footer)
        if self._file is not None:
            self._file.close()
            self._draft.replace(self._path)

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
