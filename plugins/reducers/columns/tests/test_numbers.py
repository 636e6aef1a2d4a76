"""What plugins add to metrics: numbers of answers, units, folds, and metrics of analyses and telemetry."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
import pytest
from aiperf import Column, ConfigError, Delta, Metric, Needs, RecordBatch, Unit
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.metric import Analysis, MetricDeclaration, PluginFold, PluginUnit, RunMetric, Totals
from aiperf.sdk.summary import Result, SeriesSummary, Summary
from aiperf.testing import EndpointContract, MetricContract, sample_batch
from aiperf_reducer_columns.reduce.batches import stored_batches
from aiperf_reducer_columns.reduce.reducer import ShardReducer
from aiperf_reducer_columns.report.report import report, write_summary
from aiperf_reducer_columns.statistics.catalogue import Catalogue, Offer, catalogue
from aiperf_reducer_columns.statistics.grouped import BySlice
from aiperf_reducer_columns.statistics.pipeline import Pipeline
from aiperf_reducer_columns.statistics.plugin_folds import MergedFolds
from aiperf_reducer_columns.statistics.totals import PhaseTotals
from aiperf_testing.journals import CLOCK, Plain, Recording, event, plan_for
from aiperf_testing.plans import sample_ref
from test_conformance import verdicts

MS = 1_000_000
JOULES, KILOJOULES = PluginUnit("J", "energy"), PluginUnit("kJ", "energy", 1000.0)


class Metered(Plain):
    numbers = {"joules": JOULES, "items": PluginUnit("vectors")}


class Loose(Metered):
    """Whose number is a text where it isn't 7."""

    def decode(self, event: bytes) -> Delta | None:
        text = msgspec.json.decode(event)["text"]
        return Delta(text, extra={"joules": 7.0 if text == "7" else text})


class Energy(Metric):
    tag, title, unit, display = "energy", "Energy", JOULES, KILOJOULES
    needs, requires = ("joules",), Needs.NUMBERS

    def column(self, batch: RecordBatch) -> Column:
        return batch["joules"]


class Vectors(Metric):
    tag, title, unit = "items", "Vectors", PluginUnit("vectors")
    needs, requires = ("items",), Needs.NUMBERS

    def column(self, batch: RecordBatch) -> Column:
        return batch["items"]


def ref(category: str, plugin: type) -> PluginRef:
    return sample_ref(category, f"{__name__}:{plugin.__name__}")


def answers(directory: Path, *streams: tuple[dict[str, Any], ...], **changes: Any) -> Recording:
    """A run whose answers have these deltas."""
    changes = {"endpoint": ref("endpoints", Metered), "metrics": (ref("metrics", Energy), ref("metrics", Vectors)), **changes}
    made = Recording(directory, **changes)
    for request, deltas in enumerate(streams):
        made.sent(request, (20 * request + 1) * MS)
        for at, delta in enumerate(deltas):
            made.read(request, (20 * request + 2 + at) * MS, event(**delta))
        made.done(request, (20 * request + 15) * MS)
    made.flush(900 * MS)
    return made


def summed(made: Recording) -> Summary:
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    made.ended()
    write_summary(made.journal)
    return msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)


def test_the_last_of_a_number_counts_and_items_are_summed(tmp_path: Path) -> None:
    made = answers(
        tmp_path,
        ({"text": "a", "items": 2, "extra": {"joules": 500.0}}, {"extra": {"joules": 1500}}, {"text": "b", "items": 1}),
        ({"text": "no number"},),
        ({"text": "a", "extra": {"joules": 2500.0}}, {"extra": {}}),
    )
    done = summed(made)
    assert done.results["energy"].unit == "kJ"
    assert {name: done.results["energy"].stats[name] for name in ("min", "max", "sum", "count")} == {
        "min": 1.5, "max": 2.5, "sum": 4.0, "count": 2,
    }  # fmt: skip
    assert done.results["items"].unit == "vectors" and done.results["items"].stats["sum"] == 3
    assert done.warnings == ()
    again, _, _ = report(tmp_path)
    assert again.results == done.results, "the columns have the numbers"


