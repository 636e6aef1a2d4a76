"""From load options to phases: the mode, what a warmup inherits, and the defaults that depend on other options."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec

from aiperf.errors import ConfigError
from aiperf.foreign import ARRIVALS, BURST, REQUEST_RATE, SHAPED_ARRIVALS
from aiperf.planning import load_checks
from aiperf.planning.kernel_options import KernelOptions
from aiperf.planning.load_checks import IMPLIED, NO_PATTERN, STOPS
from aiperf.planning.problems import Draft
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.plan import PhasePlan, Replay
from aiperf.sdk.schedule import FREE_SLOTS, RATE, TRACE, USERS

NS_PER_S = 1_000_000_000

_GRACE_S = 30.0
_ENTRIES = 100
"""Entries of a data set, and sessions of a warmup, where no option says how many."""
_SERIES_FORM = "write [[0, 5], [60, 50]]: from 5 requests/s at the start to 50 after a minute"
_TYPES = {BURST: "concurrency"}
"""The reference's words for modes."""


def phases(draft: Draft, *, promoted: bool, once: bool = False) -> tuple[PhasePlan, ...]:
    """Warmup, where it is requested, then profiling.  They use different entries of the data set.

    *promoted*: the input file is a trace that is replayed without a flag.  *once*: entries are used once, and the build adds
    the stop condition.  After an error in *draft* the result serves only to find more errors.
    """
    kernel = draft.kernel
    schedule = load_checks.schedule_of(draft, promoted=promoted)
    own = schedule if load_checks.warms_itself(draft, schedule) else None
    follows = load_checks.declared(draft, schedule) or RATE
    load_checks.check(draft, follows, _pattern(kernel), once=once, warms_alone=own)
    entries = kernel.entries or kernel.session_count or kernel.request_count or _ENTRIES
    if own is not None:
        profiling = _profiling(draft, schedule, 1, entries, once=once)
        return _first_part(kernel, profiling), profiling
    if not load_checks.warms(draft):
        return (_profiling(draft, schedule, 0, entries, once=once),)
    return _warmup(draft, entries), _profiling(draft, schedule, 1, entries, once=once)


def named_plugins(draft: Draft, phases: tuple[PhasePlan, ...]) -> dict[str, dict[str, PluginRef]]:
    """The schedules, arrival patterns and ramps of the phases, by category and name."""
    kernel = draft.kernel
    chosen: dict[str, dict[str, PluginRef | None]] = {"schedules": {}, "arrivals": {}, "ramps": {}}
    for name in sorted({phase.schedule for phase in phases}):
        field = "scheduling_mode" if name == kernel.scheduling_mode else None
        chosen["schedules"][name] = draft.chosen("schedules", name, field)
    patterns = {phase.pattern: "arrival_pattern" for phase in phases}
    patterns |= {getattr(kernel, field): field for field in ("warmup_arrival_pattern", "arrival_pattern")}  # also unused
    for pattern in sorted(filter(None, patterns.keys() - {NO_PATTERN})):  # which is refused elsewhere
        chosen["arrivals"][pattern] = draft.chosen("arrivals", pattern, patterns[pattern])
    rises = any(phase.concurrency_ramp_ns or phase.prefill_ramp_ns or phase.rate_ramp_ns for phase in phases)
    if rises or draft.typed("ramp"):  # a wrong name is refused also where nothing rises
        ramp = draft.chosen("ramps", kernel.ramp, "ramp")
        chosen["ramps"] = {kernel.ramp: ramp} if rises else {}
    return {category: {name: ref for name, ref in refs.items() if ref is not None} for category, refs in chosen.items()}


def target(phase: PhasePlan) -> str:
    """The load and the end of the phase, for a line of the log."""
    series, pattern = phase.rate_series, f" {phase.pattern}" if phase.pattern else ""
    facts = (
        ("a recorded trace", phase.replay),
        ("{} users", phase.users), ("{:g} requests/s" + pattern, phase.rate),
        ("a rate of {} points" + pattern, None if series is None else len(series)),
        ("concurrency {}", phase.concurrency), ("prefill concurrency {}", phase.prefill_concurrency),
        ("{} requests", phase.request_count), ("{} sessions", phase.session_count), ("{:g} s", _s(phase.duration_ns)),
    )  # fmt: skip
    return "target: " + ", ".join(text.format(value) for text, value in facts if value is not None)


