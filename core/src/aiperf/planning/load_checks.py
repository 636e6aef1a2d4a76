"""Load options that can't go together, beyond what the mode decides: counts, limits, ramps, traces, users, warmup."""

from __future__ import annotations

from collections.abc import Callable

from aiperf.planning.modes import BURST, FIXED_SCHEDULE, NO_PATTERN, TRIGGERS, USER_CENTRIC, selector
from aiperf.planning.problems import Problems

STOPS = ("request_count", "session_count", "benchmark_duration_s")

_WARMUP_RATES = ("warmup_request_rate", "request_rate")
_WARMUP_LEVELS = ("warmup_concurrency", "concurrency")
_WARMUP_PREFILLS = ("warmup_prefill_concurrency", "prefill_concurrency")
_RAMPS = ("concurrency_ramp_s", "prefill_ramp_s", "rate_ramp_s")
_NO_RAMP = "there is nothing to ramp"


def check(problems: Problems, mode: str, shaped: Callable[[str], bool], pattern: str) -> None:
    """Refuse contradictory load options.

    *shaped* tells whether smoothness matters to an arrival pattern.  *pattern*: the profiling phase's.
    """
    _check_stops(problems)
    _check_limits(problems, mode)
    _check_ramps(problems, mode)
    _check_patterns(problems, shaped, pattern)
    if mode == FIXED_SCHEDULE:
        _check_replay(problems)
    if mode == USER_CENTRIC:
        _check_users(problems)
    _check_warmup(problems)
    problems.needs("cancellation_delay_s", ["cancellation_pct"], "it says when to cancel, and nothing says how many")


def _check_stops(problems: Problems) -> None:
    problems.exclusive("request_count", "session_count", "both are counts to stop at")
    problems.exclusive("warmup_request_count", "warmup_session_count", "both are counts that end the warmup")
    problems.needs("benchmark_grace_s", ["benchmark_duration_s"], "the grace period follows the duration")
    problems.needs("warmup_grace_s", ["warmup_duration_s"], "the grace period follows the duration")
    for field in ("request_count", "session_count"):
        for prefix in ("", "warmup_"):
            _check_at_most(problems, f"{prefix}concurrency", f"{prefix}{field}", "can never be reached with")


def _check_at_most(problems: Problems, field: str, limit: str, relation: str, why: str = "") -> None:
    """Refuse a value of *field* above the value of *limit*; *relation* is the verb between the two."""
    value, most = getattr(problems.kernel, field), getattr(problems.kernel, limit)
    if value is not None and most is not None and value > most:
        flag, other = problems.flag(field), problems.flag(limit)
        problems.refuse(f"{flag} {value} {relation} {other} {most}{why}", f"lower {flag}, or raise {other}")


def _check_limits(problems: Problems, mode: str) -> None:
    level = next(filter(problems.given, _for_warmup(problems, _WARMUP_LEVELS)), "warmup_concurrency")
    for prefill, limit in (("prefill_concurrency", "concurrency"), ("warmup_prefill_concurrency", level)):
        problems.needs(prefill, ["streaming"], "the first token is only seen in a stream")
        _check_at_most(problems, prefill, limit, "is more than", ", which it is a part of")


def _check_ramps(problems: Problems, mode: str) -> None:
    if mode != BURST:
        problems.needs("concurrency_ramp_s", ["concurrency"], _NO_RAMP)
    problems.needs("prefill_ramp_s", ["prefill_concurrency"], _NO_RAMP)
    if any(map(problems.given, TRIGGERS)):
        rates = _for_warmup(problems, _WARMUP_RATES)
        if any(map(problems.given, rates)):
            problems.needs("warmup_concurrency_ramp_s", _for_warmup(problems, _WARMUP_LEVELS), _NO_RAMP)
        problems.needs("warmup_prefill_ramp_s", _for_warmup(problems, _WARMUP_PREFILLS), _NO_RAMP)
        problems.needs("warmup_rate_ramp_s", rates, "the warmup has no rate to raise")
    if problems.typed("ramp") and not any(map(problems.given, (*_RAMPS, *(f"warmup_{ramp}" for ramp in _RAMPS)))):
        ramp, ramps = problems.flag("ramp"), problems.flags(_RAMPS)
        problems.refuse(f"{ramp} says how ramps rise, and none does", f"add {ramps}, or drop {ramp}")


