"""How far numbers can be trusted: every rule of the verdict, on both sides of its limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf.rundir import journal
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.engine import SiteClock
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.snapshot import LiveDelays, LiveWorker
from aiperf.sdk.summary import Measurement, Quantiles, Result
from aiperf.sdk.transport import EXHAUSTED, REFUSED, STREAMED
from aiperf.sdk.verdict import FindingLevel, UnfinishedRun
from aiperf.testing import full_snapshot, sample_evidence
from aiperf_reducer_columns.report.evidence import arrivals, delivered, evidence, measurement, read_loops
from aiperf_reducer_columns.report.report import report
from aiperf_reducer_columns.report.verdicts import concluded, findings
from aiperf_reducer_columns.statistics.fold import Buckets
from aiperf_reducer_columns.statistics.phase_counts import KINDS, PhaseCounts
from aiperf_testing.facts import PACED, PROFILING, WARMUP, begin, buckets, loop, slips
from aiperf_testing.journals import Recording, event, plan_for
from aiperf_testing.summaries import sample_summary
from aiperf_verdict_measurement import OwnPart
from aiperf_verdict_measurement.contract import OwnPartContract
from msgspec.structs import replace

_PLANNED = ("urls", "workers", "hooks", "hook_names")
OWN_PART = PluginRef("verdicts", "measurement", "aiperf_verdict_measurement:OwnPart", "aiperf-verdict-measurement", "0.1.0")


def _result(tag: str, statistic: str, value: float | None) -> dict[str, Result]:
    return {} if value is None else {tag: Result(tag, tag, "ms", {statistic: value})}


def measured(tmp_path: Path, phase: PhasePlan = PROFILING, **given: Any) -> Measurement:
    """The measurement that the kernel makes of these facts, with the verdict of this package alone."""
    plan = plan_for(tmp_path, phases=(WARMUP, phase), verdicts=(OWN_PART,), **{k: given.pop(k) for k in _PLANNED if k in given})
    census = given.pop("census", PhaseCounts({journal.COMPLETED: 100}, chunks=10_000))
    late, turnarounds = given.pop("slips", None), given.pop("turnarounds", None)
    side, begin_ns = given.pop("side", []), given.pop("begin_ns", 0.0)
    loops, intervals = read_loops(side, {1}), given.pop("intervals", Buckets())
    first = given.pop("first_intervals", None)
    results = _result("inter_token_latency", "p50", 10.0) | _result("time_to_first_token", "p50", 20.0)
    results |= _result("request_latency", "avg", given.pop("latency_ms", None))
    found = given.pop("found", arrivals(phase, census, late))
    known: dict[str, Any] = {"lateness": buckets(1000.0), "clock_steps": 0} | given
    facts = measurement(plan, census, found, late, turnarounds, loops, **known)
    summary = replace(sample_summary(), results=results, measurement=facts)
    seen = evidence(
        summary, plan, phase, {0: PhaseCounts(), 1: census}, loops, side, intervals=intervals, turnarounds=turnarounds,
        begin_ns=begin_ns, first_intervals=first,
    )  # fmt: skip
    failures: list[str] = []
    judged = concluded(summary, findings(plan, seen, failures.append), None)
    assert failures == []
    return judged


class TestItKeepsTheContract(OwnPartContract):
    pass


def test_a_run_with_nothing_to_object_to_is_trustworthy(tmp_path: Path) -> None:
    found = measured(tmp_path, lateness=buckets(*range(0, 101_000, 1000)))
    assert (found.verdict, found.reasons, found.clock) == ("trustworthy", (), "kernel")
    assert found.client_error_ms is not None
    assert msgspec.structs.astuple(found.client_error_ms) == pytest.approx((0.05, 0.099, 0.1), rel=1e-3)


@pytest.mark.parametrize(("within_ms", "drift_within_ms"), [(0.2, 0.3), (1.1, 0.0), (0.2, 1.4)])
def test_clocks_of_sites_that_are_known_badly_make_time_slices_suspect(within_ms: float, drift_within_ms: float) -> None:
    barn = SiteClock("barn", (1, 3), 0.0, within_ms, 0.0, drift_within_ms, wall_ahead_s=7200.4, trips=40)
    attic, given = SiteClock("attic", (0, 2), within_ms=0.1, trips=40), sample_evidence()
    own = replace(given.summary.measurement, sites=(attic, barn))
    found = OwnPart(None).judge(replace(given, summary=replace(given.summary, measurement=own)))
    by_kind = {finding.kind: finding for finding in found if finding.kind.startswith("site")}
    clock = by_kind["site_clock"]
    assert clock.sentence.startswith(f"the clock of the site barn is known to within {barn.uncertainty_ms:.3g} ms")
    bad = max(within_ms, drift_within_ms - within_ms) > 1
    assert (clock.level, clock.scope) == (
        (FindingLevel.SUSPECT, "time slices and curves") if bad else (FindingLevel.NOTE, None)
    )
    wall = by_kind["site_wall_clock"]
    assert wall.sentence == "the wall clock of the site barn is 7,200 s ahead of this machine's, which counts"


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
    ("merged", "width_ns", "suspect"),
    [
        (1, 90e6, False),  # one in a hundred: the p99 is of an answer whose first content is known
        (2, 90e6, True),
        (50, 0.9e6, False),  # 5 % of 20 ms
        (50, 1.1e6, True),
    ],
)
def test_merged_first_content_is_suspect_by_share_and_size(tmp_path: Path, merged: int, width_ns: float, suspect: bool) -> None:
    census = PhaseCounts({journal.COMPLETED: 100}, coalesced=merged, chunks=10_000, answers_begun=100, merged_first=merged)
    found = measured(tmp_path, census=census, first_intervals=buckets(*([width_ns] * merged)))
    assert (found.verdict == "suspect") is suspect
    if suspect:
        (finding,) = (each for each in found.findings if each.level == "suspect")
        assert (finding.kind, found.scope) == ("merged_chunks", "first token and inter-chunk")
        assert finding.sentence.startswith(f"the first content of {merged} of 100 answers reached us merged")
        assert finding.numbers["merged_first"] == merged


def test_merged_first_content_and_merged_chunks_are_one_finding(tmp_path: Path) -> None:
    census = PhaseCounts({journal.COMPLETED: 100}, coalesced=150, chunks=10_000, answers_begun=100, merged_first=50)
    found = measured(tmp_path, census=census, intervals=buckets(*([9e6] * 150)), first_intervals=buckets(*([9e6] * 50)))
    (reason,) = found.reasons
    assert "150 of 10,000 chunks" in reason and "the first content of 50 of 100 answers" in reason
    assert found.scope == "first token and inter-chunk"


@pytest.mark.parametrize(
    ("cpu_ns", "spent", "said"),
    [
        (20, {}, "the client ran freely (loop lag 0.3 ms at p99 and a worker at 2 % of its core)"),
        (950, {}, "a worker used 95 % of its core: use more workers (--workers 2)"),
        (300, {"encode_ns": 250}, "hooks:acme took 25 % of a worker's time to prepare requests"),
        (300, {"disk_ns": 700}, "the disk took 70 % of the time to write the journal"),
        (300, {"waited_ns": 120}, "a worker waited for a core for 12 % of its time (loop lag 0.3 ms at p99)"),
        (300, {"waited_ns": 120, "throttled_ns": 50}, "the CPU limit of this program's cgroup was used up meanwhile"),
    ],
)
def test_merged_chunks_name_their_cause(tmp_path: Path, cpu_ns: int, spent: dict[str, int], said: str) -> None:
    hook = PluginRef("hooks", "acme", "acme:hook", "acme", "1")
    plugins = {"hooks": (hook,), "hook_names": {hook.key: ("aiperf_request_prepared",)}}
    census = PhaseCounts({journal.COMPLETED: 100}, coalesced=150, chunks=10_000)
    side = [loop(0, 0, in_phase=False), begin(1), loop(cpu_ns, 1000, 300_000, **spent)]
    found = measured(tmp_path, census=census, intervals=buckets(*([9e6] * 150)), side=side, **plugins)
    assert f"which concerns inter-chunk statistics alone; {said}" in found.reasons[0]
    concerns_all = cpu_ns > 900 or "throttled_ns" in spent
    assert found.scope == (None if concerns_all else "inter-chunk")


def test_of_several_hooks_a_variable_tells_the_slow_one(tmp_path: Path) -> None:
    hooks = tuple(PluginRef("hooks", name, "acme:hook", "acme", "1") for name in ("one", "two"))
    plugins = {"hooks": hooks, "hook_names": {hook.key: ("aiperf_request_prepared",) for hook in hooks}}
    side = [loop(0, 0, in_phase=False), begin(1), loop(10, 1000, encode_ns=600)]
    found = measured(tmp_path, PACED, slips=slips(tmp_path, *([5e6] * 100)), side=side, **plugins)
    assert "hooks:one and hooks:two together took 60 % of a worker's time" in found.reasons[0]
    assert found.reasons[0].endswith("AIPERF_TRACE_HOOKS=1 shows which of them is slow")


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
    assert ("no network is in its times" in notes, "network card" in notes) == (loopback, not loopback)


def stopped(phase: int, for_ns: int, shard: int = 0) -> Any:
    return shard, journal.PHASE, {"phase": phase, "event": "stopped", "at_ns": 0, "for_ns": for_ns}


def test_a_standstill_of_the_phase_makes_it_suspect_and_is_the_cause_of_the_rest(tmp_path: Path) -> None:
    side = [stopped(0, 9 * 10**9), stopped(1, 10**9), stopped(1, 10**9), stopped(1, 15 * 10**8, shard=1)]
    (reason,) = measured(tmp_path, side=side, workers=2).reasons
    assert reason.startswith("a worker stood still for 2 s: it was stopped by a signal, or the machine slept;")
    assert measured(tmp_path, side=side[:1]).verdict == "trustworthy", "of the warmup alone"
    late = slips(tmp_path, *[20e6] * 100)
    assert any("late at p99" in each and "stood still" in each for each in measured(tmp_path, side=side, slips=late).reasons)


def test_findings_have_the_numbers_of_their_sentences(tmp_path: Path) -> None:
    census = PhaseCounts({journal.COMPLETED: 98, KINDS.index("unfinished"): 2}, coalesced=150, chunks=10_000)
    found = measured(tmp_path, census=census, intervals=buckets(*([9e6] * 150)))
    merged, lost, note = found.findings
    assert (merged.kind, merged.level, merged.scope) == ("merged_chunks", "suspect", "inter-chunk")
    assert merged.numbers["merged_chunks"] == 150 and merged.numbers["interval_p50_ms"] == pytest.approx(9.0, rel=0.01)
    assert (lost.kind, lost.confidence, lost.numbers) == ("unfinished_requests", 1.0, {"unfinished": 2})
    assert (note.kind, note.level) == ("kernel_stamps", "note")
    assert {(finding.plugin, finding.package) for finding in found.findings} == {
        ("measurement", "aiperf-verdict-measurement 0.1.0")
    }


def test_the_reasons_of_a_journal_are_those_of_its_requests(tmp_path: Path) -> None:
    ms = 10**6
    made = Recording(tmp_path, verdicts=(OWN_PART,))
    for request in range(4):
        unreadable = [(7 * ms, b'data: {"text": "\\ud800"}\n\n')] if request < 2 else []
        made.answered(request, 0, (6 * ms, event(text="a")), *unreadable, (8 * ms, event(text="b")))
    made.sent(4, 20 * ms)
    made.flush(21 * ms)
    made.skip_frame()
    made.read(4, 90 * ms, event(text="a b"))
    made.done(4, 91 * ms)
    made.flush(92 * ms)
    made.ended(requests={0: 5})
    summary, *_ = report(made.directory)
    assert summary.measurement.reasons == (
        "the journal may have lost a part of 1 request, which no statistic of latencies or tokens has",
        "2 of 4 answers have unreadable events: content is missing from times and counts",
    )
    (used,) = [used for used in summary.plugins if used.category == "verdicts"]
    assert (used.name, used.distribution) == ("measurement", "aiperf-verdict-measurement")


@pytest.mark.parametrize("body", [b"", b": ping\n\n", b"\n\n"])
def test_an_event_stream_without_any_event_did_not_come_whole(tmp_path: Path, body: bytes) -> None:
    made = Recording(tmp_path, verdicts=(OWN_PART,))
    made.sent(0, 10**6)
    if body:
        made.read(0, 5 * 10**6, body)
    made.done(0, 6 * 10**6, flags=STREAMED)
    made.flush(21 * 10**6)
    made.ended(requests={0: 1})
    summary, *_ = report(made.directory)
    assert summary.outcomes == {"empty": 1}
    assert summary.measurement.reasons == ()


@pytest.mark.parametrize(("good", "bad", "told"), [(3, 2, 3), (0, 2, 2)])
def test_whole_answers_are_told_where_streams_were_asked_for(tmp_path: Path, good: int, bad: int, told: int) -> None:
    made = Recording(tmp_path, verdicts=(OWN_PART,))
    for request in range(good + bad):
        made.sent(request, request * 10**6)
        made.read(request, (request + 5) * 10**6, b'{"text":"a"}' if request < good else b'{"text":')
        made.done(request, (request + 6) * 10**6, flags=0)
    made.flush(21 * 10**6)
    made.ended(requests={0: good + bad})
    summary, *_ = report(made.directory)
    (reason,) = summary.measurement.reasons
    assert reason.startswith(f"{told} answers came whole, where streams were asked for:")


@pytest.mark.parametrize(("slip_ms", "cpu_pct", "kinds"), [
    (0.5, 40.0, []), (1.5, 40.0, ["schedule_slip"]), (None, 99.0, ["worker_cpu"]), (2.0, 99.0, ["schedule_slip", "worker_cpu"]),
])  # fmt: skip
def test_a_run_under_way_is_judged_by_its_client(slip_ms: float | None, cpu_pct: float, kinds: list[str]) -> None:
    worker = LiveWorker(0, "healthy", 7, cpu_pct=cpu_pct)
    now = msgspec.structs.replace(full_snapshot(), delays=LiveDelays(slip_ms), workers=(worker, LiveWorker(1, "idle")))
    evidence = sample_evidence()
    found = OwnPart().judge_unfinished(UnfinishedRun(now, evidence.plan, evidence.phase))
    assert [finding.kind for finding in found] == kinds
