"""The exit code of a run, and what a run in which most or all requests failed says at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.run.place import Executed
from aiperf.terminal import say

if TYPE_CHECKING:
    from aiperf.run.start import Outcome
    from aiperf.sdk.plan import PhasePlan, Plan
    from aiperf.sdk.summary import Summary

FEWEST_TO_JUDGE = 10
"""A typed share of failures is judged from so many ended requests on."""
_MOST = 0.5
"""Without a typed share, and of fewer requests, a larger share makes the exit code 1."""
_FAILED = ("failed", "cut", "empty", "client_limit")
"""Outcomes of failed requests: a cancelled one did not fail, it was asked for."""


def ended(summary: Summary, plan: Plan, outcome: Outcome, flag: str, *, failed: bool) -> Executed:
    """The run with its exit code; what is wrong with it is said on standard error.

    *flag*: that of the allowed share of failures, as typed.  *failed*: whether a file could not be written.
    """
    if outcome.signals.code:
        return Executed(summary, outcome.signals.code, "it was interrupted" if summary.cancelled else "")
    if outcome.console and summary.incomplete_reason is not None:
        say(f"aiperf: results are partial: {summary.incomplete_reason}")
    if outcome.console and summary.valid == 0:
        say(f"aiperf: no request succeeded; {last_line(summary)}")
    partial = outcome.lost or outcome.replaced or outcome.incomplete or summary.extra.get("lost")
    main = next(phase for phase in plan.load.phases if phase.kind == "profiling")
    share = too_many(summary, main, plan.load.failed_threshold, flag)
    if share is not None and not outcome.incomplete and outcome.console:
        say(f"aiperf: {share}")
    fault = f"no request succeeded; {last_line(summary)}" if not summary.valid else share or ""
    broken = "" if summary.scenario is None else summary.scenario.fault
    if broken and outcome.console:
        say(f"aiperf: {broken}")
    fault = fault or broken
    if partial:
        fault = summary.incomplete_reason or fault or "a process of the run was lost"
    return Executed(summary, int(failed or bool(fault)), fault)


def last_line(summary: Summary) -> str:
    """Why no request succeeded; no control characters."""
    return "".join(character if character.isprintable() else " " for character in why(summary))


def too_many(summary: Summary, phase: PhasePlan, typed: float | None, flag: str) -> str | None:
    """Why the exit code is 1 though some requests succeeded; None where it needn't be.

    *typed*: the share that *flag* allows, None where it was not given.
    """
    failed = sum(summary.outcomes.get(kind, 0) for kind in _FAILED)
    ended = summary.valid + failed
    limit = _MOST if typed is None else typed
    if ended < max(FEWEST_TO_JUDGE, phase.concurrency or 0):
        limit = max(limit, _MOST)
    if not summary.valid or failed <= limit * ended:
        return None
    share = "more than half" if limit == _MOST and typed is None else f"a larger share than {flag} {limit:g}"
    hint = f"; {flag} sets another limit" if typed is None else ""
    return f"{failed:,} of {ended:,} requests failed, {share}{hint}"


def why(summary: Summary) -> str:
    """The finding that explains every failure; else the one that explains most, or the most frequent error."""
    causes = [each for each in summary.measurement.findings if each.numbers.get("requests") and each.numbers.get("failed")]
    if causes:
        return max(causes, key=lambda each: each.numbers["requests"]).sentence
    if len(summary.errors) == 1:
        return f"each failed alike: {summary.errors[0].error.message}"
    if summary.errors:
        most = max(summary.errors, key=lambda each: each.count)
        return f"{most.count:,} of {summary.failed:,} failed requests: {most.error.message}"
    waiting = summary.outcomes.get("aborted")
    if waiting and summary.incomplete_reason is not None:
        return f"{waiting:,} had no whole answer when the run was ended early"
    if waiting:
        return f"{waiting:,} had no whole answer when the load ended: raise --benchmark-duration or --benchmark-grace-period"
    if summary.incomplete_reason is not None:
        return "the run ended before one was measured"
    return "none failed either: see the arrivals in the report"

