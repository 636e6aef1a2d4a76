"""Evidence of a made-up run, and the contract of verdicts."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from aiperf.sdk.columns import NUMBERS, Floats, Ints
from aiperf.sdk.fetch import Servers
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.series import Window
from aiperf.sdk.summary import Arrivals, Measurement, Quantiles, Result, Summary
from aiperf.sdk.transport import EXHAUSTED, REFUSED
from aiperf.sdk.verdict import (
    AnswerCounts,
    ErrorSeen,
    Evidence,
    Finding,
    Look,
    UnfinishedRun,
    Verdict,
    WorkerEvent,
    WorkerTime,
)
from msgspec.structs import replace

from aiperf_testing.findings import unlike
from aiperf_testing.live import SNAPSHOTS
from aiperf_testing.manifests import check_row
from aiperf_testing.pipeline import checked
from aiperf_testing.plans import sample_plan
from aiperf_testing.summaries import sample_summary

_REQUESTS = 24
_BLOCK = 5
"""Requests of a short block."""


def sample_evidence(*results: Result, **changes: Any) -> Evidence:
    """Evidence of a run of 24 requests, all good, to which there is nothing to object.

    *results*: of the summary, None for those of :func:`sample_summary`.  *changes*: fields of the evidence, of its summary, or
    of the summary's measurement; the first that has the field gets it.  Columns are of zeros, unless *changes* has
    ``read_column``; there are no samples, unless it has ``read_samples``.
    """
    quiet = Quantiles(0.01, 0.02, 0.03)
    measurement = Measurement(
        "kernel", loopback=False, arrivals=Arrivals(24, 24, completed=24), client_error_ms=quiet, schedule_slip_ms=quiet,
        loop_lag_ms=quiet, worker_cpu_pct=(3.0,), turnaround_ms=quiet,
    )  # fmt: skip
    answers = AnswerCounts(valid=_REQUESTS, chunks=10 * _REQUESTS)
    measurement = replace(measurement, **_taken(Measurement, changes, beside=(Evidence, Summary)))
    fields = _taken(Summary, changes, beside=(Evidence,))
    summary = replace(sample_summary(*results), **{"measurement": measurement, "valid": 24, "failed": 0} | fields)
    plan = changes.pop("plan", None) or sample_plan(Path("run"))
    profiling = next(phase for phase in plan.load.phases if phase.kind == "profiling")
    usual: dict[str, Any] = {
        "phase": profiling, "turnaround_mean_ms": 0.01, "workers": (WorkerTime(cpu_pct=3.0),), "reads": 240,
        "preparers": (plan.plugins.endpoint.key,), "opening_ns": (5e6,) * 8, "answers": answers, "all_answers": answers,
        "events": (WorkerEvent(0, profiling.index, "begin", 0), WorkerEvent(0, profiling.index, "end", 2_000_000_000)),
        "windows": (Window(profiling.index, 0, 2_000_000_000),), "read_column": _zeros,
    }  # fmt: skip
    return Evidence(summary=summary, plan=plan, **usual | changes)


def _zeros(name: str) -> Floats:
    if name not in NUMBERS:
        raise LookupError(f"there is no column {name!r}")
    return np.zeros(_REQUESTS)


def in_blocks(evidence: Evidence) -> Evidence:
    """The same evidence, whose columns come in short blocks."""

    def columns(names: Sequence[str]) -> Iterator[tuple[Floats, ...]]:
        for block in evidence.columns(*names):
            for at in range(0, len(block[0]), _BLOCK):
                yield tuple(column[at : at + _BLOCK] for column in block)

    def ordered(name: str) -> Iterator[tuple[Ints, Floats]]:
        for places, values in evidence.ordered(name):
            yield from ((places[at : at + _BLOCK], values[at : at + _BLOCK]) for at in range(0, len(places), _BLOCK))

    return replace(evidence, read_columns=columns, read_ordered=ordered)


def _taken(struct: type[Any], changes: dict[str, Any], *, beside: tuple[type[Any], ...]) -> dict[str, Any]:
    """Take the fields of *struct* out of *changes* that none of *beside* has."""
    others = {name for other in beside for name in other.__struct_fields__}
    return {name: changes.pop(name) for name in struct.__struct_fields__ if name in changes and name not in others}


def evidence_of_nothing() -> Evidence:
    """The evidence of a run that ended before its first request."""
    measurement = Measurement("read", loopback=False, arrivals=Arrivals())
    summary = replace(
        sample_summary(), results={}, phases=(), valid=0, failed=0, complete=False, incomplete_reason="it was cut short",
        measurement=measurement, outcomes={}, slices=(), observation_window_s=None, benchmark_duration_s=None, seed=None,
    )  # fmt: skip
    plan = sample_plan(Path("run"))
    return Evidence(summary=summary, plan=plan, phase=plan.load.phases[0])


def evidence_of_trouble() -> Evidence:
    """The evidence of a run in which everything that can be counted went wrong."""
    plan = sample_plan(
        Path("run"), use_server_token_count=True,
        phases=(PhasePlan("warmup", "warmup", 0, "burst"), PhasePlan("profiling", "profiling", 1, "burst", duration_ns=10**9)),
    )  # fmt: skip
    bad, names = Quantiles(50.0, 900.0, math.inf), AnswerCounts.__struct_fields__
    answers = AnswerCounts(**{name: 10 - place % 3 for place, name in enumerate(names)})
    errors = [ErrorSeen(ErrorDetails("gone", type="OSError", cause=cause), 3, -1.0) for cause in (REFUSED, EXHAUSTED, None)]
    arrivals = Arrivals(100, 40, 30, 10, 9, 5, 6, 3, 20, 12, 7, 40)
    return sample_evidence(
        plan=plan, loopback=True, arrivals=arrivals, client_error_ms=bad, schedule_slip_ms=bad, loop_lag_ms=bad,
        coalesced_chunks=9, stamps_missing=90, clock_steps=2, client_not_ready=7, turnaround_ms=bad, turnaround_mean_ms=100.0,
        interval_p50_ns=1e7, interval_p99_ns=1e8, precise_timers=False, single_turn=False, errors=tuple(errors),
        workers=(WorkerTime(99.0, 30.0, 60.0, 40.0), WorkerTime()), answers=answers, all_answers=answers,
        events=(WorkerEvent(0, 1, "begin", 0), WorkerEvent(0, 1, "stopped", 2 * 10**9, 10**9)), opening_ns=(9e9,),
    )  # fmt: skip


class VerdictContract:
    """Subclass with a verdict's class, and evidence with the kinds of its findings in their order; once with none::

        class TestMineKeepsTheContract(VerdictContract):
            verdict = Mine
            cases = ((sample_evidence(), ()), (sample_evidence(clock_steps=1), ("clock_step",)))
    """

    verdict: ClassVar[type[Verdict[Any]]]
    cases: ClassVar[Sequence[tuple[Evidence, Sequence[str]]]]
    options: ClassVar[Any] = None

    def _judge(self, evidence: Evidence) -> list[Finding]:
        judged = type(self).verdict(type(self).options).judge(evidence)
        return [checked(each) for each in ([judged] if isinstance(judged, Finding) else judged or ())]

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("verdicts", self.verdict)

    def test_each_case_has_its_findings(self) -> None:
        for evidence, kinds in self.cases:
            assert [finding.kind for finding in self._judge(evidence)] == list(kinds), (
                unlike(
                    [finding.kind for finding in self._judge(evidence)], list(kinds),
                    "give the findings of the case, or correct its kinds",
                )
            )

    def test_the_cases_tell_one_run_from_another(self) -> None:
        assert {bool(kinds) for _, kinds in self.cases} == {True, False}, "a run with a finding and a run without"

    def test_a_run_that_ended_before_its_first_request_is_survived(self) -> None:
        self._judge(evidence_of_nothing())

    def test_a_run_in_which_everything_went_wrong_is_survived(self) -> None:
        self._judge(evidence_of_trouble())

    def test_a_sentence_is_one_line(self) -> None:
        for finding in self._judge(evidence_of_trouble()):
            assert finding.sentence == " ".join(finding.sentence.split()), "without line ends, and without spaces around it"

    def test_the_same_evidence_gives_the_same_findings(self) -> None:
        for evidence in (sample_evidence(), evidence_of_trouble()):
            assert self._judge(evidence) == self._judge(evidence), "the same evidence gives other findings: no clock, no chance"

    def test_columns_in_short_blocks_give_the_same_findings(self) -> None:
        for evidence, _ in self.cases:
            assert self._judge(in_blocks(evidence)) == self._judge(evidence), (
                "evidence.columns and evidence.ordered give blocks of any length, or none: findings must not depend on it"
            )

    def test_an_error_is_explained_in_one_line_or_not_at_all(self) -> None:
        verdict = type(self).verdict(type(self).options)
        for seen in evidence_of_trouble().errors:
            finding = verdict.explain(seen.error, evidence_of_trouble().plan)
            assert finding is None or checked(finding).sentence == " ".join(finding.sentence.split()), (
                "explain gives a finding, whose sentence has one line, or None"
            )

    def test_a_look_at_a_server_that_is_not_there_finds_nothing(self) -> None:
        plan = evidence_of_trouble().plan.replacing(urls=("http://127.0.0.1:9",))
        found = type(self).verdict(type(self).options).look(Look(("no_route",), plan, Servers(plan.target, {}), ()))
        assert found == {}, f"look found {found} where nobody answers: what it gives must come from the servers"

    def test_a_run_under_way_is_judged_in_one_line_or_not_at_all(self) -> None:
        evidence = evidence_of_trouble()
        verdict = type(self).verdict(type(self).options)
        for snapshot in SNAPSHOTS if verdict.unfinished else ():
            told = verdict.judge_unfinished(UnfinishedRun(snapshot, evidence.plan, evidence.phase))
            for each in [told] if isinstance(told, Finding) else told or ():
                assert checked(each).sentence == " ".join(each.sentence.split()), "judge_unfinished gives sentences of one line"

    def test_the_evidence_stays_as_it_is(self) -> None:
        evidence = evidence_of_trouble()
        before = copy.deepcopy(evidence)
        self._judge(evidence)
        assert evidence == before, "judge changed the evidence: others read it as well"