def test_a_number_that_is_not_declared_is_one_warning(tmp_path: Path) -> None:
    loud = {"text": "a", "extra": {"joules": 1.0, "volts": 230.0}}
    done = summed(answers(tmp_path, (loud, loud), (loud,)))
    assert done.warnings == (
        "the plugin endpoints:metered of acme 1.2: answers have the number 'volts', which its numbers don't declare;"
        " it is ignored",
    )
    assert done.results["energy"].stats["count"] == 2 and done.valid == 2


def test_what_is_no_number_is_absent_and_one_warning(tmp_path: Path) -> None:
    texts = [({"text": text},) for text in ("lots", "more", "7")]
    done = summed(answers(tmp_path, *texts, endpoint=ref("endpoints", Loose)))
    assert done.warnings == (
        "the plugin endpoints:loose of acme 1.2: the number 'joules' of an answer is no number; it is absent",
    )
    assert done.results["energy"].stats["count"] == 1 and done.valid == 3


def test_an_endpoint_without_numbers_stores_none(tmp_path: Path) -> None:
    made = answers(tmp_path, ({"text": "a"},), endpoint=ref("endpoints", Plain))
    done = summed(made)
    assert [stored.further for stored in stored_batches(made.journal)] == [{}]
    assert done.warnings == (), "metrics of numbers don't apply, and nothing is said of them"
    assert "energy" not in done.results


def offers(*metrics: MetricDeclaration, numbers: Any = None, has: Needs = Needs.NUMBERS) -> Catalogue:
    """The metrics, each of a package of its own."""
    refs = [PluginRef("metrics", f"m{i}", "acme:Metric", f"acme-{i}", "1") for i in range(len(metrics))]
    return Catalogue(map(Offer, refs, metrics), has, numbers=numbers)


def test_a_metric_of_a_number_that_no_answer_has_is_left_out_silently() -> None:
    assert [*offers(Energy(), numbers={"joules": JOULES}).metrics] == ["energy"]
    found = offers(Energy(), numbers={"volts": PluginUnit("V")})
    assert (found.metrics, found.warnings, found.unfit) == ({}, [], {"energy": Needs.NUMBERS})


def measured(tag: str, unit: Any, display: Any = None) -> Metric:
    metric = Energy()
    metric.tag, metric.unit, metric.display, metric.needs = tag, unit, display, ()
    return metric


def test_units_of_one_dimension_convert_into_each_other() -> None:
    minutes = PluginUnit("min", "time", 6e10)
    assert minutes.per(Unit.SECONDS) == 60 and Unit.SECONDS.per(minutes) == pytest.approx(1 / 60)
    assert KILOJOULES.per(JOULES) == 1000 and PluginUnit("frames").per(PluginUnit("frames")) == 1
    for unit, other in ((JOULES, minutes), (PluginUnit("frames"), PluginUnit("images")), (Unit.TOKENS, JOULES)):
        with pytest.raises(ValueError, match=f"{unit.value} can't be shown as {other.value}"):
            unit.per(other)
    with pytest.raises(ValueError, match="needs a name and a scale above 0"):
        PluginUnit("kJ", "energy", 0.0)


def test_a_unit_with_two_meanings_is_refused_by_package_name() -> None:
    calories = PluginUnit("J", "energy", 4.184)
    found = offers(measured("a", JOULES), measured("b", calories), measured("c", KILOJOULES))
    assert [*found.metrics] == ["c"]
    assert found.warnings == ["the unit J has different meanings in acme-0 1 and acme-1 1; left out: a and b"]
    found = offers(measured("a", JOULES), measured("b", calories), numbers={"joules": JOULES})
    assert [*found.metrics] == ["a"], "the endpoint's unit stands"
    found = offers(measured("a", PluginUnit("ms", "length")), measured("b", PluginUnit("tokens")))
    assert [*found.metrics] == ["b"]
    assert found.warnings == ["the unit ms has different meanings in aiperf and acme-0 1; left out: a"]


