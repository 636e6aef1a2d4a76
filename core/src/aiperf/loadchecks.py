"""Load options that can't go together, beyond what the mode decides: counts, limits, ramps, traces, users, warmup."""

from __future__ import annotations

from collections.abc import Callable

from aiperf.findings import Findings
from aiperf.modes import BURST, FIXED_SCHEDULE, NO_PATTERN, TRIGGERS, USER_CENTRIC, selector

STOPS = ("request_count", "session_count", "benchmark_duration_s")

_WARMUP_RATES = ("warmup_request_rate", "request_rate")
_WARMUP_LEVELS = ("warmup_concurrency", "concurrency")
_WARMUP_PREFILLS = ("warmup_prefill_concurrency", "prefill_concurrency")
_RAMPS = ("concurrency_ramp_s", "prefill_ramp_s", "rate_ramp_s")
_NO_RAMP = "there is nothing to ramp"


def check(findings: Findings, mode: str, shaped: Callable[[str], bool], pattern: str) -> None:
    """Refuse what can't be.

    *shaped* says of an arrival pattern whether its smoothness matters; *pattern* is the profiling phase's.
    """
    _check_stops(findings)
    _check_limits(findings, mode)
    _check_ramps(findings, mode)
    _check_patterns(findings, shaped, pattern)
    if mode == FIXED_SCHEDULE:
        _check_replay(findings)
    if mode == USER_CENTRIC:
        _check_users(findings)
    _check_warmup(findings)
    findings.needs("cancellation_delay_s", ["cancellation_pct"], "it says when to cancel, and nothing says how many")


def _check_stops(findings: Findings) -> None:
    findings.exclusive("request_count", "session_count", "both are counts to stop at")
    findings.exclusive("warmup_request_count", "warmup_session_count", "both are counts that end the warmup")
    findings.needs("benchmark_grace_s", ["benchmark_duration_s"], "the grace period follows the duration")
    findings.needs("warmup_grace_s", ["warmup_duration_s"], "the grace period follows the duration")
    for field in ("request_count", "session_count"):
        _check_reachable(findings, "concurrency", field)
        _check_reachable(findings, "warmup_concurrency", f"warmup_{field}")


def _check_reachable(findings: Findings, level: str, count: str) -> None:
    most, given = getattr(findings.kernel, count), getattr(findings.kernel, level)
    if most is not None and given is not None and given > most:
        findings.refuse(
            f"{findings.flag(level)} {given} can never be reached with {findings.flag(count)} {most}",
            f"lower {findings.flag(level)}, or raise {findings.flag(count)}",
        )


def _check_limits(findings: Findings, mode: str) -> None:
    why = "the first token is only seen in a stream"
    findings.needs("prefill_concurrency", ["streaming"], why)
    findings.needs("warmup_prefill_concurrency", ["streaming"], why)
    _check_within(findings, "prefill_concurrency", "concurrency")
    level = next(filter(findings.given, _for_warmup(findings, _WARMUP_LEVELS)), None)
    if level is not None:
        _check_within(findings, "warmup_prefill_concurrency", level)


def _check_within(findings: Findings, prefill: str, level: str) -> None:
    given, most = getattr(findings.kernel, prefill), getattr(findings.kernel, level)
    if given is not None and most is not None and given > most:
        findings.refuse(
            f"{findings.flag(prefill)} {given} is more than {findings.flag(level)} {most}, which it is a part of",
            f"lower {findings.flag(prefill)}, or raise {findings.flag(level)}",
        )


def _check_ramps(findings: Findings, mode: str) -> None:
    if mode != BURST:
        findings.needs("concurrency_ramp_s", ["concurrency"], _NO_RAMP)
    findings.needs("prefill_ramp_s", ["prefill_concurrency"], _NO_RAMP)
    if any(map(findings.given, TRIGGERS)):
        rates = _for_warmup(findings, _WARMUP_RATES)
        if any(map(findings.given, rates)):
            findings.needs("warmup_concurrency_ramp_s", _for_warmup(findings, _WARMUP_LEVELS), _NO_RAMP)
        findings.needs("warmup_prefill_ramp_s", _for_warmup(findings, _WARMUP_PREFILLS), _NO_RAMP)
        findings.needs("warmup_rate_ramp_s", rates, "the warmup has no rate to raise")
    if findings.typed("ramp") and not any(map(findings.given, (*_RAMPS, *(f"warmup_{ramp}" for ramp in _RAMPS)))):
        ramp, ramps = findings.flag("ramp"), findings.flags(_RAMPS)
        findings.refuse(f"{ramp} says how ramps rise, and none does", f"add {ramps}, or drop {ramp}")