def _for_warmup(problems: Problems, fields: tuple[str, str]) -> tuple[str, ...]:
    """The fields that count for the warmup: its own, and profiling's unless the warmup stands alone."""
    return fields[:1] if problems.kernel.warmup_alone else fields


def _check_patterns(problems: Problems, shaped: Callable[[str], bool], pattern: str) -> None:
    kernel = problems.kernel
    for field in ("arrival_pattern", "warmup_arrival_pattern"):
        flag, rate = f"{problems.flag(field)} {NO_PATTERN}", problems.flag("request_rate")
        drop = f"drop {problems.flag(field)}"
        if getattr(kernel, field) == NO_PATTERN and problems.given("request_rate"):
            problems.refuse(f"{flag} means no rate, and {rate} is one", f"{drop}, or drop {rate}")
        elif getattr(kernel, field) == NO_PATTERN:
            problems.refuse(f"{flag} is what happens without {rate}", drop)
    if kernel.arrival_smoothness is None:
        return
    warms = any(map(problems.given, TRIGGERS)) and not kernel.warmup_alone
    own = kernel.warmup_arrival_pattern if warms else None
    if not any(map(shaped, [pattern, *([own] if own else [])])):
        smoothness, flag = problems.flag("arrival_smoothness"), problems.flag("arrival_pattern")
        problems.refuse(
            f"{smoothness} shapes gamma arrivals, and {flag} is {pattern}", f"pass {flag} gamma, or drop {smoothness}"
        )


def _check_replay(problems: Problems) -> None:
    kernel = problems.kernel
    schedule = selector(problems, FIXED_SCHEDULE)
    if kernel.fixed_start_ms is not None and kernel.fixed_auto_offset and problems.typed("fixed_auto_offset"):
        problems.exclusive("fixed_start_ms", "fixed_auto_offset", "each says which recorded time is time zero")
    _check_at_most(problems, "fixed_start_ms", "fixed_end_ms", "is after", ": nothing is in between")
    if not problems.given("input_file"):
        file = problems.flag("input_file")
        problems.refuse(
            f"{schedule} needs {file}: a file with timestamps says when each request starts", f"add {file}, or drop {schedule}"
        )
    if kernel.sampling not in (None, "sequential"):
        sampling = problems.flag("sampling")
        problems.refuse(
            f"{sampling} {kernel.sampling} and {schedule} exclude each other: the order is the trace's",
            f"drop {sampling}, or write {sampling} sequential",
        )


def _check_users(problems: Problems) -> None:
    kernel = problems.kernel
    rate = problems.flag("user_centric_rate")
    problems.needs("user_centric_rate", ["users"], "the time between a user's turns is their number divided by the rate")
    if not any(map(problems.given, STOPS)):
        problems.refuse(f"{rate} has no end: no stop condition is given", f"add {problems.flags(STOPS)}")
    for field, what in (("session_count", "session"), ("request_count", "request")):
        most = getattr(kernel, field)
        if most is not None and kernel.users is not None and most < kernel.users:
            users, count = problems.flag("users"), problems.flag(field)
            problems.refuse(
                f"{count} {most} is less than {users} {kernel.users}: each user needs a {what}",
                f"raise {count}, or lower {users}",
            )


def _check_warmup(problems: Problems) -> None:
    if any(map(problems.given, TRIGGERS)):
        if problems.kernel.warmup_arrival_pattern != NO_PATTERN:
            rates = _for_warmup(problems, _WARMUP_RATES)
            problems.needs("warmup_arrival_pattern", rates, "without a rate requests follow free slots")
        return
    for field in (
        *("warmup_concurrency", "warmup_prefill_concurrency", "warmup_request_rate", "warmup_arrival_pattern"),
        *("warmup_concurrency_ramp_s", "warmup_prefill_ramp_s", "warmup_rate_ramp_s", "warmup_alone"),
    ):
        problems.needs(field, TRIGGERS, "without one no warmup runs")
