"""What a run's journal keeps of samples, requests and prompts, for whoever asks: verdicts and tables."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path

from aiperf.parts.journal import Store
from aiperf.sdk.columns import NUMBERS, Floats, Ints
from aiperf.sdk.series import Line
from aiperf.sdk.verdict import Evidence
from msgspec.structs import replace

from aiperf_reducer_columns.reduce.batches import REST, stored_batches
from aiperf_reducer_columns.reduce.kept_samples import kept_samples
from aiperf_reducer_columns.report.kept_columns import KeptColumns, gathered, joined, narrow
from aiperf_reducer_columns.report.ordering import Ordering, ascending

log = logging.getLogger("aiperf.reducer")

_TOGETHER = (
    "entry", "turn", "session", "url", "outcome", "started_ns", "sent_ns", "ended_ns", "first_token_ns", "last_token_ns",
    "input_tokens", "output_tokens", "reasoning_tokens", "usage_prompt_tokens", "usage_completion_tokens",
    "usage_cached_tokens",
)  # fmt: skip
"""Columns that are read with the first one of them: a batch is unpacked as a whole, whatever is wanted of it."""


class Kept:
    """The samples of the journal at *path*, and the numbers of the requests of *phase*.

    again: requests were reduced again, and their stored numbers were not used.
    """

    def __init__(self, path: Path, phase: int, *, again: bool = False) -> None:
        self._path, self._phase = path, phase
        self._folders = (path / REST,) if again else (path, path / REST)
        self._columns: KeptColumns | None = None
        self._no_room = False
        self._orderings: dict[str, Ordering] = {}

    def shown_in(self, evidence: Evidence) -> Evidence:
        """The evidence with what is here."""
        return replace(
            evidence, read_samples=self.samples, read_column=self.column, read_columns=self.columns, read_ordered=self.ordered,
            read_body=self.body,
        )  # fmt: skip

    def samples(self, source: str) -> Iterator[Line]:
        """See :meth:`aiperf.sdk.verdict.Evidence.samples`."""
        return kept_samples(self._path, source)

    def column(self, name: str) -> Floats:
        """See :meth:`aiperf.sdk.verdict.Evidence.column`."""
        kept = self._kept((name,))
        return joined([narrow(block[name]) for block in self._read((name,))]) if kept is None else kept.column(name)

    def columns(self, names: Sequence[str]) -> Iterator[tuple[Floats, ...]]:
        """See :meth:`aiperf.sdk.verdict.Evidence.columns`."""
        kept = self._kept(names)
        if kept is not None:
            return kept.blocks(names)
        return (tuple(block[name] for name in names) for block in self._read(names))

    def ordered(self, name: str) -> Iterator[tuple[Ints, Floats]]:
        """See :meth:`aiperf.sdk.verdict.Evidence.ordered`."""
        if name not in self._orderings:
            try:
                self._orderings[name] = Ordering((column for (column,) in self.columns((name,))), self._path)
            except OSError as error:
                log.debug("the order of %s is made in memory: %s", name, error)
                return iter((ascending(self.column(name)),))
        return self._orderings[name].blocks()

    def _kept(self, names: Sequence[str]) -> KeptColumns | None:
        """The columns that are kept for the next who asks; None where one of *names* isn't among them, or they have no room."""
        for name in names:
            if name not in NUMBERS:
                near = difflib.get_close_matches(name, NUMBERS, 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise LookupError(f"there is no column {name!r}{hint}: aiperf.sdk.columns.NUMBERS has the names")
        if self._columns is None and not self._no_room:
            together = tuple(dict.fromkeys((*names, *_TOGETHER)))
            kept = KeptColumns(together, self._path)
            try:
                for block in self._read(together):
                    kept.add(block)
                self._columns = kept
            except OSError as error:
                self._no_room = True
                log.debug("columns are read anew for each verdict: %s", error)
        kept_all = self._columns is not None and all(name in self._columns for name in names)
        return self._columns if kept_all else None

    def _read(self, names: Sequence[str]) -> Iterator[dict[str, Floats]]:
        """Blocks of these columns, of the requests of the phase."""
        return gathered(self._batches(names), names)

    def _batches(self, names: Sequence[str]) -> Iterator[dict[str, Floats]]:
        for batch in chain.from_iterable(map(stored_batches, self._folders)):
            if batch.count:
                columns = batch.columns()
                rows = columns["phase"] == self._phase
                yield {name: columns[name][rows] for name in names}

    def body(self, entry: int) -> bytes:
        """See :meth:`aiperf.sdk.verdict.Evidence.body`."""
        return self._store.body(entry, 0) if self._store.has(entry) else b""

    @cached_property
    def _store(self) -> Store:
        return Store(self._path)
