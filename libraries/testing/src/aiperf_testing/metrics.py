"""The contracts of metrics: a request's value doesn't depend on the other requests of its batch."""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import numpy as np
import pytest
from aiperf.sdk.columns import Column, Floats, Ragged, RecordBatch

from aiperf.sdk.metric import (  # isort: skip
    Aggregation, Analysis, Metric, MetricDeclaration, MetricFamily, Needs, PerRequestMetric, PluginFold, PluginUnit, RunMetric,
    Unit, unit_size,
)  # fmt: skip
from aiperf.sdk.raw_values import RawValueCollector, RawValues
from aiperf.sdk.statistics import percentile
from aiperf.sdk.summary import Result
from aiperf.sdk.trees import PlannedTree

from aiperf_testing.batches import absent, assert_same, columns_of, sample_batch, taken
from aiperf_testing.findings import shown, unlike
from aiperf_testing.made_up_totals import Known
from aiperf_testing.pipeline import FoldResult


class MetricContract:
    """Subclass with a metric, and the metrics that it needs::

        class TestMineKeepsTheContract(MetricContract):
            metric = Mine()
            needed = (RequestLatency(),)

    A name in ``needs`` that no metric of *needed* has is a number of answers, if the metric requires ``Needs.NUMBERS``.
    """

    metric: ClassVar[Metric]
    needed: ClassVar[tuple[Metric, ...]] = ()

    def batch(self) -> RecordBatch:
        """The requests of the tests."""
        return sample_batch(numbers=_numbers(self.metric, self.needed))

    def column(self, batch: RecordBatch) -> Column:
        return columns_of((*self.needed, self.metric), batch)[self.metric.tag]

    def test_it_is_named_as_files_and_options_name_it(self) -> None:
        _check_declared(self.metric)

    def test_one_that_looks_at_request_after_request_says_so(self) -> None:
        if isinstance(self.metric, PerRequestMetric):
            return
        if self._reads_texts():  # texts have no columns
            return
        few, many = self.batch().take(np.arange(4)), self.batch().take(np.tile(np.arange(4), 25))
        more = self._lines(many) - self._lines(few)
        assert more < len(many) - len(few), "its column loops in Python: derive from PerRequestMetric, or use numpy"

    def _reads_texts(self) -> bool:
        batch = self.batch()
        try:
            bare = self.column(RecordBatch(batch.columns, batch.valid))
            assert_same(bare, self.column(batch), "")
        except (KeyError, AssertionError):
            return True
        return False

    def _lines(self, batch: RecordBatch) -> int:
        """The number of executed lines of Python."""
        values = columns_of(self.needed, batch)
        viewed = batch.viewed({tag: values[tag] for tag in self.metric.needs if tag in values}.__getitem__)
        lines = 0

        def trace(frame: FrameType, event: str, _: object) -> Any:
            nonlocal lines
            lines += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            self.metric.column(viewed)
        finally:
            sys.settrace(before)
        return lines

    def test_what_it_needs_is_what_it_reads(self) -> None:
        assert set(self.metric.needs) <= {*(metric.tag for metric in self.needed), *_numbers(self.metric, self.needed)}, (
            f"needs names {shown(self.metric.needs)}, and only numbers of answers, or of needed metrics, can be read"
        )

    def test_it_rises_and_falls_with_what_it_says(self) -> None:
        batch, metric = self.batch(), self.metric
        values = columns_of(self.needed, batch)
        viewed = batch.viewed({tag: values[tag] for tag in metric.needs if tag in values}.__getitem__)
        for name in (*metric.rises, *metric.falls):
            known = viewed.column(name)
            assert not isinstance(known, Ragged), f"{name} is a list per request: define bounds(batch)"
            before, after = metric.column(viewed), metric.column(viewed.replaced({name: known * 1.01}))
            assert not isinstance(before, Ragged) and not isinstance(after, Ragged), "lists per request: define bounds(batch)"
            more = (after - before) * (-1 if name in metric.falls else 1)
            both = np.isfinite(before) & np.isfinite(after)
            assert (more[both] >= 0).all(), f"a greater {name} makes values {'greater' if name in metric.falls else 'smaller'}"

    def test_every_request_has_its_place(self) -> None:
        batch = self.batch()
        column = self.column(batch)
        assert len(column) == len(batch), (
            unlike(len(column), len(batch), "give a value for each request, NaN where it has none")
        )
        if isinstance(column, Ragged):
            assert len(column.values) == len(column.at_ns) == column.offsets[-1] - column.offsets[0], (
                "values, times and offsets of the Ragged column disagree: the last offset is the number of values"
            )
        else:
            assert np.asarray(column, dtype=np.float64).shape == (len(batch),), (
                unlike(np.asarray(column, dtype=np.float64).shape, (len(batch),), "give one number for each request")
            )

    def test_some_request_has_a_value(self) -> None:
        column = self.column(self.batch())
        values = column.values if isinstance(column, Ragged) else column
        assert np.isfinite(values).any(), "no request of the test batch has a value: override batch()"

    def test_no_value_is_infinite(self) -> None:
        for batch in (self.batch(), absent(self.batch())):
            column = self.column(batch)
            assert not np.isinf(column.values if isinstance(column, Ragged) else column).any(), (
                "a value is infinite: give NaN where there is none, for example behind a division by 0"
            )

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
        assert len(self.column(self.batch().take(np.empty(0, dtype=np.int64)))) == 0, (
            "an empty batch gives values: give an empty column"
        )

    def test_where_nothing_is_known_nothing_fails(self) -> None:
        batch = absent(self.batch())
        whole = self.column(batch)
        assert len(whole) == len(batch), (
            unlike(len(whole), len(batch), "give NaN for what is not known, and a value for each request")
        )
        for rows in np.array_split(np.arange(len(batch)), 2):
            assert_same(self.column(batch.take(rows)), taken(whole, rows), "half of a batch without known values")

    def _values(self) -> Floats:
        """The values of the test batch that a fold of the metric's own takes."""
        if isinstance(self.metric.fold, Aggregation):
            pytest.skip("this metric has no fold of its own")
        column = self.column(self.batch())
        flat = column.values if isinstance(column, Ragged) else column
        return flat[np.isfinite(flat)]

    def _fold(self, values: Floats) -> PluginFold:
        """A fold of the values, one after the other, that was dumped and loaded."""
        assert not isinstance(self.metric.fold, Aggregation), (
            unlike(self.metric.fold, "a class of Fold", "an Aggregation has no fold of its own")
        )
        fold = self.metric.fold()
        for at in range(len(values)):
            fold.add(values[at : at + 1])
        return self.metric.fold.load(fold.dump())

    def test_its_fold_survives_dump_and_load(self) -> None:
        values = self._values()
        assert not isinstance(self.metric.fold, Aggregation), (
            unlike(self.metric.fold, "a class of Fold", "an Aggregation has no fold of its own")
        )
        fold = self.metric.fold()
        fold.add(values)
        loaded = self.metric.fold.load(fold.dump())
        assert _alike(loaded, fold), "load(dump()) gives a fold with another result"
        fold.add(values[:1])
        loaded.add(values[:1])
        assert _alike(loaded, fold), "a loaded fold takes further values in another way"

    def test_its_fold_does_not_depend_on_the_order_of_values(self) -> None:
        values = self._values()
        assert _alike(self._fold(values[::-1]), self._fold(values)), "the order of values changes its fold's result"

    def test_its_fold_does_not_depend_on_how_it_is_merged(self) -> None:
        values = self._values()
        cuts = (values[:1], values[1 : len(values) // 2], values[len(values) // 2 :])
        whole = self._fold(values)
        for order in itertools.permutations(range(3)):
            left, right = ([self._fold(cuts[at]) for at in order] for _ in range(2))
            left[0].merge(left[1])
            left[0].merge(left[2])
            right[1].merge(right[2])
            right[0].merge(right[1])
            assert _alike(left[0], right[0]), "merge of its fold is not associative: (a+b)+c is not a+(b+c)"
            assert _alike(left[0], whole), "merged parts of its fold give another result than the whole"

    def test_the_result_of_its_fold_can_be_shown(self) -> None:
        fold = self._fold(self._values())
        stats = FoldResult(fold.result(), 1, interval=fold.interval()).statistics(self.metric.scale) or {}
        assert stats or fold.counts(), "its fold has no result for the test batch"
        assert all(map(math.isfinite, stats.values())), "its fold has no result for the test batch"
        kernels = not (self.metric.adjusted or self.metric.since is not None or self.metric.arriving)
        assert kernels, "adjusted, since and arriving need the kernel's statistics, not a fold of its own"

    def test_the_batch_is_left_as_it_was(self) -> None:
        batch, before = self.batch(), self.batch()
        self.column(batch)
        assert_same(batch.columns, before.columns, "the metric changed the batch")


def _numbers(metric: MetricDeclaration, needed: Iterable[Metric]) -> list[str]:
    """The numbers of answers that a metric needs."""
    known = {each.tag for each in needed}
    return [name for name in metric.needs if name not in known] if Needs.NUMBERS in metric.requires else []


def _alike(fold: PluginFold, other: PluginFold) -> bool:
    """Whether two folds have one result, but for rounding."""
    stats, others = ({**(FoldResult(each.result(), 1).statistics(1.0) or {}), **_ends(each)} for each in (fold, other))
    return fold.counts() == other.counts() and stats.keys() == others.keys() and all(
        math.isclose(value, others[name], rel_tol=1e-9, abs_tol=1e-12) for name, value in stats.items()
    )


def _ends(fold: PluginFold) -> dict[str, float]:
    """The interval's ends and level."""
    known = fold.interval()
    return {} if known is None else {"low": known.low, "high": known.high, "level": known.level}


def _check_declared(metric: MetricDeclaration) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*", metric.tag), (
        unlike(metric.tag, "lower-case letters, digits and _, with dots between words", "files and options name it so")
    )
    assert metric.title, "the metric has no title: reports show it"
    assert not isinstance(metric.by, str) and all(metric.by), (
        unlike(metric.by, "a tuple of names of texts", 'by = ("task",) gives the metric for each task, too')
    )
    for text, tag in metric.group_tags.items():
        assert text in metric.by and "{key}" in tag, (
            unlike(tag, "a tag with {key}, of a text in by", "the results of a group stand among the phase's under it")
        )
    for unit in (metric.unit, metric.shown):
        assert isinstance(unit, Unit | PluginUnit), (
            unlike(unit, "a Unit or a PluginUnit", "for example Unit.COUNT or PluginUnit('J', 'energy')")
        )
        kernels = [own for own in Unit if own.value == unit.value]
        assert [unit_size(own) for own in kernels] in ([], [unit_size(unit)]), f"the kernel's {unit.value} is another unit"
    assert metric.scale > 0, unlike(metric.scale, "more than 0", "values are multiplied with it for the display")


class RunMetricContract:
    """Subclass with a metric of the whole run::

        class TestMineKeepsTheContract(RunMetricContract):
            metric = Mine()
    """

    metric: ClassVar[RunMetric]

    def test_it_is_named_as_files_and_options_name_it(self) -> None:
        _check_declared(self.metric)

    @pytest.mark.parametrize("number", [None, 0.0, 3.0])
    def test_any_run_has_a_number_or_none(self, number: float | None) -> None:
        value = self.metric.number(Known(number))
        assert value is None or math.isfinite(value), (
            unlike(value, "a finite number or None", "None is for a run that has no such number")
        )

    def test_a_run_of_which_all_is_known_has_one(self) -> None:
        assert any(self.metric.number(Known(number)) is not None for number in (3.0, 0.0)), (
            "a run of which all is known has no number: number() must not give None for it"
        )

    def test_the_same_run_gives_the_same_number(self) -> None:
        assert self.metric.number(Known(3.0)) == self.metric.number(Known(3.0)), (
            "the same run gives another number: no clock, no chance"
        )

    def test_what_it_reads_is_what_it_needs(self) -> None:
        for number in (None, 0.0, 3.0):
            run = Known(number)
            self.metric.number(run)
            assert {tag.removeprefix("adj_") for tag in run.asked} <= set(self.metric.needs), (
                f"it reads {shown(sorted(run.asked))}, and needs names {shown(self.metric.needs)}: name all that it reads"
            )


class AnalysisContract:
    """Subclass with an analysis, and the metrics that it needs::

        class TestMineKeepsTheContract(AnalysisContract):
            metric = Mine()
            needed = (RequestLatency(),)
    """

    metric: ClassVar[Analysis]
    needed: ClassVar[tuple[Metric, ...]] = ()

    def batch(self) -> RecordBatch:
        """The requests of the tests."""
        return sample_batch(numbers=_numbers(self.metric, self.needed))

    def tree(self, entry: int) -> PlannedTree:
        """What an entry of the data set plans, for an analysis of trees, whose batch has TREE_COLUMNS."""
        return PlannedTree()

    def _results(self, directory: Path, *batches: RecordBatch, percentiles: Sequence[float] = ()) -> list[list[Result]]:
        """Results of the batches, each from its own reducer: for the run, its first half, and an empty window."""
        directory.mkdir(exist_ok=True)
        states = []
        for number, batch in enumerate(batches):
            keeper = RawValueCollector(directory / f"{number}", self.metric.keeps, self.metric.lists)
            keeper.add(batch, columns_of(self.needed, batch))
            states.append(keeper.dump())
        end = float(np.nanmax(self.batch()["ended_ns"]))
        windows = self.metric.results(RawValues(states, percentiles, self.tree), self._windows(end))
        return [sorted(results, key=lambda result: result.tag) for results in windows]

    def _windows(self, end: float) -> Sequence[tuple[float, float]]:
        return ((0.0, end), (0.0, end / 2), (2 * end, 3 * end))

    def test_it_is_named_as_files_and_options_name_it(self) -> None:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", self.metric.tag), (
            unlike(self.metric.tag, "lower-case letters, digits and _", "files and options name it so")
        )

    def test_each_part_of_the_run_has_its_results(self, tmp_path: Path) -> None:
        parts = self._results(tmp_path, self.batch())
        assert len(parts) == 3, unlike(len(parts), 3, "give results for warmup, profiling and each slice")
        assert parts[0], "the test batch gives no results: override batch()"
        assert {*self.metric.gives} <= {result.tag for result in parts[0]}, "it gives other results than it says"
        for results in parts:
            assert len({result.tag for result in results}) == len(results), "two results have one tag: each tag stands once"
            for result in results:
                assert result.title and result.unit, f"{result.tag} lacks a title or a unit: reports show both"
                assert all(math.isfinite(value) for value in result.stats.values()), (
                    f"a statistic of {result.tag} is infinite or NaN: leave out what has no value"
                )

    def test_how_many_reducers_there_were_and_in_which_order_does_not_matter(self, tmp_path: Path) -> None:
        batch = self.batch()
        parts = [batch.take(rows) for rows in np.array_split(np.arange(len(batch)), 3)]
        whole = self._results(tmp_path / "whole", batch)
        assert whole == self._results(tmp_path / "again", batch), "the same batches give other results: no clock, no chance"
        assert whole == self._results(tmp_path / "parts", *reversed(parts)), (
            "results depend on the order or number of the parts: fold with sums, minima and the like"
        )

    def test_percentiles_that_the_user_asks_for_stand_beside_its_own(self, tmp_path: Path) -> None:
        usual = self._results(tmp_path / "usual", self.batch())
        more = self._results(tmp_path / "more", self.batch(), percentiles=(99.9,))
        for result, other in zip(itertools.chain(*usual), itertools.chain(*more), strict=True):
            spread = any(percentile(name) is not None for name in result.stats)
            assert other.stats.keys() - result.stats.keys() == ({"p99.9"} if spread else set()), (
                f"{result.tag} has percentiles, and not the p99.9 that was asked for: add those in kept.percentiles"
            )
            assert result.stats.items() <= other.stats.items(), f"p99.9 changes other statistics of {result.tag}: only add it"

    def test_where_nothing_is_known_nothing_fails(self, tmp_path: Path) -> None:
        self._results(tmp_path / "absent", absent(self.batch()))
        self._results(tmp_path / "empty", self.batch().take(np.empty(0, dtype=np.int64)))