def test_the_greater_rank_keeps_its_unit() -> None:
    refs = [PluginRef("metrics", f"m{i}", "acme:Metric", f"acme-{i}", "1") for i in range(2)]
    metrics = measured("a", JOULES), measured("b", PluginUnit("J", "energy", 4.184))
    found = Catalogue([Offer(refs[i], metrics[i], (i, 0, 0)) for i in range(2)], Needs.NUMBERS)
    assert [*found.metrics] == ["b"] and len(found.warnings) == 1


@pytest.mark.parametrize(
    ("numbers", "fault"),
    [
        ({"output_tokens": Unit.TOKENS}, "its number 'output_tokens' is a column of aiperf"),
        ({"Joules": JOULES}, "its number 'Joules' must have a name such as joules"),
        ({"joules": "J"}, "a Unit or PluginUnit, not 'J'"),
        ({"joules": PluginUnit("ms", "energy")}, "the unit ms of its number 'joules' has another meaning"),
    ],
)
def test_impossible_numbers_are_refused_before_load(tmp_path: Path, numbers: Any, fault: str) -> None:
    class Impossible(Plain):
        pass

    Impossible.numbers = numbers
    with pytest.raises(ConfigError, match=fault):
        catalogue(plan_for(tmp_path), Impossible)


class Late(RunMetric):
    tag, title, unit = "late", "Late", Unit.COUNT


def test_a_metric_of_requests_cannot_need_one_of_the_run() -> None:
    eager = measured("eager", Unit.COUNT)
    eager.needs, eager.requires = ("late",), Needs.NOTHING
    found = offers(eager, Late())
    assert [*found.metrics] == ["late"]
    assert found.warnings == ["metric eager of acme-0 1 is left out: it needs late, which is known only at the end of the run"]


class Faithful(EndpointContract):
    endpoint = Metered()
    transcript = (b'{"text":"a","items":1,"extra":{"joules":1.0}}', b'{"text":"b","items":2,"extra":{"joules":3.5}}')
    answer = "ab"
    numbers = {"joules": 3.5, "items": 3.0}


@pytest.mark.parametrize(
    ("changes", "caught"),
    [
        ({}, False),
        ({"numbers": {"joules": 4.5, "items": 3.0}}, True),
        ({"numbers": {"joules": 3.5}}, True),
        ({"endpoint": Plain()}, True),
        ({"transcript": (b'{"text":"ab"}',), "numbers": None}, True),
    ],
)
def test_the_contract_of_endpoints_checks_numbers(changes: dict[str, Any], caught: bool) -> None:
    failed = verdicts(type("Changed", (Faithful,), changes)())
    assert ("test_the_numbers_of_its_answers_are_declared" in failed) is caught


def test_the_contract_of_metrics_knows_numbers_and_units() -> None:
    assert verdicts(type("Sound", (MetricContract,), {"metric": Energy()})()) == set()
    unsound = type("Unsound", (MetricContract,), {"metric": measured("energy", PluginUnit("ms", "energy"))})
    assert "test_it_is_named_as_files_and_options_name_it" in verdicts(unsound())


class Total(PluginFold):
    """The sum of the values."""

    def __init__(self, total: float = 0.0) -> None:
        self.total = total

    def add(self, values: Any) -> None:
        self.total += float(values.sum())

    def merge(self, other: Total) -> None:
        self.total += other.total

    def dump(self) -> bytes:
        return struct.pack("<d", self.total)

    @classmethod
    def load(cls, data: bytes) -> Self:
        return cls(*struct.unpack("<d", data))

    def result(self) -> Any:
        return {"sum": self.total, "count": 1}


class Wide(Total):
    def result(self) -> Any:
        return {"sum": self.total, "median": 1.0}


class Frail(Total):
    """Fails in one of its methods, each time it is called."""

    method = ""

    def __getattribute__(self, name: str) -> Any:
        if name == type(self).method:
            raise ZeroDivisionError("frail")
        return super().__getattribute__(name)


class InAdd(Frail):
    method = "add"


class InDump(Frail):
    method = "dump"


class InMerge(Frail):
    method = "merge"


class InResult(Frail):
    method = "result"


class Summed(Metric):
    tag, title, unit, display, fold = "summed", "Summed", JOULES, KILOJOULES, Total

    def column(self, batch: RecordBatch) -> Column:
        return batch["output_tokens"]


