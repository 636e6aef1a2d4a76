"""The scheduling modes: the mode that the options choose, and the options that have a meaning in it."""

from __future__ import annotations

from typing import NamedTuple

from aiperf.planning.problems import Problems

BURST, REQUEST_RATE, FIXED_SCHEDULE, USER_CENTRIC = "burst", "request_rate", "fixed_schedule", "user_centric"

NO_PATTERN = "concurrency_burst"
"""What the reference calls the pattern of a burst; nobody can choose it."""

TRIGGERS = ("warmup_request_count", "warmup_session_count", "warmup_duration_s")
"""Options any of which makes a warmup run."""

RATES = ("request_rate", "request_rate_series")
_OFFSETS = ("fixed_auto_offset", "fixed_start_ms", "fixed_end_ms")


OWN = (BURST, REQUEST_RATE, FIXED_SCHEDULE, USER_CENTRIC)


def chosen(problems: Problems, *, promoted: bool) -> str:
    """The mode of ``--scheduling-mode``, else the implied mode.  A contradiction between the two is refused."""
    name = problems.kernel.scheduling_mode
    mode = _implied(problems, promoted=promoted and name is None)
    if name is None or name == mode:
        return mode
    flag, needs = problems.flag("scheduling_mode"), _NEEDS.get(name)
    if mode == BURST and needs is not None:
        wanted = problems.flag(needs[0])
        problems.refuse(f"{flag} {name} needs {wanted}: {needs[1]}", f"add {wanted}, or drop {flag}")
    if mode != BURST and (name in OWN or mode != REQUEST_RATE):
        other = selector(problems, mode)
        problems.refuse(
            f"{flag} {name} and {other} exclude each other: {other} selects the mode {mode}", f"drop {flag}, or drop {other}"
        )
        return mode
    if name == FIXED_SCHEDULE and problems.typed("fixed_schedule"):
        problems.refuse(f"{flag} {name} and --no-fixed-schedule exclude each other", "drop one of them")
    return name


def basis(mode: str) -> str:
    """The built-in mode whose rules hold for the mode: its own; for a plugin's, those of a request rate."""
    return mode if mode in OWN else REQUEST_RATE


def _implied(problems: Problems, *, promoted: bool) -> str:
    """The mode that the other options select; a trace *promoted* to a fixed schedule counts like the flag."""
    kernel = problems.kernel
    if kernel.fixed_schedule or promoted:
        return FIXED_SCHEDULE
    if kernel.user_centric_rate is not None:
        return USER_CENTRIC
    return REQUEST_RATE if any(map(problems.given, RATES)) else BURST


class _Pacing(NamedTuple):
    """An option that paces requests: the one mode it belongs to, what would bring that mode about, and why it must."""

    mode: str
    needs: tuple[str, ...] = ()
    why: str = ""


_NEEDS = {
    REQUEST_RATE: ("request_rate", "it starts requests at a rate"),
    USER_CENTRIC: ("user_centric_rate", "it starts requests at a rate over all users"),
}
"""The option that each built-in mode is made of, and the reason."""

_FREE = "without a rate requests follow free slots"
_PACING = {
    "request_rate": _Pacing(REQUEST_RATE), "request_rate_series": _Pacing(REQUEST_RATE),
    "arrival_pattern": _Pacing(REQUEST_RATE, RATES[:1], _FREE), "arrival_smoothness": _Pacing(REQUEST_RATE, RATES[:1], _FREE),
    "rate_ramp_s": _Pacing(REQUEST_RATE, RATES[:1], "there is no other rate to raise"),
    "user_centric_rate": _Pacing(USER_CENTRIC),
    "users": _Pacing(USER_CENTRIC, ("user_centric_rate",), "only there do users take turns"),
}
_INSTEAD = {
    FIXED_SCHEDULE: "the trace says when each request starts",
    USER_CENTRIC: "its users keep a constant time between their turns",
}
"""Modes that leave nothing to pace, and why."""


def check(problems: Problems, mode: str) -> None:
    """Refuse what has no meaning in the mode, and what selects another one."""
    problems.exclusive(*RATES, "both say the rate")
    for field, pacing in _PACING.items():
        if mode == pacing.mode or not problems.given(field):
            continue
        says_burst = field == "arrival_pattern" and problems.kernel.arrival_pattern == NO_PATTERN
        serves_warmup = field == "arrival_smoothness" and _warmup_is_shaped(problems)
        if mode in _INSTEAD:
            _refuse_beside(problems, field, mode)
        elif not says_burst and not serves_warmup:  # of the one something else is said
            problems.needs(field, pacing.needs, pacing.why)
    if mode == REQUEST_RATE and not problems.given("request_rate"):
        series = problems.flag("request_rate_series")
        problems.needs("rate_ramp_s", ["request_rate"], f"{series} says itself how the rate rises")
    if mode != FIXED_SCHEDULE:
        _refuse_offsets(problems)


def _refuse_beside(problems: Problems, field: str, mode: str) -> None:
    flag, other = problems.flag(field), selector(problems, mode)
    why = _INSTEAD[mode] if _PACING[field].needs else f"they are two scheduling modes, and {_INSTEAD[mode]}"
    replayed = mode == FIXED_SCHEDULE and not fixed(problems)
    instead = "pass --no-fixed-schedule to leave the recorded times alone" if replayed else f"drop {other}"
    problems.refuse(f"{flag} and {other} exclude each other: {why}", f"drop {flag}, or {instead}")


def selector(problems: Problems, mode: str) -> str:
    """What made it this mode, as a message names it."""
    if problems.kernel.scheduling_mode == mode:
        return f"{problems.flag('scheduling_mode')} {mode}"
    if mode == FIXED_SCHEDULE and not problems.given("fixed_schedule"):
        return f"the timestamps of {problems.flag('input_file')} {problems.kernel.input_file}"
    if mode == REQUEST_RATE:
        return problems.flag("request_rate" if problems.given("request_rate") else "request_rate_series")
    return problems.flag({FIXED_SCHEDULE: "fixed_schedule", USER_CENTRIC: "user_centric_rate", BURST: "concurrency"}[mode])


def fixed(problems: Problems) -> bool:
    """Whether an option asks for a fixed schedule."""
    return problems.given("fixed_schedule") or problems.kernel.scheduling_mode == FIXED_SCHEDULE


def _warmup_is_shaped(problems: Problems) -> bool:
    """Whether the smoothness serves a warmup with a rate of its own, which has no other flag for it."""
    alone = problems.kernel.warmup_alone
    return not alone and problems.given("warmup_request_rate") and any(map(problems.given, TRIGGERS))


def _refuse_offsets(problems: Problems) -> None:
    given = [problems.flag(field) for field in _OFFSETS if problems.typed(field)]
    if given:
        schedule = problems.flag("fixed_schedule")
        problems.refuse(
            f"{' and '.join(given)} {'needs' if len(given) == 1 else 'need'} {schedule}: only a trace has times to shift",
            f"add {schedule}, or drop {' and '.join(given)}",
        )
