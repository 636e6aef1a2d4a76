"""A phase's requests by the values of a text: the tasks of a benchmark, the models of a run.

Each reducer numbers the keys that it sees, and keeps the first 1,000 in the order of their characters.  A key that is among the
first 1,000 of all is among those of each reducer, so their number and the order of requests change nothing.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from aiperf.sdk.metric import RunMetric

from aiperf_reducer_columns.statistics.catalogue import Catalogue
from aiperf_reducer_columns.statistics.fold import NOWHERE

if TYPE_CHECKING:
    from aiperf.sdk.columns import Ints, Ragged, RecordBatch

MOST_KEYS = 1000


class TextMetrics(NamedTuple):
    """The metrics that are given by a text: shown ones, and with them those that must be folded; None is all metrics."""

    shown: frozenset[str]
    folded: frozenset[str]


def texts_of(catalogue: Catalogue) -> dict[str, TextMetrics]:
    """By text, in the order of their names, the metrics that are given for its values."""
    texts = sorted({text for metric in catalogue.metrics.values() for text in metric.by})
    found = {}
    for text in texts:
        shown = frozenset(tag for tag, metric in catalogue.metrics.items() if text in metric.by)
        folded = set(shown)
        for tag in reversed(catalogue.metrics):  # each comes behind what it needs
            metric = catalogue.metrics[tag]
            if tag in folded and isinstance(metric, RunMetric):
                folded.update(metric.needs)
        found[text] = TextMetrics(shown, frozenset(folded & catalogue.metrics.keys()))
    return found


class ByText:
    """A group for each key.  *tags*: of the metrics that are folded; None is all.

    keys: the number of each key that is kept; numbers are never used again.  beyond: there were more keys.
    dropped: numbers of the groups that the latest batch has put beyond the limit.
    """

    timed = False

    def __init__(self, text: str, tags: frozenset[str] | None = None) -> None:
        self.text, self.tags, self.name = text, tags, f"text:{text}"
        self.keys: dict[str, int] = {}
        self.beyond = False
        self.dropped: list[int] = []
        self._ordered: list[str] = []
        self._made = 0
        self._latest: tuple[RecordBatch, Ints] | None = None

    def ends(self, batch: RecordBatch, begin_ns: float) -> Ints:
        if self._latest is None or self._latest[0] is not batch:
            self._latest = batch, self._numbers(batch)
        return self._latest[1]

    starts = ends

    def elements(self, batch: RecordBatch, column: Ragged, begin_ns: float) -> Ints:
        return np.repeat(self.ends(batch, begin_ns), np.diff(column.offsets))

    def _numbers(self, batch: RecordBatch) -> Ints:
        self.dropped = []
        texts = batch.texts.get(self.text)
        if texts is None:
            return np.full(len(batch), NOWHERE)
        for key in {*texts} - self.keys.keys():
            if key is not None:
                self._take(key)
        known = self.keys
        return np.array([NOWHERE if text is None else known.get(text, NOWHERE) for text in texts], dtype=np.int64)

    def _take(self, key: str) -> None:
        if len(self._ordered) >= MOST_KEYS:
            self.beyond = True
            if key > self._ordered[-1]:
                return
            self.dropped.append(self.keys.pop(self._ordered.pop()))
        self.keys[key] = self._made
        self._made += 1
        insort(self._ordered, key)


def places_of(keys: Mapping[str, int], shown: Mapping[str, int]) -> Ints:
    """By a reducer's number of a key, its number in *shown*; NOWHERE for those that aren't shown, and for all greater ones."""
    places = np.full(max(keys.values(), default=-1) + 2, NOWHERE, dtype=np.int64)
    for key, number in keys.items():
        places[number] = shown.get(key, NOWHERE)
    return places