class MetricFamilyContract:
    """Subclass with a family whose options request metrics::

        class TestMineKeepsTheContract(MetricFamilyContract):
            family = Mine(options)

    plugin_options: the other metrics of the run by tag.
    """

    family: ClassVar[MetricFamily]
    plugin_options: ClassVar[dict[str, MetricDeclaration]] = {}

    def _given(self) -> list[MetricDeclaration]:
        return list(self.family.metrics(self.plugin_options, {}))

    def test_each_metric_it_gives_is_one(self) -> None:
        given = self._given()
        for metric in given:
            assert isinstance(metric, Metric | RunMetric | Analysis), (
                unlike(metric, "Metric, RunMetric or Analysis", "give objects of these")
            )
            _check_declared(metric)
        assert len({metric.tag for metric in given}) == len(given), (
            "two metrics of the family have one tag: each tag stands once"
        )

    def test_asked_again_it_gives_the_same(self) -> None:
        assert [metric.tag for metric in self._given()] == [metric.tag for metric in self._given()], (
            "asked again it gives others: metrics() must depend on its arguments alone"
        )

    def test_what_it_needs_is_in_the_run(self) -> None:
        given = self._given()
        known = [*self.plugin_options.values(), *given]
        there = {*self.plugin_options, *(metric.tag for metric in given)}
        there |= {tag for metric in known if isinstance(metric, Analysis) for tag in metric.gives}
        assert {tag for metric in given for tag in metric.needs} <= there, (
            f"its metrics need {shown({tag for metric in given for tag in metric.needs} - there)}, which no run has"
        )