def section(phase: PhasePlan) -> dict[str, Any]:
    """The phase in the configuration that result files show; None is unset.  Seconds, requests/s."""
    replay = phase.replay
    return {
        "name": phase.name, "kind": phase.kind,
        "type": (phase.pattern if phase.schedule == REQUEST_RATE else None) or _TYPES.get(phase.schedule, phase.schedule),
        "concurrency": phase.concurrency, "prefill_concurrency": phase.prefill_concurrency, "rate": phase.rate,
        "rate_series": phase.rate_series and {"points": [{"time_s": at_s, "qps": rate} for at_s, rate in phase.rate_series]},
        "smoothness": phase.smoothness if phase.pattern and phase.smoothness != 1.0 else None, "users": phase.users,
        "requests": phase.request_count, "sessions": phase.session_count, "duration": _s(phase.duration_ns),
        "grace_period": _s(phase.grace_ns), "concurrency_ramp": _s(phase.concurrency_ramp_ns),
        "prefill_ramp": _s(phase.prefill_ramp_ns), "rate_ramp": _s(phase.rate_ramp_ns),
        "auto_offset": None if replay is None else replay.auto_offset,
        "start_offset": None if replay is None else replay.start_ms, "end_offset": None if replay is None else replay.end_ms,
        "cancellation": {"rate": 100 * phase.cancel_share, "delay": _s(phase.cancel_delay_ns)} if phase.cancel_share else None,
    }


def _profiling(draft: Draft, schedule: str, index: int, entries: int, *, once: bool) -> PhasePlan:
    kernel, declared = draft.kernel, load_checks.declared(draft, schedule)
    follows = declared or RATE
    concurrency = _level(follows, kernel.concurrency, kernel.prefill_concurrency)
    if declared == RATE and concurrency is None:
        ceiling = draft.flag("concurrency")
        draft.hint(f"a rate without {ceiling} has no ceiling: requests pile up at a server that is slower")
    if follows == FREE_SLOTS and not draft.given("concurrency") and draft.given("concurrency_ramp_s"):
        draft.warn(f"{draft.flag('concurrency_ramp_s')} has nothing to ramp without {draft.flag('concurrency')}")
    series = None
    if follows == RATE and kernel.request_rate_series is not None and not draft.given("request_rate"):
        with draft.collected(draft.flag("request_rate_series")):
            series = _rate_series(kernel.request_rate_series)
    count, duration_s = (None, None) if once and not any(map(draft.given, STOPS)) else _stop(draft, follows, series)
    grace_s = kernel.benchmark_grace_s
    if grace_s is None:
        # Users take their turns far apart: what is in flight at the end is a part of the pattern.
        grace_s = math.inf if follows == USERS else _GRACE_S
    replay = _replay(kernel.fixed_start_ms, kernel.fixed_end_ms, shifts=kernel.fixed_auto_offset)
    return PhasePlan(
        name="profiling", kind="profiling", index=index, schedule=schedule, request_count=count,
        session_count=kernel.session_count, duration_ns=_ns(duration_s), rate_series=series, entries=entries,
        grace_ns=None if duration_s is None else _ns(grace_s),
        pattern=_pattern(kernel) if declared == RATE or (follows == RATE and kernel.request_rate) else None,
        smoothness=kernel.arrival_smoothness or 1.0, users=kernel.users if follows == USERS else None,
        replay=replay if follows == TRACE else None, cancel_share=(kernel.cancellation_pct or 0.0) / 100,
        cancel_delay_ns=_ns(kernel.cancellation_delay_s) or 0,
        **_levels(
            kernel.ramp, (concurrency, kernel.concurrency_ramp_s), (kernel.prefill_concurrency, kernel.prefill_ramp_s),
            ({RATE: kernel.request_rate, USERS: kernel.user_centric_rate}.get(follows), kernel.rate_ramp_s),
        ),
    )  # fmt: skip


