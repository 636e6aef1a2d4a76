"""The scheduling mode that the load options choose, and the load options that can't go together.

Which rules hold depends on what the schedule follows, as its manifest declares
(:class:`aiperf.sdk.schedule.ScheduleFacts`).  They come first, then counts, limits, ramps, traces, users, warmup.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from aiperf.foreign import BURST, FIXED_SCHEDULE, REQUEST_RATE, SAMPLER, SHAPED_ARRIVALS, USER_CENTRIC
from aiperf.planning.problems import Draft
from aiperf.sdk.schedule import FREE_SLOTS, RATE, TRACE, USERS

IMPLIED = {FREE_SLOTS: BURST, RATE: REQUEST_RATE, TRACE: FIXED_SCHEDULE, USERS: USER_CENTRIC}
"""The schedule that options choose without ``--scheduling-mode``, by what they have the load follow."""

NO_PATTERN = "concurrency_burst"
"""What the reference calls the pattern of a burst; nobody can choose it."""

TRIGGERS = ("warmup_request_count", "warmup_session_count", "warmup_duration_s")
"""Options any of which makes a warmup run, as a recorded one (:func:`warms`) does without them."""

STOPS = ("request_count", "session_count", "benchmark_duration_s")
_RATES = ("request_rate", "request_rate_series")
_OFFSETS = ("fixed_auto_offset", "fixed_start_ms", "fixed_end_ms")
_WARMUP_OFFSETS = ("warmup_auto_offset", "warmup_start_ms", "warmup_end_ms")
_RAMPS = ("concurrency_ramp_s", "prefill_ramp_s", "rate_ramp_s")
_OF_WARMUP = (
    *("warmup_concurrency", "warmup_prefill_concurrency", "warmup_request_rate", "warmup_arrival_pattern"),
    *("warmup_user_centric_rate", "warmup_users"),
    *(*(f"warmup_{ramp}" for ramp in _RAMPS), "warmup_alone"),
)  # fmt: skip
"""What a warmup has of its own."""
_NEEDS = {
    RATE: ("request_rate", "it starts requests at a rate"),
    USERS: ("user_centric_rate", "it starts requests at a rate over all users"),
}
"""The option without which there is nothing to follow, and the reason."""


class _Pacing(NamedTuple):
    """An option that paces requests: what the load follows with it alone, what would bring that about, and why it must."""

    follows: str
    needs: tuple[str, ...] = ()
    why: str = ""


_FREE = "without a rate requests follow free slots"
_NO_RAMP = "there is nothing to ramp"
_PACING = {
    "request_rate": _Pacing(RATE), "request_rate_series": _Pacing(RATE),
    "arrival_pattern": _Pacing(RATE, _RATES[:1], _FREE), "arrival_smoothness": _Pacing(RATE, _RATES[:1], _FREE),
    "rate_ramp_s": _Pacing(RATE, _RATES[:1], "there is no other rate to raise"),
    "user_centric_rate": _Pacing(USERS),
    "users": _Pacing(USERS, ("user_centric_rate",), "only there do users take turns"),
}  # fmt: skip
_TURNS_OF_USERS = "the time between a user's turns is their number divided by the rate"
_INSTEAD = {
    TRACE: "the trace says when each request starts",
    USERS: "its users keep a constant time between their turns",
}
"""What leaves nothing to pace, and why."""


def schedule_of(draft: Draft, *, promoted: bool) -> str:
    """The schedule of ``--scheduling-mode``, else the implied one.  A contradiction between the two is refused.

    *promoted*: the input file is a trace that counts like the flag of a fixed schedule.
    """
    name, kernel = draft.kernel.scheduling_mode, draft.kernel
    implied: str = RATE if any(map(draft.given, _RATES)) else FREE_SLOTS
    if kernel.fixed_schedule or (promoted and name is None):
        implied = TRACE
    elif kernel.user_centric_rate is not None:
        implied = USERS
    if name is None:
        return IMPLIED[implied]
    follows = declared(draft, name)
    if follows == implied:
        return name
    flag, needs = draft.flag("scheduling_mode"), _NEEDS.get(follows or "")
    if implied == FREE_SLOTS and needs is not None:
        draft.refuse_alone(f"{flag} {name}", draft.flag(needs[0]), needs[1], drop=flag)
    if implied != FREE_SLOTS and (follows or implied != RATE):
        other, why = selector(draft, implied), f"selects the mode {IMPLIED[implied]}"
        draft.refuse_both(f"{flag} {name}", other, f"{other} {why}", f"drop {flag}, or drop {other}")
        return IMPLIED[implied]
    if follows == TRACE and draft.typed("fixed_schedule"):
        draft.refuse(f"{flag} {name} and --no-fixed-schedule exclude each other", "drop one of them")
    return name


def declared(draft: Draft, schedule: str) -> str | None:
    """What the schedule follows, as its manifest declares; None where it declares nothing.

    An implied one follows what implies it, so that the rules hold where it isn't installed.
    """
    plugin = draft.registry.find("schedules", schedule)
    if plugin is None:
        return next((follows for follows, name in IMPLIED.items() if name == schedule), None)
    follows: str | None = plugin.capabilities.get("follows")
    return follows


def warms_itself(draft: Draft, schedule: str) -> bool:
    """Whether a warmup belongs to the schedule, as its manifest declares."""
    plugin = draft.registry.find("schedules", schedule)
    return plugin is not None and bool(plugin.capabilities.get("warms"))


def check_drivers(draft: Draft, schedules: Collection[str]) -> None:
    """Refuse what was typed for a driver that serves none of the *schedules*."""
    flag, settings = draft.flag("scheduling_mode"), draft.settings
    for driver in draft.registry.all("drivers"):
        served = driver.capabilities.get("schedule")
        if served is None or served in schedules:
            continue
        for field, typed in settings.typed.items():
            if field.startswith(f"{driver.key}."):
                draft.refuse_alone(typed, f"{flag} {served}", "it is an option of that mode alone")


def selector(draft: Draft, follows: str) -> str:
    """The option that has the load follow this, as a message names it."""
    name = draft.kernel.scheduling_mode
    if name is not None and declared(draft, name) == follows:
        return f"{draft.flag('scheduling_mode')} {name}"
    if follows == TRACE and not draft.given("fixed_schedule"):
        return f"the timestamps of {draft.flag('input_file')} {draft.kernel.input_file}"
    if follows == RATE:
        return draft.flag("request_rate" if draft.given("request_rate") else "request_rate_series")
    return draft.flag({TRACE: "fixed_schedule", USERS: "user_centric_rate", FREE_SLOTS: "concurrency"}[follows])


def fixed(draft: Draft) -> bool:
    """Whether an option asks for recorded times."""
    name = draft.kernel.scheduling_mode
    return draft.given("fixed_schedule") or (name is not None and declared(draft, name) == TRACE)


def warms(draft: Draft) -> bool:
    """Whether an option makes a warmup run."""
    return any(map(draft.given, (*TRIGGERS, "warmup_fixed_schedule")))


def check(draft: Draft, follows: str, pattern: str, *, once: bool = False, warms_alone: str | None = None) -> None:
    """Refuse load options that have no meaning in a load that *follows* this, or contradict each other.

    *pattern*: the profiling phase's.  *once*: it ends with the data set.  *warms_alone*: the schedule to which a warmup
    belongs, so that no option makes another one.
    """
    if warms_alone is not None:
        _refuse_warmups(draft, warms_alone)
    warmup = warms(draft) and warms_alone is None
    _check_pacing(draft, follows, shaped_warmup=warmup and not draft.kernel.warmup_alone and draft.given("warmup_request_rate"))
    _check_counts(draft)
    if warms_alone is None:
        draft.needs("warmup_grace_s", ["warmup_duration_s"], "the grace period follows the duration")
    _check_ramps(draft, follows, warms=warmup)
    _check_patterns(draft, pattern, warms=warmup)
    if follows == TRACE:
        _check_replay(draft)
    else:
        _refuse_offsets(draft, _OFFSETS, "fixed_schedule")
    if follows == USERS:
        _check_users(draft, once=once)
    if draft.given("warmup_fixed_schedule"):
        _check_warmup_replay(draft)
    else:
        _refuse_offsets(draft, _WARMUP_OFFSETS, "warmup_fixed_schedule")
    if warmup:
        _check_warmup_users(draft)
    elif warms_alone is None:
        for field in _OF_WARMUP:
            draft.needs(field, TRIGGERS, "without one no warmup runs")


def _refuse_warmups(draft: Draft, schedule: str) -> None:
    """Refuse options of another warmup than that of the schedule, whose rates and limits are those of the profiling phase."""
    flag = draft.flag("scheduling_mode")
    for field in (*TRIGGERS, "warmup_fixed_schedule", *_OF_WARMUP):
        if draft.given(field):
            why = f"a warmup belongs to {schedule}, with the concurrency of the load"
            draft.refuse_both(draft.flag(field), f"{flag} {schedule}", why, f"drop {draft.flag(field)}")


def _check_pacing(draft: Draft, follows: str, *, shaped_warmup: bool) -> None:
    """*shaped_warmup*: the smoothness serves a warmup with a rate of its own, which has no other flag for it."""
    for field, pacing in _PACING.items():
        if follows == pacing.follows or not draft.given(field):
            continue
        if follows in _INSTEAD:
            flag, other = draft.flag(field), selector(draft, follows)
            why = _INSTEAD[follows] if pacing.needs else f"they are two scheduling modes, and {_INSTEAD[follows]}"
            replayed = follows == TRACE and not fixed(draft)
            instead = "pass --no-fixed-schedule to leave the recorded times alone" if replayed else f"drop {other}"
            draft.refuse_both(flag, other, why, f"drop {flag}, or {instead}")
        # _check_patterns refuses the pattern of a burst.
        elif not (field == "arrival_pattern" and draft.kernel.arrival_pattern == NO_PATTERN) and not (
            field == "arrival_smoothness" and shaped_warmup
        ):
            draft.needs(field, pacing.needs, pacing.why)
    if follows == RATE and not draft.given("request_rate"):
        draft.needs("rate_ramp_s", ["request_rate"], f"{draft.flag('request_rate_series')} says itself how the rate rises")


def _check_counts(draft: Draft) -> None:
    """Refuse counts, durations and limits that exclude each other or can't be reached."""
    draft.exclusive(*_RATES, "both say the rate")
    draft.exclusive("request_count", "session_count", "both are counts to stop at")
    draft.exclusive("warmup_request_count", "warmup_session_count", "both are counts that end the warmup")
    draft.needs("benchmark_grace_s", ["benchmark_duration_s"], "the grace period follows the duration")
    draft.needs("cancellation_delay_s", ["cancellation_pct"], "it says when to cancel, and nothing says how many")
    for field in ("request_count", "session_count"):
        for prefix in ("", "warmup_"):
            draft.at_most(f"{prefix}concurrency", f"{prefix}{field}", "can never be reached with")
    level = next(filter(draft.given, _for_warmup(draft, "concurrency")), "warmup_concurrency")
    for prefill, limit in (("prefill_concurrency", "concurrency"), ("warmup_prefill_concurrency", level)):
        draft.needs(prefill, ["streaming"], "the first token is only seen in a stream")
        draft.at_most(prefill, limit, "is more than", ", which it is a part of")


