"""What every metric must do: a request's value may not depend on whom it shares a batch with."""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np

from aiperf.columns import Column, Ragged, RecordBatch
from aiperf.metric import Metric
from aiperf.testing.batches import absent, assert_same, columns_of, sample_batch, taken


class MetricContract:
    """Subclass with a metric, and those it needs::

        class TestMineKeepsTheContract(MetricContract):
            metric = Mine()
            needed = (RequestLatency(),)
    """

    metric: ClassVar[Metric]
    needed: ClassVar[tuple[Metric, ...]] = ()

    def batch(self) -> RecordBatch:
        """The requests to try it on."""
        return sample_batch()

    def column(self, batch: RecordBatch) -> Column:
        return columns_of((*self.needed, self.metric), batch)[self.metric.tag]

    def test_it_is_named_as_files_and_options_name_it(self) -> None:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", self.metric.tag)
        assert self.metric.title
        assert self.metric.scale > 0

    def test_what_it_needs_is_what_it_reads(self) -> None:
        assert set(self.metric.needs) <= {metric.tag for metric in self.needed}

    def test_every_request_has_its_place(self) -> None:
        batch = self.batch()
        column = self.column(batch)
        assert len(column) == len(batch)
        if isinstance(column, Ragged):
            assert len(column.values) == len(column.at_ns) == column.offsets[-1] - column.offsets[0]
        else:
            assert np.asarray(column, dtype=np.float64).shape == (len(batch),)

    def test_some_request_has_a_value(self) -> None:
        column = self.column(self.batch())
        values = column.values if isinstance(column, Ragged) else column
        assert np.isfinite(values).any(), "of the batch to try it on, no request has a value: override batch()"

    def test_no_value_is_infinite(self) -> None:
        for batch in (self.batch(), absent(self.batch())):
            column = self.column(batch)
            assert not np.isinf(column.values if isinstance(column, Ragged) else column).any()

    def test_halves_give_what_the_whole_gives(self) -> None:
        batch = self.batch()
        whole = self.column(batch)
        for rows in np.array_split(np.arange(len(batch)), 2):
            assert_same(self.column(batch.take(rows)), taken(whole, rows), "half of the batch")

    def test_order_does_not_matter(self) -> None:
        batch = self.batch()
        rows = np.arange(len(batch))[::-1].copy()
        assert_same(self.column(batch.take(rows)), taken(self.column(batch), rows), "the batch backwards")

    def test_a_request_alone_has_the_same_value(self) -> None:
        batch = self.batch()
        whole = self.column(batch)
        for row in range(len(batch)):
            rows = np.array([row])
            assert_same(self.column(batch.take(rows)), taken(whole, rows), f"request {row} alone")

    def test_an_empty_batch_gives_an_empty_column(self) -> None:
        assert len(self.column(self.batch().take(np.empty(0, dtype=np.int64)))) == 0

    def test_where_nothing_is_known_nothing_fails(self) -> None:
        batch = absent(self.batch())
        whole = self.column(batch)
        assert len(whole) == len(batch)
        for rows in np.array_split(np.arange(len(batch)), 2):
            assert_same(self.column(batch.take(rows)), taken(whole, rows), "half of a batch of which nothing is known")

    def test_the_batch_is_left_as_it_was(self) -> None:
        batch, before = self.batch(), self.batch()
        self.column(batch)
        assert_same(batch.columns, before.columns, "the metric changed the batch")