def _first_part(kernel: KernelOptions, profiling: PhasePlan) -> PhasePlan:
    """The warmup that belongs to a schedule: its sessions live on into *profiling*."""
    return PhasePlan(
        name="warmup", kind="warmup", index=0, schedule=profiling.schedule, entries=profiling.entries, lives_on=True,
        concurrency=profiling.concurrency, prefill_concurrency=profiling.prefill_concurrency,
        grace_ns=_ns(kernel.warmup_grace_s),
    )  # fmt: skip


def _warmup(draft: Draft, first_entry: int) -> PhasePlan:
    """A replay, or users' turns, only where its own options say so."""
    kernel = draft.kernel
    lent = KernelOptions() if kernel.warmup_alone else kernel
    if kernel.warmup_fixed_schedule:
        return _recorded_warmup(kernel, first_entry)
    if kernel.warmup_user_centric_rate is not None:
        return _user_warmup(draft, lent, first_entry)
    rate = kernel.warmup_request_rate or lent.request_rate
    follows = FREE_SLOTS if rate is None else RATE
    prefill = kernel.warmup_prefill_concurrency or lent.prefill_concurrency
    wanted = kernel.warmup_session_count or kernel.warmup_request_count or _ENTRIES
    return PhasePlan(
        name="warmup", kind="warmup", index=0, schedule=IMPLIED[follows],
        request_count=kernel.warmup_request_count, session_count=kernel.warmup_session_count,
        duration_ns=_ns(kernel.warmup_duration_s), grace_ns=_ns(kernel.warmup_grace_s),
        pattern=None if rate is None else kernel.warmup_arrival_pattern or _pattern(lent),
        smoothness=lent.arrival_smoothness or 1.0, first_entry=first_entry,
        # At most as many entries as profiling: a warmup may repeat them, and each must be built.
        entries=min(wanted, first_entry),
        **_levels(
            kernel.ramp, (
                _level(follows, kernel.warmup_concurrency or lent.concurrency, prefill),
                kernel.warmup_concurrency_ramp_s or lent.concurrency_ramp_s,
            ),
            (prefill, kernel.warmup_prefill_ramp_s or lent.prefill_ramp_s),
            (rate, kernel.warmup_rate_ramp_s or lent.rate_ramp_s),
        ),
    )  # fmt: skip


def _recorded_warmup(kernel: KernelOptions, entries: int) -> PhasePlan:
    """A warmup with the same trace at its recorded times.  The limits of the profiling phase don't hold for it."""
    return PhasePlan(
        name="warmup", kind="warmup", index=0, schedule=IMPLIED[TRACE], entries=entries,
        request_count=kernel.warmup_request_count, session_count=kernel.warmup_session_count,
        duration_ns=_ns(kernel.warmup_duration_s), grace_ns=_ns(kernel.warmup_grace_s),
        replay=_replay(kernel.warmup_start_ms, kernel.warmup_end_ms, shifts=kernel.warmup_auto_offset),
        **_levels(
            kernel.ramp, (kernel.warmup_concurrency, kernel.warmup_concurrency_ramp_s),
            (kernel.warmup_prefill_concurrency, kernel.warmup_prefill_ramp_s), (None, None),
        ),
    )  # fmt: skip


def _replay(start_ms: int | None, end_ms: int | None, *, shifts: bool) -> Replay:
    return Replay(auto_offset=shifts and start_ms is None, start_ms=start_ms, end_ms=end_ms)


def _user_warmup(draft: Draft, lent: KernelOptions, first_entry: int) -> PhasePlan:
    """A warmup whose users take turns, as the profiling phase of a user-centric rate has them."""
    kernel = draft.kernel
    wanted = kernel.warmup_session_count or kernel.warmup_request_count or _ENTRIES
    return PhasePlan(
        name="warmup", kind="warmup", index=0, schedule=IMPLIED[USERS], users=kernel.warmup_users or lent.users,
        request_count=kernel.warmup_request_count, session_count=kernel.warmup_session_count,
        duration_ns=_ns(kernel.warmup_duration_s), grace_ns=_ns(kernel.warmup_grace_s),
        first_entry=first_entry, entries=min(wanted, first_entry),
        **_levels(
            kernel.ramp, (kernel.warmup_concurrency, kernel.warmup_concurrency_ramp_s),
            (kernel.warmup_prefill_concurrency, kernel.warmup_prefill_ramp_s),
            (kernel.warmup_user_centric_rate, kernel.warmup_rate_ramp_s),
        ),
    )  # fmt: skip


