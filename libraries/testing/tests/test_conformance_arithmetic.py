"""The contracts of arithmetic, commands, hooks and definitions: each fault is caught by the test for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aiperf import Metric, RunMetric, Unit, hookimpl
from aiperf.sdk.definition import Definition, Readings
from aiperf.sdk.metric import MetricFamily
from aiperf.sdk.url_strategy import UrlStrategy
from aiperf.testing import (
    ArrivalsContract,
    DefinitionContract,
    HooksContract,
    MetricContract,
    MetricFamilyContract,
    RampContract,
    RunMetricContract,
    SamplerContract,
    ScheduleContract,
    UrlStrategyContract,
)
from test_conformance import verdicts

_request_rate = pytest.importorskip("aiperf_schedule_standard.request_rate")
RequestRate = _request_rate.RequestRate


def tried(contract: type[Any], **own: Any) -> set[str]:
    return verdicts(type("Changed", (contract,), own)())


def drawn(*key: Any, count: int) -> Any:
    return np.random.Generator(np.random.PCG64(*key)).random(count) * 2


@pytest.mark.parametrize(
    ("gaps", "caught"),
    [
        (lambda seed, stream, block, count, smooth: np.full(count, 2.0), "test_the_mean_gap_is_one"),
        (lambda seed, stream, block, count, smooth: np.full(count, -1.0), "test_no_gap_is_negative_or_without_end"),
        (lambda seed, stream, block, count, smooth: np.ones(count + 1), "test_as_many_gaps_come_as_are_asked_for"),
        (lambda seed, stream, block, count, smooth: drawn(count=count), "test_the_same_arguments_give_the_same_gaps"),
        (
            lambda seed, stream, block, count, smooth: drawn(seed, count=count)[::-1],
            "test_a_shard_that_needs_fewer_gets_the_first_of_them",
        ),
        (
            lambda seed, stream, block, count, smooth: drawn(seed, count=count),
            "test_where_anything_is_drawn_seed_stream_and_block_each_count",
        ),
    ],
)
def test_what_a_bad_arrival_pattern_does_is_caught(gaps: Any, caught: str) -> None:
    assert caught in tried(ArrivalsContract, gaps=gaps)


@pytest.mark.parametrize(
    ("ramp", "caught"),
    [
        (lambda x: x / 2, "test_it_begins_at_nothing_and_ends_at_the_whole"),
        (lambda x: 1 - np.abs(2 * x - 1), "test_it_never_falls_and_never_overshoots"),
        (lambda x: np.linspace(0, 1, len(x)), "test_each_point_stands_for_itself"),
        (lambda x: x.__imul__(x), "test_the_times_it_is_given_are_left_as_they_were"),
    ],
)
def test_what_a_bad_ramp_does_is_caught(ramp: Any, caught: str) -> None:
    assert caught in tried(RampContract, ramp=ramp)


def test_what_a_bad_sampler_does_is_caught() -> None:
    counted = iter(range(10**9))
    beyond, first = (lambda seed, session, count: count), (lambda seed, session, count: 0)
    moody = lambda seed, session, count: next(counted) % count  # noqa: E731
    assert "test_every_session_gets_an_entry_that_is_there" in tried(SamplerContract, sampler=beyond)
    assert tried(SamplerContract, sampler=first) == {"test_every_entry_is_used"}
    assert "test_shards_that_ask_for_their_sessions_alone_get_what_one_would" in tried(SamplerContract, sampler=moody)


class Stuck(UrlStrategy):
    def choose(self, session: int, in_flight: Any) -> int:
        return 0


class Restless(UrlStrategy):
    asked = 0

    def choose(self, session: int, in_flight: Any) -> int:
        self.asked += 1
        return self.asked % len(self.weights)


def test_what_a_bad_url_strategy_does_is_caught() -> None:
    needs_a_row = {"test_weights_are_honoured_in_the_mean"}
    assert tried(UrlStrategyContract, strategy=Stuck) - needs_a_row == {"test_equals_get_equal_shares"}
    assert "test_a_session_asked_again_stays_where_it_was" in tried(UrlStrategyContract, strategy=Restless)


class Onward(RequestRate):
    """Goes on where it was left, whatever is asked for."""

    at = 0

    def due_block(self, first: int, count: int) -> Any:
        self.at += count
        return super().due_block(self.at - count, count)


class Backward(RequestRate):
    def due_block(self, first: int, count: int) -> Any:
        return super().due_block(first, count)[::-1]


def test_what_a_bad_schedule_does_is_caught() -> None:
    assert tried(ScheduleContract, schedule=RequestRate) == set()
    assert tried(ScheduleContract, schedule=Onward) == {
        "test_arrivals_may_be_asked_for_in_any_order",
        "test_shards_that_ask_for_their_arrivals_alone_share_out_the_whole",
    }
    assert "test_due_times_are_whole_nanoseconds_that_never_go_back" in tried(ScheduleContract, schedule=Backward)


class Plain(Definition):
    title, source, differs = "a tool", "its manual", "It counts requests that failed."

    def read(self, batch: Any) -> Readings:
        none = np.empty(0)
        begin, end = batch["started_ns"], batch["ended_ns"]
        known = not np.isnan(begin).all()
        first, last = (float(np.nanmin(begin)), float(np.nanmax(end))) if known else (np.nan, np.nan)
        return Readings(batch["first_token_ns"] - begin, none, none, len(batch), float(len(batch)), first, last)


class First(Plain):
    """Looks at how a batch begins, and at nothing else."""

    source = ""

    def read(self, batch: Any) -> Readings:
        whole = super().read(batch)
        return Readings(whole.ttft_ns[:1], whole.itl_ns, whole.tpot_ns, 1, 1.0, whole.begin_ns, whole.end_ns)


def test_what_a_bad_definition_does_is_caught() -> None:
    assert tried(DefinitionContract, definition=Plain) == set()
    assert tried(DefinitionContract, definition=First) == {
        "test_a_definition_names_its_tool_source_and_difference",
        "test_order_does_not_matter",
        "test_parts_add_up_to_the_whole",
        "test_of_no_requests_there_is_nothing_to_read",
    }


class Good:
    @hookimpl
    def aiperf_run_ended(self, summary: Any) -> None:
        pass


class Unmarked(Good):
    def aiperf_snapshot(self, snapshot: Any) -> None:
        pass


class Misspelled:
    @hookimpl
    def aiperf_run_endet(self, summary: Any) -> None:
        pass


class Greedy:
    @hookimpl
    def aiperf_run_ended(self, summary: Any, more: Any) -> None:
        pass


class Late:
    begun: bool

    @hookimpl
    def aiperf_teardown(self) -> None:
        assert self.begun


def test_what_a_bad_hooks_plugin_does_is_caught() -> None:
    assert tried(HooksContract, hooks=Good) == set()
    assert tried(HooksContract, hooks=Unmarked) == {"test_no_hook_was_meant_and_not_marked"}
    assert "test_its_hooks_are_there_and_have_its_arguments" in tried(HooksContract, hooks=Misspelled)
    assert "test_its_hooks_are_there_and_have_its_arguments" in tried(HooksContract, hooks=Greedy)
    assert tried(HooksContract, hooks=Late) == {"test_a_run_that_failed_before_anything_happened_ends_well"}


class Share(RunMetric):
    tag, title, unit, needs = "share", "Share", Unit.RATIO, ("a", "b")

    def number(self, run: Any) -> float | None:
        part, whole = run.value("a"), run.value("b")
        return part / whole if part is not None and whole else None


class Careless(RunMetric):
    tag, title, unit, needs = "careless", "Careless", Unit.RATIO, ("a",)

    def number(self, run: Any) -> float | None:
        return run.value("a") / run.value("b")  # type: ignore[no-any-return]


def test_what_a_bad_metric_of_the_run_does_is_caught() -> None:
    assert tried(RunMetricContract, metric=Share()) == set()
    assert tried(RunMetricContract, metric=Careless()) == {
        "test_any_run_has_a_number_or_none",
        "test_what_it_reads_is_what_it_needs",
    }


class Looping(Metric):
    tag, title, unit = "looping", "Looping", Unit.NANOSECONDS

    def column(self, batch: Any) -> Any:
        return np.array([end - begin for begin, end in zip(batch["started_ns"], batch["ended_ns"], strict=True)])


def test_a_metric_that_loops_without_saying_so_is_caught() -> None:
    assert tried(MetricContract, metric=Looping()) == {"test_one_that_looks_at_request_after_request_says_so"}


class Contrary(Metric):
    tag, title, unit, rises = "contrary", "Contrary", Unit.NANOSECONDS, ("first_token_ns",)

    def column(self, batch: Any) -> Any:
        return batch["last_token_ns"] - batch["first_token_ns"]


def test_a_metric_that_falls_where_it_says_it_rises_is_caught() -> None:
    assert tried(MetricContract, metric=Contrary()) == {"test_it_rises_and_falls_with_what_it_says"}
    own = type("Right", (Contrary,), {"rises": (), "falls": ("first_token_ns",)})
    assert tried(MetricContract, metric=own()) == set()


class Twice(MetricFamily):
    def metrics(self, plugin_options: Any, unfit: Any) -> Any:
        return [Share(), Share()]


def test_what_a_bad_family_does_is_caught() -> None:
    assert tried(MetricFamilyContract, family=Twice()) == {
        "test_each_metric_it_gives_is_one",
        "test_what_it_needs_is_in_the_run",
    }
