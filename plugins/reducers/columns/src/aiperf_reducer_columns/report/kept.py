"""What a run's journal keeps of samples, requests and prompts, for whoever asks: verdicts and tables."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
from aiperf.parts.journal import Store
from aiperf.sdk.columns import NUMBERS, Floats
from aiperf.sdk.series import Line

from aiperf_reducer_columns.reduce.batches import stored_batches
from aiperf_reducer_columns.reduce.kept_samples import kept_samples


class Kept:
    """The samples of the journal at *path*, and the stored numbers of the requests of *phase*."""

    def __init__(self, path: Path, phase: int) -> None:
        self._path, self._phase = path, phase

    def samples(self, source: str) -> Iterator[Line]:
        """See :meth:`aiperf.sdk.verdict.Evidence.samples`."""
        return kept_samples(self._path, source)

    def column(self, name: str) -> Floats:
        """See :meth:`aiperf.sdk.verdict.Evidence.column`."""
        if name not in NUMBERS:
            near = difflib.get_close_matches(name, NUMBERS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise LookupError(f"there is no column {name!r}{hint}: aiperf.sdk.columns.NUMBERS has the names")
        parts = [np.empty(0)]
        for batch in stored_batches(self._path):
            if batch.count:
                columns = batch.columns()
                parts.append(columns[name][columns["phase"] == self._phase])
        return np.concatenate(parts)

    def body(self, entry: int) -> bytes:
        """See :meth:`aiperf.sdk.verdict.Evidence.body`."""
        return self._store.body(entry, 0) if self._store.has(entry) else b""

    @cached_property
    def _store(self) -> Store:
        return Store(self._path)