def _check_ramps(draft: Draft, follows: str, *, warms: bool) -> None:
    if follows != FREE_SLOTS:
        draft.needs("concurrency_ramp_s", ["concurrency"], _NO_RAMP)
    draft.needs("prefill_ramp_s", ["prefill_concurrency"], _NO_RAMP)
    if warms:
        rates = _for_warmup(draft, "request_rate")
        if any(map(draft.given, rates)):
            draft.needs("warmup_concurrency_ramp_s", _for_warmup(draft, "concurrency"), _NO_RAMP)
        draft.needs("warmup_prefill_ramp_s", _for_warmup(draft, "prefill_concurrency"), _NO_RAMP)
        draft.needs("warmup_rate_ramp_s", rates, "the warmup has no rate to raise")
    if draft.typed("ramp") and not any(map(draft.given, (*_RAMPS, *(f"warmup_{ramp}" for ramp in _RAMPS)))):
        ramp, ramps = draft.flag("ramp"), draft.flags(_RAMPS)
        draft.refuse(f"{ramp} says how ramps rise, and none does", f"add {ramps}, or drop {ramp}")


def _for_warmup(draft: Draft, field: str) -> tuple[str, ...]:
    """The options that count for the warmup: its own, and profiling's *field* unless the warmup stands alone."""
    return (f"warmup_{field}",) if draft.kernel.warmup_alone else (f"warmup_{field}", field)