def _stop(draft: Draft, follows: str, series: tuple[tuple[float, float], ...] | None) -> tuple[int | None, float | None]:
    """Request count and duration; where nothing ends the phase, what the load takes instead."""
    kernel = draft.kernel
    count, duration_s = kernel.request_count, kernel.benchmark_duration_s
    if any(map(draft.given, STOPS)) or follows in (TRACE, USERS):
        return count, duration_s
    choose = f"choose one with {draft.flags(STOPS)}"
    if series is not None and series[-1][0] > 0:
        draft.warn(f"no stop condition is given: stopping at the end of the series, after {series[-1][0]:g} s; {choose}")
        return None, series[-1][0]
    level = kernel.concurrency or kernel.prefill_concurrency or 1
    count = 10 if follows == RATE else max(10, 2 * level)
    draft.warn(f"no stop condition is given: stopping after {count} requests; {choose}")
    return count, None


def _level(follows: str, concurrency: int | None, prefill: int | None) -> int | None:
    """Most sessions at a time: without pacing something must hold requests back."""
    return 1 if follows == FREE_SLOTS and concurrency is None and prefill is None else concurrency


_Rise = tuple[float | None, float | None]
"""A target, None without one, and the seconds to get there, None for at once."""


def _levels(curve: str, concurrency: _Rise, prefill: _Rise, rate: _Rise) -> dict[str, Any]:
    """Fields of a phase.  Without a target, or from 1 to 1, there is no ramp."""
    return {
        "concurrency": concurrency[0], "prefill_concurrency": prefill[0], "rate": rate[0], "ramp": curve,
        "concurrency_ramp_ns": _ns(concurrency[1]) if (concurrency[0] or 1) > 1 else None,
        "prefill_ramp_ns": _ns(prefill[1]) if (prefill[0] or 1) > 1 else None,
        "rate_ramp_ns": _ns(rate[1]) if rate[0] is not None else None,
    }  # fmt: skip


def _rate_series(path: Path) -> tuple[tuple[float, float], ...]:
    """The points, (seconds, requests/s) each, linear in between.

    Raises:
        ConfigError: The file can't be read, isn't such a list, or its times don't rise; names the point.
    """
    try:
        points = msgspec.json.decode(path.read_bytes(), type=list[tuple[float, float]])
    except OSError as error:
        hint = "give a JSON file of [seconds, requests per second] points"
        raise ConfigError(f"{path} can't be read: {error.strerror or error}", hint) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a JSON list of points: {error}", _SERIES_FORM) from error
    if not points:
        raise ConfigError(f"{path} has no points", _SERIES_FORM)
    before_s = -1.0
    for number, (at_s, rate) in enumerate(points, 1):
        if not (math.isfinite(at_s) and math.isfinite(rate)) or at_s < 0 or rate < 0:
            raise ConfigError(f"{path}: point {number} is [{at_s:g}, {rate:g}]; neither time nor rate may be below 0")
        if at_s <= before_s:
            raise ConfigError(f"{path}: point {number} at {at_s:g} s is not after the one before, at {before_s:g} s")
        before_s = at_s
    if not any(rate > 0 for _, rate in points):
        raise ConfigError(f"{path}: every rate is 0: nothing would ever be sent", _SERIES_FORM)
    return tuple(points)


def _pattern(kernel: KernelOptions) -> str:
    return kernel.arrival_pattern or (ARRIVALS if kernel.arrival_smoothness is None else SHAPED_ARRIVALS)


def _ns(seconds: float | None) -> int | None:
    """None also for ever."""
    return None if seconds is None or math.isinf(seconds) else round(seconds * NS_PER_S)


def _s(ns: int | None) -> float | None:
    return None if ns is None else ns / NS_PER_S
