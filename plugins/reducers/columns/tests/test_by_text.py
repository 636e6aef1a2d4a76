"""A phase by the values of a text: the same groups for every cut of its requests into batches and reducers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec
import numpy as np
import pytest
from aiperf.sdk.columns import Column, Floats, RecordBatch
from aiperf.sdk.metric import Metric, MetricDeclaration, Needs, PluginFold, RunMetric, Totals, Unit
from aiperf.sdk.summary import GroupSummary, Interval, Result
from aiperf_reducer_columns.statistics import by_text
from aiperf_reducer_columns.statistics.by_text import ByText, texts_of
from aiperf_reducer_columns.statistics.catalogue import Catalogue, Offer
from aiperf_reducer_columns.statistics.fold import Samples
from aiperf_reducer_columns.statistics.grouped import Grouped
from aiperf_reducer_columns.statistics.pipeline import Pipeline
from aiperf_reducer_columns.statistics.text_groups import TextGroups
from aiperf_testing.batches import sample_batch
from aiperf_testing.plans import sample_plan, sample_ref


class Latency(Metric):
    tag, title, unit = "latency", "Latency", Unit.NANOSECONDS

    def column(self, batch: RecordBatch) -> Column:
        return batch["last_token_ns"] - batch["started_ns"]


class Tokens(Metric):
    tag, title, unit = "tokens", "Tokens", Unit.TOKENS

    def column(self, batch: RecordBatch) -> Column:
        return batch["output_tokens"]


class Rate(RunMetric):
    tag, title, unit, needs, by = "rate", "Rate", Unit.COUNT, ("tokens",), ("task",)

    def number(self, run: Totals) -> float | None:
        total = run.sum("tokens")
        return None if total is None or run.duration_s is None else total / run.duration_s


class Total(PluginFold):
    def __init__(self, values: list[float] | None = None) -> None:
        self.values = values or []

    def add(self, values: Floats) -> None:
        self.values += values.tolist()

    def merge(self, other: Self) -> None:
        self.values += other.values

    def dump(self) -> bytes:
        return msgspec.msgpack.encode(self.values)

    @classmethod
    def load(cls, data: bytes) -> Self:
        return cls(msgspec.msgpack.decode(data))

    def interval(self) -> Interval:
        total = math.fsum(self.values)
        return Interval(total - 1, total + 1, 0.9)

    def result(self) -> float:
        return math.fsum(self.values)


class Spent(Tokens):
    tag, title, display, fold, by = "spent.all", "Spent", Unit.TOKENS, Total, ("task",)
    group_tags = {"task": "spent.task.{key}"}


def listing(*more: MetricDeclaration) -> Catalogue:
    metrics = (Latency(), Tokens(), Rate(), Spent(), *more)
    return Catalogue([Offer(sample_ref("metrics"), metric) for metric in metrics], Needs.NOTHING)


def folded(path: Path, cut: Sequence[Sequence[RecordBatch]], tags: frozenset[str] | None) -> list[Pipeline]:
    made = []
    for number, batches in enumerate(cut):
        pipeline = Pipeline(listing(), path, f"{len(cut)}-{number}", {0: [ByText("task", tags)]})
        for batch in batches:
            pipeline.feed(pipeline.score(batch))
        made.append(pipeline)
    return made


def groups(
    pipelines: Sequence[Pipeline], catalogue: Catalogue | None = None
) -> tuple[list[GroupSummary], dict[str, Result], list[str]]:
    states = [(stored(each.groups()), each.dump_plugin_folds()) for each in pipelines]
    found = TextGroups(catalogue or listing(), states)
    results = found.results(sample_plan(Path()).load.phases[0], 0.5)
    return found.made, results, found.warnings


def stored(of_reducer: list[Grouped]) -> list[Grouped]:
    """As they come from the file of a reducer."""
    data = msgspec.msgpack.encode(of_reducer, enc_hook=Samples.dump)
    return msgspec.msgpack.Decoder(list[Grouped], dec_hook=lambda _, state: Samples.load(state)).decode(data)


def cut(batch: RecordBatch, reducers: int, sizes: int) -> list[list[RecordBatch]]:
    """The batch in pieces of *sizes*, backwards, dealt to the reducers."""
    rows = np.arange(len(batch))[::-1]
    pieces = [batch.take(rows[at : at + sizes]) for at in range(0, len(rows), sizes)]
    return [pieces[number::reducers] for number in range(reducers)]


def shown(made: Sequence[GroupSummary]) -> list[object]:
    return [msgspec.to_builtins(group) for group in made]


def test_each_task_has_its_requests_and_results(tmp_path: Path) -> None:
    batch, metrics = sample_batch(60), texts_of(listing())["task"]
    assert metrics.shown == {"rate", "spent.all"} and metrics.folded == {"rate", "spent.all", "tokens"}
    made, results, warnings = groups(folded(tmp_path, [[batch]], metrics.folded))
    assert warnings == [] and [group.key for group in made] == ["task-0", "task-1", "task-2"]
    tasks, tokens = np.array(batch.texts["task"]), np.where(batch.valid, batch["output_tokens"], np.nan)
    for group in made:
        own = tasks == group.key
        total = float(np.nansum(tokens[own]))
        assert set(group.results) == {"rate", "spent.all"}
        assert group.results["rate"].stats == {"avg": pytest.approx(total / 0.5)}
        assert group.results["spent.all"].stats == {"avg": total}
        assert group.results["spent.all"].interval == Interval(total - 1, total + 1, 0.9)
        assert (group.text, group.phase, group.started) == ("task", 0, int(own.sum()))
        assert sum(group.outcomes.values()) == int(own.sum())
        assert sum(error.count for error in group.errors) == int((own & ~batch.valid).sum())
        tagged = results[f"spent.task.{group.key}"]
        assert (tagged.stats, tagged.title, tagged.order) == ({"avg": total}, f"Spent, {group.key}", None)


@pytest.mark.parametrize("tags", [None, texts_of(listing())["task"].folded])
def test_the_cut_into_batches_and_reducers_changes_no_group(tmp_path: Path, tags: frozenset[str] | None) -> None:
    batch = sample_batch(90)
    whole = groups(folded(tmp_path, [[batch]], tags))
    for number, (reducers, sizes) in enumerate([(1, 7), (2, 11), (3, 20)]):
        (tmp_path / str(number)).mkdir()
        again = groups(folded(tmp_path / str(number), cut(batch, reducers, sizes), tags))
        assert shown(again[0]) == shown(whole[0]) and again[1:] == whole[1:]


def test_further_keys_are_told_and_the_first_by_name_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_text, "MOST_KEYS", 5)
    monkeypatch.setattr("aiperf_reducer_columns.statistics.text_groups.MOST_KEYS", 5)
    batch = sample_batch(40)
    keys = [f"k{(i * 7) % 13:02}" for i in range(40)]
    batch.texts["task"] = keys
    counts = Counter(keys)
    for number, (reducers, sizes) in enumerate([(1, 40), (1, 1), (2, 3), (3, 1)]):
        (tmp_path / str(number)).mkdir()
        pipelines = folded(tmp_path / str(number), cut(batch, reducers, sizes), None)
        assert all(len(each.keys) <= 5 for pipeline in pipelines for each in pipeline.groups())
        made, _, warnings = groups(pipelines)
        assert [(group.key, group.started) for group in made] == [(f"k{i:02}", counts[f"k{i:02}"]) for i in range(5)]
        totals = {group.key: group.results["spent.all"].stats["avg"] for group in made}
        tokens = np.where(batch.valid, batch["output_tokens"], 0)
        for key, total in totals.items():
            assert total == pytest.approx(float(tokens[np.array(keys) == key].sum()))
        assert warnings == [
            "task has more than 5 values in phase profiling: results by task are of the first by name"
        ]


def test_a_text_that_no_batch_has_makes_no_group(tmp_path: Path) -> None:
    batch = sample_batch(8)
    del batch.texts["task"]
    assert groups(folded(tmp_path, [[batch]], None)) == ([], {}, [])


def test_where_no_metric_asks_nothing_is_grouped() -> None:
    plain = Catalogue([Offer(sample_ref("metrics"), Latency())], Needs.NOTHING)
    assert texts_of(plain) == {}


class Wrong(Total):
    ends = (math.nan, 1.0, 0.95)

    def interval(self) -> Interval:
        return Interval(*self.ends)


@pytest.mark.parametrize("ends", [(math.nan, 1.0, 0.95), (2.0, 1.0, 0.95), (0.0, 1.0, 1.0)])
def test_an_impossible_interval_switches_its_metric_off(ends: tuple[float, float, float]) -> None:
    from aiperf_reducer_columns.statistics.plugin_folds import FoldResult

    fold = Wrong([1.0])
    fold.ends = ends
    with pytest.raises(ValueError, match=r"its fold's interval from .* is impossible"):
        FoldResult(fold.result(), 1, interval=fold.interval())