class After(RunMetric):
    tag, title, unit, needs = "after", "After", Unit.COUNT, ("summed",)

    def number(self, run: Totals) -> float | None:
        return run.sum("summed")


class Gaps(Metric):
    tag, title, unit, fold = "gaps", "Gaps", Unit.NANOSECONDS, Total

    def column(self, batch: RecordBatch) -> Column:
        return batch.lists("gap_ns")


def folded(directory: Path, *metrics: MetricDeclaration, reducers: int = 2) -> tuple[dict[int, dict[str, Any]], dict[str, str]]:
    """The results of the sample batch by slices of 30 ms, each part from its own reducer, and the metrics that failed."""
    listing, batch = offers(*metrics), sample_batch()
    states, off = [], {}
    for index, rows in enumerate(np.array_split(np.arange(len(batch)), reducers)):
        pipeline = Pipeline(listing, directory, f"{index}", {0: [BySlice(30 * MS)]})
        for part in np.array_split(rows, 3):
            pipeline.feed(pipeline.score(batch.take(part)))
        states += pipeline.dump_plugin_folds()
        off |= pipeline.off
    merged = MergedFolds(listing, states)
    whole, slices = merged.results(0), merged.results(0, BySlice.name, 2)
    return {-1: whole.get(0, {}), **slices}, off | merged.off


def test_a_fold_is_merged_over_reducers_and_slices(tmp_path: Path) -> None:
    batch = sample_batch()
    good, gaps = batch.select(batch.valid)["output_tokens"].sum(), batch.select(batch.valid).lists("gap_ns").values.sum()
    for reducers in (1, 2, 3):
        results, off = folded(tmp_path, Summed(), Gaps(), reducers=reducers)
        assert off == {}
        assert (results[-1]["summed"].sum(), results[-1]["gaps"].sum()) == (good, gaps)
        assert results[-1]["summed"].statistics(0.001) == {"sum": good / 1000, "count": 1}
        parts = [part for group, part in results.items() if group >= 0]
        assert len(parts) == 3 and sum(part["summed"].count for part in parts) == results[-1]["summed"].count == 18
        assert sum(part["summed"].sum() for part in parts) == good and sum(part["gaps"].sum() for part in parts) == gaps


@pytest.mark.parametrize("kind", [InAdd, InDump, InMerge, InResult, Wide])
def test_a_fold_that_fails_costs_its_metric_alone_and_is_named_once(tmp_path: Path, kind: type[PluginFold]) -> None:
    broken = Summed()
    broken.fold = kind
    results, off = folded(tmp_path, broken, Gaps())
    assert all("summed" not in part for part in results.values()) and results[-1]["gaps"].count > 0
    assert list(off) == ["summed"] and off["summed"].startswith("metric summed of acme-0 1 is switched off: ")


class Cracked(Summed):
    fold = InResult


def test_a_summary_has_folds_and_lacks_broken_ones(tmp_path: Path) -> None:
    deltas = ({"text": "two words"}, {"text": " more"})
    sound = summed(answers(tmp_path / "sound", deltas, deltas, metrics=(ref("metrics", Summed), ref("metrics", After))))
    assert (sound.results["summed"].unit, sound.results["summed"].stats) == ("kJ", {"sum": 0.006, "count": 1})
    assert sound.results["after"].stats == {"avg": 6.0} and sound.warnings == ()
    cracked = summed(answers(tmp_path / "cracked", deltas, metrics=(ref("metrics", Cracked), ref("metrics", After))))
    assert not cracked.results.keys() & {"summed", "after"} and cracked.valid == 1
    assert cracked.warnings == ("metric summed of acme 1.2 is switched off: ZeroDivisionError: frail",)


class Seen(Analysis):
    tag, title, keeps, gives = "seen", "Seen", ("started_ns",), ("seen_requests",)

    def results(self, kept: Any, windows: Any) -> Any:
        starts = kept.column("started_ns")
        for begin, end in windows:
            count = float(((starts >= begin) & (starts <= end)).sum())
            yield [Result("seen_requests", "Seen Requests", "requests", {"avg": count, "max": count + 1})]