def _for_warmup(findings: Findings, fields: tuple[str, str]) -> tuple[str, ...]:
    """Of the warmup's own option and profiling's those that count for the warmup."""
    return fields[:1] if findings.kernel.warmup_alone else fields


def _check_patterns(findings: Findings, shaped: Callable[[str], bool], pattern: str) -> None:
    kernel = findings.kernel
    for field in ("arrival_pattern", "warmup_arrival_pattern"):
        if getattr(kernel, field) == NO_PATTERN:
            rate = findings.flag("request_rate")
            given = findings.given("request_rate")
            findings.refuse(
                f"{findings.flag(field)} {NO_PATTERN} means no rate, and {rate} is one"
                if given
                else f"{findings.flag(field)} {NO_PATTERN} is what happens without {rate}",
                f"drop {findings.flag(field)}, or drop {rate}" if given else f"drop {findings.flag(field)}",
            )
    if kernel.arrival_smoothness is None:
        return
    warms = any(map(findings.given, TRIGGERS)) and not kernel.warmup_alone
    own = kernel.warmup_arrival_pattern if warms else None
    if not any(map(shaped, [pattern, *([own] if own else [])])):
        smoothness, flag = findings.flag("arrival_smoothness"), findings.flag("arrival_pattern")
        findings.refuse(
            f"{smoothness} shapes gamma arrivals, and {flag} is {pattern}", f"pass {flag} gamma, or drop {smoothness}"
        )


def _check_replay(findings: Findings) -> None:
    kernel = findings.kernel
    schedule = selector(findings, FIXED_SCHEDULE)
    start, end = findings.flag("fixed_start_ms"), findings.flag("fixed_end_ms")
    if kernel.fixed_start_ms is not None and kernel.fixed_auto_offset and findings.typed("fixed_auto_offset"):
        findings.exclusive("fixed_start_ms", "fixed_auto_offset", "each says which recorded time is time zero")
    if kernel.fixed_start_ms is not None and kernel.fixed_end_ms is not None and kernel.fixed_start_ms > kernel.fixed_end_ms:
        findings.refuse(
            f"{start} {kernel.fixed_start_ms} is after {end} {kernel.fixed_end_ms}: nothing is in between",
            f"lower {start}, or raise {end}",
        )
    findings.needs("fixed_schedule", ["input_file"], "a file with timestamps says when each request starts")
    if kernel.sampling not in (None, "sequential"):
        sampling = findings.flag("sampling")
        findings.refuse(
            f"{sampling} {kernel.sampling} and {schedule} exclude each other: the order is the trace's",
            f"drop {sampling}, or write {sampling} sequential",
        )


def _check_users(findings: Findings) -> None:
    kernel = findings.kernel
    rate = findings.flag("user_centric_rate")
    findings.needs("user_centric_rate", ["users"], "the time between a user's turns is their number divided by the rate")
    if not any(map(findings.given, STOPS)):
        findings.refuse(f"{rate} has no end: no stop condition is given", f"add {findings.flags(STOPS)}")
    for field, what in (("session_count", "session"), ("request_count", "request")):
        most = getattr(kernel, field)
        if most is not None and kernel.users is not None and most < kernel.users:
            users, count = findings.flag("users"), findings.flag(field)
            findings.refuse(
                f"{count} {most} is less than {users} {kernel.users}: each user needs a {what}",
                f"raise {count}, or lower {users}",
            )


def _check_warmup(findings: Findings) -> None:
    if any(map(findings.given, TRIGGERS)):
        if findings.kernel.warmup_arrival_pattern != NO_PATTERN:
            rates = _for_warmup(findings, _WARMUP_RATES)
            findings.needs("warmup_arrival_pattern", rates, "without a rate requests follow free slots")
        return
    for field in (
        *("warmup_concurrency", "warmup_prefill_concurrency", "warmup_request_rate", "warmup_arrival_pattern"),
        *("warmup_concurrency_ramp_s", "warmup_prefill_ramp_s", "warmup_rate_ramp_s", "warmup_alone"),
    ):
        findings.needs(field, TRIGGERS, "without one no warmup runs")