def _check_patterns(draft: Draft, pattern: str, *, warms: bool) -> None:
    kernel, registry = draft.kernel, draft.registry
    if warms and kernel.warmup_arrival_pattern != NO_PATTERN:
        draft.needs("warmup_arrival_pattern", _for_warmup(draft, "request_rate"), _FREE)
    for field in ("arrival_pattern", "warmup_arrival_pattern"):
        if getattr(kernel, field) == NO_PATTERN:
            flag, rate, drop = f"{draft.flag(field)} {NO_PATTERN}", draft.flag("request_rate"), f"drop {draft.flag(field)}"
            if draft.given("request_rate"):
                draft.refuse(f"{flag} means no rate, and {rate} is one", f"{drop}, or drop {rate}")
            else:
                draft.refuse(f"{flag} is what happens without {rate}", drop)
    own = kernel.warmup_arrival_pattern if warms and not kernel.warmup_alone else None
    used = [registry.find("arrivals", name) for name in (pattern, own) if name]
    # An unknown pattern is reported elsewhere.
    if kernel.arrival_smoothness is not None and all(each and not each.capabilities.get("smoothness") for each in used):
        smoothness, flag = draft.flag("arrival_smoothness"), draft.flag("arrival_pattern")
        draft.refuse(
            f"{smoothness} shapes {SHAPED_ARRIVALS} arrivals, and {flag} is {pattern}",
            f"pass {flag} {SHAPED_ARRIVALS}, or drop {smoothness}",
        )