class Double(RunMetric):
    tag, title, unit, needs = "double", "Double", Unit.COUNT, ("seen_requests",)

    def number(self, run: Totals) -> float | None:
        value, most = run.value("seen_requests"), run.statistic("seen_requests", "max")
        return None if value is None or most is None else value + most


class Power(RunMetric):
    tag, title, unit = "power", "Power", PluginUnit("W")

    def number(self, run: Totals) -> float | None:
        series = run.series("bench", "watts", gpu="1")
        return sum(each.stats["avg"] for each in series) if series else None


def test_a_metric_of_the_run_reads_results_of_an_analysis(tmp_path: Path) -> None:
    deltas = ({"text": "a"},)
    done = summed(answers(tmp_path, deltas, deltas, metrics=(ref("metrics", Double), ref("metrics", Seen))))
    assert done.results["double"].stats == {"avg": 5.0} and done.results["seen_requests"].stats["avg"] == 2.0
    alone = offers(Double())
    assert alone.warnings == ["metric double of acme-0 1 is left out: it needs seen_requests, which isn't there"]


def test_a_metric_of_the_run_reads_telemetry_of_its_part() -> None:
    def series(gpu: str, watts: float) -> SeriesSummary:
        return SeriesSummary("bench", 0, "watts", "gauge", "W", {"gpu": gpu, "host": "a"}, "", {"avg": watts})

    known = [series("0", 200.0), series("1", 300.0), series("1", 40.0)]
    listing = offers(Power())
    totals = PhaseTotals(listing, {}, duration_s=1.0, window_s=1.0, valid=1, failed=0, telemetry=lambda: known)
    assert totals.results()["power"].stats == {"avg": 340.0} and totals.warnings == []
    dry = PhaseTotals(listing, {}, duration_s=1.0, window_s=1.0, valid=1, failed=0, telemetry=lambda: known[:1])
    assert dry.results() == {}
    assert dry.warnings == ["metric power of acme-0 1 is absent: there is no telemetry series watts of bench, gpu=1"]


class Newest(Total):
    """Merged, the last one counts."""

    def merge(self, other: Total) -> None:
        self.total = other.total


class First(Total):
    """Keeps the first value."""

    def add(self, values: Any) -> None:
        self.total = self.total or float(values[0])


class Forgetful(Total):
    def dump(self) -> bytes:
        return struct.pack("<d", round(self.total))


class Halving(Total):
    """The mean of two parts, whatever their sizes."""

    def merge(self, other: Total) -> None:
        self.total = (self.total + other.total) / 2


@pytest.mark.parametrize(
    ("fold", "caught"),
    [
        (Total, set()),
        (Newest, {"test_its_fold_does_not_depend_on_how_it_is_merged"}),
        (Halving, {"test_its_fold_does_not_depend_on_how_it_is_merged"}),
        (First, {"test_its_fold_does_not_depend_on_how_it_is_merged", "test_its_fold_does_not_depend_on_the_order_of_values"}),
        (Forgetful, {"test_its_fold_survives_dump_and_load"}),
        (Wide, {"test_the_result_of_its_fold_can_be_shown"}),
    ],
)
def test_the_contract_of_metrics_checks_folds(fold: type[PluginFold], caught: set[str]) -> None:
    metric = Fractions()
    metric.fold = fold
    failed = verdicts(type("Changed", (MetricContract,), {"metric": metric})())
    assert failed >= caught and bool(failed) is bool(caught)


class Fractions(Summed):
    def column(self, batch: RecordBatch) -> Column:
        return batch["output_tokens"] + 0.3


def test_a_fold_of_its_own_excludes_the_kernels_statistics(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, metrics=(ref("metrics", Adjusted), ref("metrics", Foldless)))
    found = catalogue(plan, Plain)
    assert found.metrics == {}
    assert [warning.partition("TypeError: ")[2] for warning in found.warnings] == [
        "adjusted, since and arriving need the kernel's statistics, not a fold of its own",
        "its fold is neither an Aggregation nor a class derived from PluginFold",
    ]


class Adjusted(Summed):
    adjusted = True


class Foldless(Summed):
    fold: Any = dict
