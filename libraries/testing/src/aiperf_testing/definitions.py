"""The contract of definitions: they name their source, and parts of a batch add up to the whole."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from aiperf.sdk.columns import Floats, RecordBatch
from aiperf.sdk.definition import Definition, Readings

from aiperf_testing.batches import absent, sample_batch
from aiperf_testing.findings import unlike
from aiperf_testing.manifests import check_row


class DefinitionContract:
    """Subclass with a definition's class::

        class TestMineKeepsTheContract(DefinitionContract):
            definition = Mine
    """

    definition: ClassVar[type[Definition]]

    def batch(self) -> RecordBatch:
        """The requests of the tests."""
        return sample_batch()

    def _read(self, batch: RecordBatch) -> Readings:
        return type(self).definition().read(batch)

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("definitions", self.definition)

    def test_a_definition_names_its_tool_source_and_difference(self) -> None:
        for text in (self.definition.title, self.definition.source, self.definition.differs):
            assert text.strip(), "a field of the definition is empty: fill in tool, source and difference"

    def test_some_request_has_a_value(self) -> None:
        read = self._read(self.batch())
        assert read.requests > 0 and read.tokens > 0, (
            f"{read.requests} requests and {read.tokens} tokens were read from a run that has both: count its good requests"
        )
        assert np.isfinite(read.ttft_ns).any(), (
            "no request has a finite ttft_ns, and some of the run have one: NaN is for those without"
        )
        assert read.begin_ns < read.end_ns, (
            f"it begins at {read.begin_ns} and ends at {read.end_ns}: the end is behind the beginning"
        )

    def test_weights_are_as_many_as_the_values(self) -> None:
        read = self._read(self.batch())
        for values, weights in ((read.itl_ns, read.itl_weights), (read.tpot_ns, read.tpot_weights)):
            assert weights is None or len(weights) == len(values), (
                f"{len(weights or ())} weights stand for {len(values)} values: give one for each, or None"
            )
            assert weights is None or self.definition.quantiles == "inverted_cdf", "only inverted_cdf quantiles have weights"

    def test_the_same_batch_gives_the_same_readings(self) -> None:
        _assert_alike([self._read(self.batch())], [self._read(self.batch())])

    def test_order_does_not_matter(self) -> None:
        backwards = self.batch().take(np.arange(len(self.batch()))[::-1].copy())
        _assert_alike([self._read(self.batch())], [self._read(backwards)])

    def test_parts_add_up_to_the_whole(self) -> None:
        batch = self.batch()
        parts = [self._read(batch.take(rows)) for rows in np.array_split(np.arange(len(batch)), 3)]
        _assert_alike([self._read(batch)], parts)

    def test_of_no_requests_there_is_nothing_to_read(self) -> None:
        read = self._read(self.batch().take(np.empty(0, dtype=np.int64)))
        assert (read.requests, read.tokens, len(read.ttft_ns), len(read.itl_ns), len(read.tpot_ns)) == (0, 0, 0, 0, 0), (
            "something was read from no requests at all: give zero counts and empty arrays"
        )
        assert np.isnan(read.begin_ns) and np.isnan(read.end_ns), (
            unlike((read.begin_ns, read.end_ns), "NaN twice", "without requests nothing begins or ends")
        )

    def test_where_nothing_is_known_nothing_fails(self) -> None:
        read = self._read(absent(self.batch()))
        assert not np.isfinite(read.ttft_ns).any(), "a ttft_ns is finite although no first token is known: use NaN"


def _assert_alike(left: list[Readings], right: list[Readings]) -> None:
    for field in ("ttft_ns", "itl_ns", "tpot_ns"):
        np.testing.assert_array_equal(_sorted(left, field), _sorted(right, field), field)
    for field in ("requests", "tokens"):
        assert sum(getattr(part, field) for part in left) == sum(getattr(part, field) for part in right), (
            f"{field} of the parts don't add up to that of the whole: read each request by itself"
        )
    for field, extreme in (("begin_ns", np.nanmin), ("end_ns", np.nanmax)):
        assert extreme([getattr(part, field) for part in left]) == extreme([getattr(part, field) for part in right]), (
            f"{field} of the parts is not that of the whole: read each request by itself"
        )


def _sorted(readings: list[Readings], field: str) -> Floats:
    """Sorted rows of (value, weight), without absent values."""
    rows = []
    for part in readings:
        values = getattr(part, field)
        weights = None if field == "ttft_ns" else getattr(part, field.replace("_ns", "_weights"))
        rows.append(np.stack([values, np.ones(len(values)) if weights is None else weights], axis=1))
    table = np.concatenate(rows)
    table = table[np.isfinite(table[:, 0])]
    ordered: Floats = table[np.lexsort((table[:, 1], table[:, 0]))]
    return ordered
