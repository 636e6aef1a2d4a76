"""The four scheduling modes: which one the options choose, and which options mean something in it."""

from __future__ import annotations

from typing import NamedTuple

from aiperf.findings import Findings

BURST, REQUEST_RATE, FIXED_SCHEDULE, USER_CENTRIC = "burst", "request_rate", "fixed_schedule", "user_centric"

NO_PATTERN = "concurrency_burst"
"""What the reference calls the pattern of a burst; nobody can choose it."""

TRIGGERS = ("warmup_request_count", "warmup_session_count", "warmup_duration_s")
"""Options any of which makes a warmup run."""

RATES = ("request_rate", "request_rate_series")
_OFFSETS = ("fixed_auto_offset", "fixed_start_ms", "fixed_end_ms")


def chosen(findings: Findings, *, promoted: bool) -> str:
    """The mode; a trace that is *promoted* to a fixed schedule counts like the flag."""
    kernel = findings.kernel
    if kernel.fixed_schedule or promoted:
        return FIXED_SCHEDULE
    if kernel.user_centric_rate is not None:
        return USER_CENTRIC
    return REQUEST_RATE if any(map(findings.given, RATES)) else BURST


class _Pacing(NamedTuple):
    """An option that paces requests: the one mode it belongs to, what would bring that mode about, and why it must."""

    mode: str
    needs: tuple[str, ...] = ()
    why: str = ""


_FREE = "without a rate requests follow free slots"
_PACING = {
    "request_rate": _Pacing(REQUEST_RATE),
    "request_rate_series": _Pacing(REQUEST_RATE),
    "arrival_pattern": _Pacing(REQUEST_RATE, RATES[:1], _FREE),
    "arrival_smoothness": _Pacing(REQUEST_RATE, RATES[:1], _FREE),
    "rate_ramp_s": _Pacing(REQUEST_RATE, RATES[:1], "there is no other rate to raise"),
    "user_centric_rate": _Pacing(USER_CENTRIC),
    "users": _Pacing(USER_CENTRIC, ("user_centric_rate",), "only there do users take turns"),
}
_INSTEAD = {
    FIXED_SCHEDULE: "the trace says when each request starts",
    USER_CENTRIC: "its users keep a constant time between their turns",
}
"""Modes that leave nothing to pace, and why."""


def check(findings: Findings, mode: str) -> None:
    """Refuse what has no meaning in the mode, and what selects another one."""
    findings.exclusive(*RATES, "both say the rate")
    for field, pacing in _PACING.items():
        if mode == pacing.mode or not findings.given(field):
            continue
        says_burst = field == "arrival_pattern" and findings.kernel.arrival_pattern == NO_PATTERN
        serves_warmup = field == "arrival_smoothness" and _warmup_is_shaped(findings)
        if mode in _INSTEAD:
            _refuse_beside(findings, field, mode)
        elif not says_burst and not serves_warmup:  # of the one something else is said
            findings.needs(field, pacing.needs, pacing.why)
    if mode == REQUEST_RATE and not findings.given("request_rate"):
        series = findings.flag("request_rate_series")
        findings.needs("rate_ramp_s", ["request_rate"], f"{series} says itself how the rate rises")
    if mode != FIXED_SCHEDULE:
        _refuse_offsets(findings)


def _refuse_beside(findings: Findings, field: str, mode: str) -> None:
    flag, other = findings.flag(field), selector(findings, mode)
    why = _INSTEAD[mode] if _PACING[field].needs else f"they are two scheduling modes, and {_INSTEAD[mode]}"
    replayed = mode == FIXED_SCHEDULE and not findings.given("fixed_schedule")
    instead = "pass --no-fixed-schedule to leave the recorded times alone" if replayed else f"drop {other}"
    findings.refuse(f"{flag} and {other} exclude each other: {why}", f"drop {flag}, or {instead}")


def selector(findings: Findings, mode: str) -> str:
    """What made it this mode, as a message names it."""
    if mode == FIXED_SCHEDULE and not findings.given("fixed_schedule"):
        return f"the timestamps of {findings.flag('input_file')} {findings.kernel.input_file}"
    if mode == REQUEST_RATE:
        return findings.flag("request_rate" if findings.given("request_rate") else "request_rate_series")
    return findings.flag({FIXED_SCHEDULE: "fixed_schedule", USER_CENTRIC: "user_centric_rate", BURST: "concurrency"}[mode])


def _warmup_is_shaped(findings: Findings) -> bool:
    """Whether the smoothness serves a warmup with a rate of its own, which has no other flag for it."""
    alone = findings.kernel.warmup_alone
    return not alone and findings.given("warmup_request_rate") and any(map(findings.given, TRIGGERS))


def _refuse_offsets(findings: Findings) -> None:
    given = [findings.flag(field) for field in _OFFSETS if findings.typed(field)]
    if given:
        schedule = findings.flag("fixed_schedule")
        findings.refuse(
            f"{' and '.join(given)} {'needs' if len(given) == 1 else 'need'} {schedule}: only a trace has times to shift",
            f"add {schedule}, or drop {' and '.join(given)}",
        )
