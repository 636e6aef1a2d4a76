"""What a run's journal keeps of samples, requests and prompts, for whoever asks: verdicts and tables."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
from aiperf.parts.journal import Store
from aiperf.sdk.columns import NUMBERS, Floats
from aiperf.sdk.series import Line
from numpy.typing import NDArray

from aiperf_reducer_columns.reduce.batches import REST, stored_batches
from aiperf_reducer_columns.reduce.kept_samples import kept_samples

_TOGETHER = (
    "entry", "turn", "session", "url", "outcome", "started_ns", "sent_ns", "ended_ns", "first_token_ns", "last_token_ns",
    "input_tokens", "output_tokens", "reasoning_tokens", "usage_prompt_tokens", "usage_completion_tokens",
    "usage_cached_tokens",
)  # fmt: skip
"""Columns that are read with the first one of them: a batch is unpacked as a whole, whatever is wanted of it."""
_MOST_BYTES = 1 << 28
"""Of columns that are kept for the next who asks; of longer runs they are read again."""


_Parts = list[NDArray[np.floating]]
"""A column as its batches have it: joined for who asks, since joined ones beside the parts would take the memory twice."""


def narrow(column: Floats) -> NDArray[np.floating]:
    """The column in half its bytes, where these have the same numbers: of counts they do, of most times they don't."""
    small = column.astype(np.float32)
    return small if np.array_equal(small, column, equal_nan=True) else column


class Kept:
    """The samples of the journal at *path*, and the numbers of the requests of *phase*.

    again: requests were reduced again, and their stored numbers were not used.
    """

    def __init__(self, path: Path, phase: int, *, again: bool = False) -> None:
        self._path, self._phase = path, phase
        self._folders = (path / REST,) if again else (path, path / REST)
        self._columns: dict[str, _Parts] = {}

    def samples(self, source: str) -> Iterator[Line]:
        """See :meth:`aiperf.sdk.verdict.Evidence.samples`."""
        return kept_samples(self._path, source)

    def column(self, name: str) -> Floats:
        """See :meth:`aiperf.sdk.verdict.Evidence.column`."""
        if name not in NUMBERS:
            near = difflib.get_close_matches(name, NUMBERS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise LookupError(f"there is no column {name!r}{hint}: aiperf.sdk.columns.NUMBERS has the names")
        if name not in self._columns:
            found = self._read((name, *(other for other in _TOGETHER if other != name)))
            if len(found) < len(_TOGETHER):
                return np.concatenate(found[name], dtype=np.float64)
            self._columns |= found
        return np.concatenate(self._columns[name], dtype=np.float64)

    def _read(self, names: tuple[str, ...]) -> dict[str, _Parts]:
        """The parts of these columns, or of the first alone where all are too many bytes to keep."""
        parts: dict[str, _Parts] = {name: [np.empty(0, dtype=np.float32)] for name in names}
        size = 0
        for batch in chain.from_iterable(map(stored_batches, self._folders)):
            if batch.count:
                columns = batch.columns()
                rows = columns["phase"] == self._phase
                for name in parts:
                    parts[name].append(narrow(columns[name][rows]))
                size += sum(part[-1].nbytes for part in parts.values())
                if size > _MOST_BYTES and len(parts) > 1:
                    parts = {names[0]: parts[names[0]]}
        return parts

    def body(self, entry: int) -> bytes:
        """See :meth:`aiperf.sdk.verdict.Evidence.body`."""
        return self._store.body(entry, 0) if self._store.has(entry) else b""

    @cached_property
    def _store(self) -> Store:
        return Store(self._path)
