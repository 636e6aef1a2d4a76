"""What plugins add to metrics: numbers of answers and units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf import Column, ConfigError, Delta, Metric, Needs, RecordBatch, Unit
from aiperf.reduce.batches import stored_batches
from aiperf.reduce.reducer import Reducer
from aiperf.report.report import report, write_summary
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.metric import MetricDeclaration, PluginUnit, RunMetric
from aiperf.sdk.summary import Summary
from aiperf.statistics.catalogue import Catalogue, Offer, catalogue
from aiperf.testing import EndpointContract, MetricContract
from aiperf.testing.journals import CLOCK, Plain, Recording, event, plan_for
from aiperf.testing.plans import sample_ref
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
    Reducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
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