def _check_replay(draft: Draft) -> None:
    kernel, schedule = draft.kernel, selector(draft, TRACE)
    _check_window(draft, schedule, *_OFFSETS)
    sampler = None if kernel.sampling is None else draft.registry.find("samplers", kernel.sampling)
    if sampler is not None and not sampler.capabilities.get("in_order"):  # an unknown one is reported elsewhere
        flag, why = draft.flag("sampling"), "the order is the trace's"
        draft.refuse_both(f"{flag} {kernel.sampling}", schedule, why, f"drop {flag}, or write {flag} {SAMPLER}")


def _check_warmup_replay(draft: Draft) -> None:
    _check_window(draft, draft.flag("warmup_fixed_schedule"), *_WARMUP_OFFSETS)
    for field in ("warmup_request_rate", "warmup_arrival_pattern", "warmup_rate_ramp_s", "warmup_user_centric_rate"):
        draft.exclusive("warmup_fixed_schedule", field, _INSTEAD[TRACE])


def _check_window(draft: Draft, schedule: str, auto: str, start: str, end: str) -> None:
    """The source of recorded times, and the window of a trace.  *auto*, *start*, *end*: options."""
    if getattr(draft.kernel, auto) and draft.typed(auto):
        draft.exclusive(start, auto, "each says which recorded time is time zero")
    draft.at_most(start, end, "is after", ": nothing is in between")
    if not draft.given("input_file") and not draft.given("public_dataset"):
        draft.refuse_alone(schedule, draft.flag("input_file"), "a file with timestamps says when each request starts")


def _refuse_offsets(draft: Draft, fields: tuple[str, ...], switch: str) -> None:
    """Refuse the window of a trace that is not replayed.  *switch*: the option that would."""
    if given := [draft.flag(field) for field in fields if draft.typed(field)]:
        flags, schedule = " and ".join(given), draft.flag(switch)
        needs = "needs" if len(given) == 1 else "need"
        draft.refuse(f"{flags} {needs} {schedule}: only a trace has times to shift", f"add {schedule}, or drop {flags}")


def _check_warmup_users(draft: Draft) -> None:
    """Users of a warmup: its own, or those of the profiling phase."""
    draft.needs("warmup_users", ["warmup_user_centric_rate"], _PACING["users"].why)
    if not draft.given("warmup_user_centric_rate"):
        return
    users = _for_warmup(draft, "users")
    draft.needs("warmup_user_centric_rate", users, _TURNS_OF_USERS)
    for field in ("warmup_request_rate", "warmup_arrival_pattern"):
        draft.exclusive("warmup_user_centric_rate", field, _INSTEAD[USERS])
    _check_each_user(draft, next(filter(draft.given, users), "warmup_users"), "warmup_")


def _check_users(draft: Draft, *, once: bool) -> None:
    draft.needs("user_centric_rate", ["users"], _TURNS_OF_USERS)
    if not once and not any(map(draft.given, STOPS)):
        rate = draft.flag("user_centric_rate")
        draft.refuse(f"{rate} has no end: no stop condition is given", f"add {draft.flags(STOPS)}")
    _check_each_user(draft, "users", "")


def _check_each_user(draft: Draft, named: str, prefix: str) -> None:
    """*named*: the option with the number of users; *prefix*: of the phase's counts."""
    users = getattr(draft.kernel, named)
    for field, what in ((f"{prefix}session_count", "session"), (f"{prefix}request_count", "request")):
        most = getattr(draft.kernel, field)
        if most is not None and users is not None and most < users:
            flag, count = draft.flag(named), draft.flag(field)
            why = f"each user needs a {what}"
            draft.refuse(f"{count} {most} is less than {flag} {users}: {why}", f"raise {count}, or lower {flag}")
