"""Facts of a run: outcomes of its arrivals, the load delivered, the client's part in the times, and what verdicts get."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiperf.rundir import journal
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.summary import Arrivals, Measurement, Quantiles
from aiperf.sdk.verdict import AnswerCounts, ErrorSeen, WorkerEvent, WorkerTime
from aiperf_reducer_columns.report.evidence import (
    arrivals,
    asked_rate,
    delivered,
    evidence,
    late_ns,
    measurement,
    planned,
    read_loops,
)
from aiperf_reducer_columns.statistics.fold import Buckets
from aiperf_reducer_columns.statistics.phase_counts import KINDS, PhaseCounts
from aiperf_testing.batches import sample_batch
from aiperf_testing.facts import PACED, PROFILING, WARMUP, begin, buckets, loop, slips
from aiperf_testing.journals import plan_for
from aiperf_testing.summaries import sample_summary


def measured(tmp_path: Path, side: Any = (), **given: Any) -> Measurement:
    changes = {name: given.pop(name) for name in ("urls", "workers") if name in given}
    plan = plan_for(tmp_path, phases=(WARMUP, PROFILING), **changes)
    known: dict[str, Any] = {"lateness": buckets(1000.0), "clock_steps": 0} | given
    return measurement(plan, PhaseCounts(), Arrivals(), None, None, read_loops(side, {1}), **known)


def test_without_any_kernel_stamp_the_clock_is_that_of_the_reads(tmp_path: Path) -> None:
    found = measured(tmp_path, lateness=Buckets())
    assert (found.clock, found.client_error_ms) == ("read", None)


def test_shares_are_of_what_has_a_stamp_of_its_own(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, phases=(WARMUP, PROFILING))
    counts = PhaseCounts(answers_begun=8, merged_first=2, chunks=100, coalesced=5)
    found = [
        measurement(plan, each, Arrivals(), None, None, read_loops([], {1}), lateness=buckets(1000.0), clock_steps=0)
        for each in (counts, PhaseCounts())
    ]
    assert [(each.merged_first, each.first_stamp_share, each.chunk_stamp_share) for each in found] == [
        (2, 0.75, 0.95), (0, None, None),
    ]  # fmt: skip


def test_a_phase_with_one_loop_frame_has_no_cpu_share(tmp_path: Path) -> None:
    assert measured(tmp_path, side=[begin(1), loop(10**8, 10**8, 5)]).worker_cpu_pct == ()


def test_lag_is_that_of_the_profiling_phase(tmp_path: Path) -> None:
    side = [begin(0), loop(1, 1, 10**9), begin(1), loop(2, 2, 1000, 3000), loop(3, 3, 5000), loop(4, 4, 10**9, in_phase=False)]
    assert measured(tmp_path, side=side).loop_lag_ms == Quantiles(0.003, 0.00496, 0.005)


def test_the_counts_of_all_outcomes_add_up_to_the_plan() -> None:
    outcomes = {"completed": 5, "failed": 1, "cut": 2, "empty": 1, "cancelled": 3, "aborted": 2, "unfinished": 1}
    census = PhaseCounts({KINDS.index(kind): count for kind, count in outcomes.items()})
    found = arrivals(msgspec.structs.replace(PROFILING, request_count=20), census, None)
    assert found == Arrivals(20, 15, 0, 5, 2, 3, 2, 1, 5, cut=2)
    assert found.planned == sum(
        (found.completed, found.errors, found.cut, found.cancelled, found.aborted_in_flight, found.unfinished, found.never_sent)
    )


def test_turns_of_trees_are_beside_the_plan_unless_they_may_have_been_sent() -> None:
    phase = msgspec.structs.replace(PROFILING, request_count=None, turns=50)
    turns = {journal.TRUNCATED: 7, journal.RELEASED: 2, journal.UNKNOWN: 3}
    found = arrivals(phase, PhaseCounts({0: 5}), None, turns=turns)
    assert (found.planned, found.sent, found.truncated, found.released, found.unknown, found.never_sent) == (8, 5, 7, 2, 3, 0)
    assert arrivals(phase, PhaseCounts({0: 5}), None).never_sent == 45, "nobody told of trees"


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 100),
        ({"duration_ns": 10**9}, None),  # whichever comes first ends it
        ({"request_count": None}, None),
        ({"planned": 70, "due_file": "due-1.bin"}, 70),
        ({"planned": 70, "due_file": "due-1.bin", "duration_ns": 10**9}, 70),
        ({"planned": None, "due_file": "due-1.bin"}, None),  # who takes the ticks depends on the answers
    ],
)
def test_what_is_planned_is_what_is_due_or_asked_for_by_number(changes: dict[str, Any], count: int | None) -> None:
    assert planned(msgspec.structs.replace(PROFILING, **changes)) == count


@pytest.mark.parametrize(
    ("changes", "due_s", "rate"),
    [
        ({"rate": 9.0, "planned": 2}, [5, 10], 9.0),
        ({"rate": 9.0, "rate_ramp_ns": 5, "planned": 4}, [1, 2, 3, 8], 0.5),
        ({"rate_series": ((0, 1), (9, 2)), "planned": 2}, [1, 4], 0.5),
        ({"planned": 3}, [0, 1, 2], 1.5),
        ({"planned": 3}, [0, 1, -1], None),  # a turn that waits for an answer
        ({"planned": None}, [0, 1], None),
        ({"planned": 1}, [0], None),
        ({}, [], None),
    ],
)
def test_the_asked_rate_is_as_typed_or_the_schedules_mean(
    changes: dict[str, Any], due_s: list[float], rate: float | None
) -> None:
    due_ns = np.array([round(at * 1e9) if at >= 0 else -1 for at in due_s], dtype=np.int64)
    assert asked_rate(msgspec.structs.replace(PROFILING, request_count=None, **changes), due_ns) == rate


def test_lateness_has_a_floor() -> None:
    assert late_ns(PROFILING) == late_ns(msgspec.structs.replace(PACED, rate=1e6)) == 1e6
    assert late_ns(msgspec.structs.replace(PACED, rate=2.0)) == 25e6


def test_the_load_delivered_stands_beside_the_load_asked_for(tmp_path: Path) -> None:
    census = PhaseCounts({journal.COMPLETED: 80}, first_start_ns=1e9, last_start_ns=1.8e9)
    late = slips(tmp_path, *([2e6] * 20), *([1e5] * 60))
    found = delivered(PACED, census, arrivals(PACED, census, late), late, None, 1e9, 100.0)
    assert (found.asked_rate, found.sent_rate, found.never_sent) == (100.0, 100.0, 20)
    assert found.on_time_share == 0.6
    assert (found.late_p50_ms, found.late_p99_ms) == (0.1, 2.0)


@pytest.mark.parametrize(
    ("changes", "sent", "last_start_s", "complete_s", "span_s"),
    [
        ({}, 100, 0.015, [6.06, 6.0], 6.06),  # concurrency 100: one wave, and answers of six seconds
        ({}, 100, 0.015, [], 6.5),  # the worker died: until the last answer
        ({"request_count": None, "duration_ns": 5 * 10**9}, 40, 4.8, [5.004], 5.0),
        ({"request_count": None, "duration_ns": 60 * 10**9}, 40, 3.8, [4.0], 4.0),  # Ctrl-C
        ({"rate": 2.0, "planned": 3, "due_file": "due"}, 3, 1.5, [1.5], 1.5),
        ({"rate": 2.0, "planned": 3, "due_file": "due"}, 3, 1.5, [], 1.5),
        # Nothing but time ends sending, and the last arrival was due before.
        ({"rate": 0.5, "planned": 2, "due_file": "due", "request_count": None, "duration_ns": 5 * 10**9}, 2, 4.0, [4.0], 5.0),
        ({"rate": 0.5, "planned": 2, "due_file": "due", "request_count": None, "duration_ns": 5 * 10**9}, 1, 2.0, [3.0], 3.0),
        # The request count ended sending before time did.
        (
            {"rate": 0.5, "planned": 2, "turns": 2, "request_count": 2, "due_file": "due", "duration_ns": 9 * 10**9},
            *(2, 4.0, [4.0], 4.0),
        ),
        # A trace ends with its last arrival.
        ({"planned": 3, "due_file": "due", "request_count": None, "duration_ns": 9 * 10**9}, 3, 2.0, [2.0], 2.0),
    ],
)
def test_the_sent_rate_is_over_the_time_in_which_sending_was_possible(
    changes: dict[str, Any], sent: int, last_start_s: float, complete_s: list[float], span_s: float
) -> None:
    phase = msgspec.structs.replace(PROFILING, **changes)
    zero = 1e9
    census = PhaseCounts(
        {journal.COMPLETED: sent}, first_start_ns=zero, last_start_ns=zero + last_start_s * 1e9, last_end_ns=zero + 6.5e9
    )
    complete_ns = [zero + at * 1e9 for at in complete_s]
    found = delivered(phase, census, arrivals(phase, census, None), None, None, zero, None, complete_ns)
    assert found.sent_rate == pytest.approx(sent / span_s)


def test_a_load_without_due_times_has_a_rate_and_no_lateness() -> None:
    census = PhaseCounts({journal.COMPLETED: 100}, first_start_ns=0.0, last_start_ns=2e9)
    found = delivered(PROFILING, census, arrivals(PROFILING, census, None), None, None, 0.0, None)
    assert (found.sent_rate, found.on_time_share, found.late_p99_ms, found.asked_rate) == (50.0, None, None, None)
    assert not any(isinstance(value, float) and math.isnan(value) for value in msgspec.structs.astuple(found))


@pytest.mark.parametrize(
    ("urls", "loopback"),
    [
        (("http://localhost:8000",), True),
        (("http://127.0.0.1:8000", "http://[::1]:9/v1"), True),
        (("http://127.0.0.1", "http://10.0.0.1"), False),
        (("https://api.example.com",), False),
    ],
)
def test_a_server_is_on_this_machine_where_all_its_urls_are(tmp_path: Path, urls: tuple[str, ...], loopback: bool) -> None:
    assert measured(tmp_path, urls=urls).loopback is loopback


@pytest.mark.parametrize(("noticed", "steps"), [(0, 0), (1, 1), (4, 1), (8, 2)])
def test_a_step_of_the_clock_counts_once_however_many_workers_notice(tmp_path: Path, noticed: int, steps: int) -> None:
    assert measured(tmp_path, clock_steps=noticed, workers=4).clock_steps == steps


def test_the_evidence_has_the_facts_of_the_phase_and_of_the_whole_run(tmp_path: Path) -> None:
    hook = PluginRef("hooks", "acme", "acme:hook", "acme", "1")
    secret = {"endpoints:plain": EncodedOptions("acme:Options", {"key": "hush", "depth": 3})}
    plan = plan_for(
        tmp_path, phases=(WARMUP, PROFILING), hooks=(hook,), hook_names={hook.key: ("aiperf_request_prepared",)},
        options=secret, secret_options={"endpoints:plain": ("key",)},
    )  # fmt: skip
    error = ErrorDetails("gone", type="OSError", cause="refused")
    counts = {
        0: PhaseCounts({journal.COMPLETED: 5}, chunks=50, silent=1),
        1: PhaseCounts(
            {journal.COMPLETED: 93, journal.ERROR: 7}, errors={msgspec.json.encode(error).decode(): (7, 3.5e9)},
            chunks=1000, coalesced=20, silent=2, opening=[(2.0e9, 5e6), (2.1e9, 6e6)],
        ),
    }  # fmt: skip
    events = [
        loop(0, 0, in_phase=False), begin(1), loop(100, 1000, encode_ns=250, reads=40),
        (0, journal.PHASE, {"phase": 1, "event": "stopped", "at_ns": 12, "for_ns": 5}),
    ]  # fmt: skip
    found = evidence(
        sample_summary(), plan, PROFILING, counts, read_loops(events, {1}), events, intervals=buckets(*([2e6] * 20)),
        turnarounds=slips(tmp_path, 1e6, 3e6), zero_ns=10, begin_ns=2e9, single_turn=False,
    )  # fmt: skip
    assert found.answers == AnswerCounts(valid=93, chunks=1000, silent=2)
    assert found.all_answers == AnswerCounts(valid=98, chunks=1050, silent=3)
    assert found.errors == (ErrorSeen(error, 7, 1.5e9),)
    assert (found.opening_ns, found.turnaround_mean_ms, found.reads, found.late_ns) == ((5e6, 6e6), 2.0, 40, 1e6)
    assert found.interval_p50_ns == found.interval_p99_ns == 2e6
    assert found.workers == (WorkerTime(cpu_pct=10.0, encode_pct=25.0),)
    assert (found.preparers, found.single_turn, found.phase) == (("hooks:acme",), False, PROFILING)
    assert found.events == (WorkerEvent(0, 1, "begin", -10), WorkerEvent(0, 1, "stopped", 2, 5))
    assert found.plan.plugins.options["endpoints:plain"].values == {"key": None, "depth": 3}


def test_the_census_has_the_same_facts_however_a_batch_is_cut() -> None:
    batch = sample_batch(40)
    batch.columns["first_output_ns"] = np.where(np.arange(40) % 3 == 0, batch["first_token_ns"], batch["first_token_ns"] + 5)
    whole = PhaseCounts()
    whole.add(batch)
    assert whole.hidden_reasoning > 0
    assert whole.cached_tokens > 0
    assert len(whole.opening) == 8
    assert whole.opening == sorted(whole.opening)
    parts = PhaseCounts()
    for rows in np.array_split(np.random.default_rng(3).permutation(40), 5):
        part = PhaseCounts()
        part.add(batch.take(rows))
        parts.merge(part)
    assert parts == whole
