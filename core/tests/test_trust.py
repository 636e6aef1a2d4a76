"""How far numbers can be trusted: every rule of the verdict, on both sides of its limit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiperf.report.trust import arrivals, asked_rate, delivered, late_ns, measurement, planned
from aiperf.rundir import journal
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.summary import Arrivals, Measurement, Quantiles
from aiperf.sdk.transport import EXHAUSTED, REFUSED
from aiperf.statistics.fold import Buckets, Merged, Samples
from aiperf.statistics.phase_counts import KINDS, PhaseCounts
from aiperf.testing.journals import plan_for

PROFILING = PhasePlan("profiling", "profiling", 1, "burst", request_count=100)
WARMUP = PhasePlan("warmup", "warmup", 0, "burst", request_count=5)
PACED = msgspec.structs.replace(PROFILING, schedule="request_rate", rate=100.0, planned=100, due_file="due-1.bin")


def buckets(*values: float) -> Buckets:
    found = Buckets()
    found.add(np.array(values, dtype=np.float64))
    return found


def slips(path: Path, *values: float) -> Merged:
    fold = Samples(path / "slips")
    fold.add(np.array(values, dtype=np.float64))
    return Merged([fold])


def loop(cpu_ns: int, wall_ns: int, *lags: int, in_phase: bool = True, shard: int = 0, **statistics: int) -> Any:
    value = {"lag_ns": list(lags), "cpu_ns": cpu_ns, "wall_ns": wall_ns, "in_phase": in_phase, "statistics": statistics}
    value |= {name: statistics.pop(name) for name in ("encode_ns", "disk_ns", "waited_ns") if name in statistics}
    return shard, journal.LOOP, value


def begin(phase: int, shard: int = 0) -> Any:
    return shard, journal.PHASE, {"phase": phase, "event": "begin", "at_ns": 0}


_PLANNED = ("urls", "workers", "hooks", "hook_names")


def measured(tmp_path: Path, phase: PhasePlan = PROFILING, **given: Any) -> Measurement:
    plan = plan_for(tmp_path, phases=(WARMUP, phase), **{k: given.pop(k) for k in _PLANNED if k in given})
    census = given.pop("census", PhaseCounts({journal.COMPLETED: 100}, chunks=10_000))
    late = given.pop("slips", None)
    known: dict[str, Any] = {"lateness": buckets(1000.0), "intervals": Buckets(), "clock_steps": 0, "itl_p50_ms": 10.0}
    known = {"side": []} | known | given
    side = known.pop("side")
    return measurement(plan, phase, census, known.pop("found", arrivals(phase, census, late)), late, side, **known)


def test_a_run_with_nothing_to_object_to_is_trustworthy(tmp_path: Path) -> None:
    found = measured(tmp_path, lateness=buckets(*range(0, 101_000, 1000)))
    assert (found.verdict, found.reasons, found.clock) == ("trustworthy", (), "kernel")
    assert found.client_error_ms is not None
    assert msgspec.structs.astuple(found.client_error_ms) == pytest.approx((0.05, 0.099, 0.1), rel=1e-3)


@pytest.mark.parametrize(
    ("cause", "sentence"),
    [
        (REFUSED, "no connection could be opened from 1.500 s on, for 7 requests: h:2: gone"),
        (EXHAUSTED, "the client was at a limit of its own from 1.500 s on, for 7 requests: h:2: gone"),
        (None, None),
    ],
)
def test_failed_connections_are_suspect_from_their_first_instant(
    tmp_path: Path, cause: str | None, sentence: str | None
) -> None:
    errors = {
        msgspec.json.encode(ErrorDetails(message, type="OSError", cause=cause)).decode(): seen
        for message, seen in {"h:2: gone": (4, 9e9), "h:1: gone": (3, 3.5e9)}.items()
    }
    found = measured(tmp_path, census=PhaseCounts({journal.COMPLETED: 93, journal.ERROR: 7}, errors=errors), begin_ns=2e9)
    assert found.reasons == (() if sentence is None else (sentence,))


def test_without_any_kernel_stamp_the_clock_is_that_of_the_reads(tmp_path: Path) -> None:
    found = measured(tmp_path, lateness=Buckets())
    assert (found.clock, found.client_error_ms) == ("read", None)


@pytest.mark.parametrize(
    ("marked", "width_ns", "suspect"),
    [
        (99, 9e6, False),  # less than one in a hundred: the p99 of all chunks is of one whose time is known
        (150, 9e6, True),
        (150, 0.49e6, False),  # 5 % of 10 ms
        (150, 0.51e6, True),
        (5000, 0.4e6, False),
    ],
)
def test_merged_chunks_are_suspect_when_the_p99_interval_is_too_wide(
    tmp_path: Path, marked: int, width_ns: float, suspect: bool
) -> None:
    census = PhaseCounts({journal.COMPLETED: 100}, coalesced=marked, chunks=10_000)
    found = measured(tmp_path, census=census, intervals=buckets(*([width_ns] * marked)))
    assert (found.verdict == "suspect") is suspect
    assert found.coalesced_chunks == marked
    if suspect:
        assert found.reasons[0].startswith(f"{marked:,} of 10,000 chunks reached us merged with later ones")
        assert found.scope == "inter-chunk"


@pytest.mark.parametrize(
    ("cpu_ns", "spent", "said"),
    [
        (20, {}, "the client ran freely (a loop 0.3 ms late at p99 and a worker at 2 % of its core)"),
        (950, {}, "a worker used 95 % of its core: use more workers (--workers 2)"),
        (300, {"encode_ns": 250}, "hooks:acme took 25 % of a worker's time to prepare requests"),
        (300, {"disk_ns": 700}, "the disk took 70 % of the time to write the journal"),
        (300, {"waited_ns": 120}, "a worker waited for a core for 12 % of its time, its loop 0.3 ms late at p99"),
    ],
)
def test_merged_chunks_name_their_cause(tmp_path: Path, cpu_ns: int, spent: dict[str, int], said: str) -> None:
    hook = PluginRef("hooks", "acme", "acme:hook", "acme", "1")
    plugins = {"hooks": (hook,), "hook_names": {hook.key: ("aiperf_request_prepared",)}}
    census = PhaseCounts({journal.COMPLETED: 100}, coalesced=150, chunks=10_000)
    side = [loop(0, 0, in_phase=False), begin(1), loop(cpu_ns, 1000, 300_000, **spent)]
    found = measured(tmp_path, census=census, intervals=buckets(*([9e6] * 150)), side=side, **plugins)
    assert f"which concerns inter-chunk statistics alone; {said}" in found.reasons[0]
    assert found.scope == (None if cpu_ns > 900 else "inter-chunk")  # a busy worker concerns all


def test_a_slow_hook_is_named_where_arrivals_are_late(tmp_path: Path) -> None:
    side = [loop(0, 0, in_phase=False), begin(1), loop(10, 1000, encode_ns=600)]
    found = measured(tmp_path, PACED, slips=slips(tmp_path, *([5e6] * 100)), side=side)
    assert found.reasons[0].endswith("took 60 % of a worker's time to prepare requests: make it faster")


@pytest.mark.parametrize(("turnarounds_ns", "suspect"), [([4e5, 5.9e5], False), ([4e5, 6.1e5], True), ([], False)])
def test_a_closed_loop_is_suspect_where_the_client_is_its_limit(
    tmp_path: Path, turnarounds_ns: list[float], suspect: bool
) -> None:
    found = measured(tmp_path, turnarounds=slips(tmp_path, *turnarounds_ns), latency_ms=10.0)
    assert (found.verdict == "suspect", found.scope) == (suspect, None)
    assert found.turnaround_ms == (Quantiles(0.495, 0.5881, 0.59) if turnarounds_ns[1:] == [5.9e5] else found.turnaround_ms)
    if suspect:
        said = "the client took 0.505 ms from an answer to the next request, 5 % of the mean latency: throughput may be the"
        assert found.reasons == (f"{said} client's limit; use more workers (--workers 2)",)


def test_the_widest_hundredth_of_chunks_may_have_wider_intervals(tmp_path: Path) -> None:
    census = PhaseCounts({journal.COMPLETED: 100}, coalesced=1000, chunks=10_000)
    for wide, verdict in ((90, "trustworthy"), (110, "suspect")):
        widths = [9e6] * wide + [1e3] * (1000 - wide)
        assert measured(tmp_path, census=census, intervals=buckets(*widths)).verdict == verdict


@pytest.mark.parametrize(
    ("rate", "slip_ns", "suspect"),
    [(1000.0, 0.9e6, False), (1000.0, 1.1e6, True), (10.0, 4.9e6, False), (10.0, 5.1e6, True)],
)
def test_slip_is_suspect_beyond_a_millisecond_and_a_twentieth_of_the_gap(
    tmp_path: Path, rate: float, slip_ns: float, suspect: bool
) -> None:
    phase = msgspec.structs.replace(PACED, rate=rate)
    found = measured(tmp_path, phase, slips=slips(tmp_path, *([slip_ns] * 100)))
    assert (found.verdict == "suspect") is suspect
    assert found.schedule_slip_ms is not None and found.schedule_slip_ms.max == slip_ns / 1e6
    assert found.arrivals.late == (100 if suspect else 0)


def test_arrivals_that_a_ceiling_held_are_counted_and_noted_and_nobodys_fault(tmp_path: Path) -> None:
    lates, held = slips(tmp_path, *([9e7] * 40), *([0.0] * 60)), slips(tmp_path / "held", *([9e7] * 40))
    found = arrivals(PACED, PhaseCounts({journal.COMPLETED: 100}), lates, held)
    assert (found.late, found.held) == (40, 40)
    said = measured(tmp_path, PACED, slips=slips(tmp_path / "own", *([1e4] * 100)), found=found)
    assert said.verdict == "trustworthy"
    assert any(note.startswith("40 of 100 arrivals waited for a slot") for note in said.notes)
    census = PhaseCounts({journal.COMPLETED: 100}, first_start_ns=1e9, last_start_ns=2e9)
    load = delivered(PACED, census, found, lates, held, 1e9, 100.0)
    assert (load.held, load.held_p50_ms, load.held_p99_ms, load.on_time_share) == (40, 90.0, 90.0, 0.6)


def test_a_worker_at_its_limit_is_suspect_despite_idle_time_around(tmp_path: Path) -> None:
    side = [
        loop(3000, 10_000, in_phase=False),  # busy while it was loading
        begin(1),
        loop(3500, 11_000),
        loop(4450, 12_000),
        loop(4450, 60_000, in_phase=False),  # idle while others finish
        *(begin(1, shard=1), loop(5, 10_000, shard=1), loop(255, 11_000, shard=1)),
    ]
    found = measured(tmp_path, side=side, workers=2)
    assert found.worker_cpu_pct == (72.5, 25.0)
    assert found.verdict == "trustworthy"
    side[3] = loop(4900, 12_000)
    found = measured(tmp_path, side=side, workers=2)
    assert found.worker_cpu_pct == (95.0, 25.0)
    assert found.reasons[0].startswith("a worker used 95 % of its core")


def test_a_phase_with_one_loop_frame_has_no_cpu_share(tmp_path: Path) -> None:
    assert measured(tmp_path, side=[begin(1), loop(10**8, 10**8, 5)]).worker_cpu_pct == ()


def test_lag_is_that_of_the_profiling_phase(tmp_path: Path) -> None:
    side = [begin(0), loop(1, 1, 10**9), begin(1), loop(2, 2, 1000, 3000), loop(3, 3, 5000), loop(4, 4, 10**9, in_phase=False)]
    assert measured(tmp_path, side=side).loop_lag_ms == Quantiles(0.003, 0.00496, 0.005)


@pytest.mark.parametrize(("missing", "suspect"), [(10, False), (11, True)])
def test_reads_without_stamps_are_suspect_beyond_one_in_a_hundred(tmp_path: Path, missing: int, suspect: bool) -> None:
    side = [loop(1, 1, reads=600, stamps_missing=0), loop(1, 2, reads=900, stamps_missing=missing)]
    side += [loop(1, 1, shard=1, reads=100, stamps_missing=0)]
    found = measured(tmp_path, side=side, workers=2)
    assert (found.stamps_missing, found.verdict == "suspect") == (missing, suspect)


@pytest.mark.parametrize(("noticed", "steps", "said"), [(1, 1, "once"), (4, 1, "once"), (8, 2, "2 times")])
def test_a_step_of_the_clock_is_one_however_many_workers_notice(tmp_path: Path, noticed: int, steps: int, said: str) -> None:
    found = measured(tmp_path, clock_steps=noticed, workers=4)
    assert (found.clock_steps, found.verdict) == (steps, "suspect")
    assert found.reasons == (f"the wall clock was set {said} during the run; reads around it carry our own stamps",)


NO_END = "no end in the journal: their worker was lost, or could not write"


@pytest.mark.parametrize(
    ("outcomes", "reason"),
    [
        ({"completed": 98, "unfinished": 2}, f"2 requests have {NO_END}"),
        ({"completed": 99, "unfinished": 1}, f"1 request has {NO_END}"),
        (
            {"completed": 90},
            "10 of 100 planned arrivals were never sent: the load asked for was not delivered",
        ),
    ],
)
def test_arrivals_without_an_answer_to_what_became_of_them_are_suspect(
    tmp_path: Path, outcomes: dict[str, int], reason: str
) -> None:
    found = measured(tmp_path, census=PhaseCounts({KINDS.index(kind): count for kind, count in outcomes.items()}))
    assert (found.verdict, found.reasons) == ("suspect", (reason,))


@pytest.mark.parametrize(
    ("urls", "loopback"),
    [
        (("http://localhost:8000",), True),
        (("http://127.0.0.1:8000", "http://[::1]:9/v1"), True),
        (("http://127.0.0.1", "http://10.0.0.1"), False),
        (("https://api.example.com",), False),
    ],
)
def test_the_report_says_what_stamps_are_worth_here(tmp_path: Path, urls: tuple[str, ...], loopback: bool) -> None:
    found = measured(tmp_path, urls=urls)
    assert found.loopback is loopback
    notes = " ".join(found.notes)
    assert ("made in the sender's context" in notes, "network card" in notes) == (loopback, not loopback)


def test_the_counts_of_all_outcomes_add_up_to_the_plan() -> None:
    outcomes = {"completed": 5, "failed": 1, "cut": 2, "empty": 1, "cancelled": 3, "aborted": 2, "unfinished": 1}
    census = PhaseCounts({KINDS.index(kind): count for kind, count in outcomes.items()})
    found = arrivals(msgspec.structs.replace(PROFILING, request_count=20), census, None)
    assert found == Arrivals(20, 15, 0, 5, 2, 3, 2, 1, 5, cut=2)
    assert found.planned == sum(
        (found.completed, found.errors, found.cut, found.cancelled, found.aborted_in_flight, found.unfinished, found.never_sent)
    )


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


def stopped(phase: int, for_ns: int, shard: int = 0) -> Any:
    return shard, journal.PHASE, {"phase": phase, "event": "stopped", "at_ns": 0, "for_ns": for_ns}


def test_a_standstill_of_the_phase_makes_it_suspect_and_is_the_cause_of_the_rest(tmp_path: Path) -> None:
    side = [stopped(0, 9 * 10**9), stopped(1, 10**9), stopped(1, 10**9), stopped(1, 15 * 10**8, shard=1)]
    (reason,) = measured(tmp_path, side=side, workers=2).reasons
    assert reason.startswith("a worker stood still for 2 s: it was stopped by a signal, or the machine slept;")
    assert measured(tmp_path, side=side[:1]).verdict == "trustworthy", "of the warmup alone"
    late = slips(tmp_path, *[20e6] * 100)
    assert any("late at p99" in each and "stood still" in each for each in measured(tmp_path, side=side, slips=late).reasons)
