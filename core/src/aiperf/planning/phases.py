"""From load options to phases: the mode, what a warmup inherits, and the defaults that depend on other options."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from aiperf.errors import ConfigError
from aiperf.planning import load_checks, modes
from aiperf.planning.kernel_options import KernelOptions
from aiperf.planning.load_checks import STOPS
from aiperf.planning.modes import BURST, FIXED_SCHEDULE, REQUEST_RATE, TRIGGERS, USER_CENTRIC
from aiperf.planning.problems import Problems
from aiperf.sdk.plan import PhasePlan, Replay

NS_PER_S = 1_000_000_000

_GRACE_S = 30.0
_ENTRIES = 100
_SERIES_FORM = "write [[0, 5], [60, 50]]: from 5 requests/s at the start to 50 after a minute"
_TYPES = {BURST: "concurrency"}
"""The reference's words for modes."""


def phases(problems: Problems, shaped: Callable[[str], bool], *, promoted: bool = False) -> tuple[PhasePlan, ...]:
    """Warmup, where it is requested, then profiling.  They use different entries of the data set.

    *shaped* tells whether smoothness matters to an arrival pattern.  *promoted*: the input file is a trace that is replayed
    without a flag.  After an error in *problems* the result serves only to find more errors.
    """
    kernel = problems.kernel
    mode = modes.chosen(problems, promoted=promoted)
    modes.check(problems, modes.basis(mode))
    load_checks.check(problems, modes.basis(mode), shaped, _pattern(kernel))
    main = _profiling(problems, mode)
    entries = kernel.entries or kernel.session_count or kernel.request_count or _ENTRIES
    main = msgspec.structs.replace(main, entries=entries)
    if not any(map(problems.given, TRIGGERS)):
        return (main,)
    return _warmup(problems, entries), msgspec.structs.replace(main, index=1)


def target(phase: PhasePlan) -> str:
    """The load and the end of the phase, for a line of the log."""
    series, pattern = phase.rate_series, f" {phase.pattern}" if phase.pattern else ""
    facts = (
        ("a recorded trace", phase.schedule == FIXED_SCHEDULE or None),
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


def _profiling(problems: Problems, schedule: str) -> PhasePlan:
    kernel, mode = problems.kernel, modes.basis(schedule)
    concurrency = _level(mode, kernel.concurrency, kernel.prefill_concurrency)
    if schedule == REQUEST_RATE and concurrency is None:
        ceiling = problems.flag("concurrency")
        problems.hint(f"a rate without {ceiling} has no ceiling: requests pile up at a server that is slower")
    if mode == BURST and not problems.given("concurrency") and problems.given("concurrency_ramp_s"):
        problems.warn(f"{problems.flag('concurrency_ramp_s')} has nothing to ramp without {problems.flag('concurrency')}")
    series = _series(problems) if mode == REQUEST_RATE else None
    count, duration_s = _stop(problems, mode, series)
    grace_s = kernel.benchmark_grace_s
    if grace_s is None:
        # Users take their turns far apart: what is in flight at the end is a part of the pattern.
        grace_s = math.inf if mode == USER_CENTRIC else _GRACE_S
    auto = kernel.fixed_auto_offset and kernel.fixed_start_ms is None
    replay = Replay(auto_offset=auto, start_ms=kernel.fixed_start_ms, end_ms=kernel.fixed_end_ms)
    return PhasePlan(
        name="profiling", kind="profiling", index=0, schedule=schedule, request_count=count, session_count=kernel.session_count,
        duration_ns=_ns(duration_s), grace_ns=None if duration_s is None else _ns(grace_s), concurrency=concurrency,
        prefill_concurrency=kernel.prefill_concurrency,
        rate={REQUEST_RATE: kernel.request_rate, USER_CENTRIC: kernel.user_centric_rate}.get(mode), rate_series=series,
        pattern=_pattern(kernel) if schedule == REQUEST_RATE or (mode == REQUEST_RATE and kernel.request_rate) else None,
        smoothness=kernel.arrival_smoothness or 1.0, users=kernel.users if mode == USER_CENTRIC else None,
        replay=replay if mode == FIXED_SCHEDULE else None, cancel_share=(kernel.cancellation_pct or 0.0) / 100,
        cancel_delay_ns=_ns(kernel.cancellation_delay_s) or 0,
        **_ramps(
            kernel.ramp, concurrency=(concurrency, kernel.concurrency_ramp_s),
            prefill=(kernel.prefill_concurrency, kernel.prefill_ramp_s), rate=(kernel.request_rate, kernel.rate_ramp_s),
        ),
    )


def _warmup(problems: Problems, first_entry: int) -> PhasePlan:
    """Never a replay, nor users: a warmup needs no more than a rate or free slots."""
    kernel = problems.kernel
    lent = KernelOptions() if kernel.warmup_alone else kernel
    rate = kernel.warmup_request_rate or lent.request_rate
    mode = BURST if rate is None else REQUEST_RATE
    prefill = kernel.warmup_prefill_concurrency or lent.prefill_concurrency
    concurrency = _level(mode, kernel.warmup_concurrency or lent.concurrency, prefill)
    wanted = kernel.warmup_session_count or kernel.warmup_request_count or _ENTRIES
    ramps = _ramps(
        kernel.ramp, concurrency=(concurrency, kernel.warmup_concurrency_ramp_s or lent.concurrency_ramp_s),
        prefill=(prefill, kernel.warmup_prefill_ramp_s or lent.prefill_ramp_s),
        rate=(rate, kernel.warmup_rate_ramp_s or lent.rate_ramp_s),
    )  # fmt: skip
    return PhasePlan(
        name="warmup", kind="warmup", index=0, schedule=mode,
        request_count=kernel.warmup_request_count, session_count=kernel.warmup_session_count,
        duration_ns=_ns(kernel.warmup_duration_s), grace_ns=_ns(kernel.warmup_grace_s),
        concurrency=concurrency, prefill_concurrency=prefill, rate=rate,
        pattern=None if rate is None else kernel.warmup_arrival_pattern or _pattern(lent),
        smoothness=lent.arrival_smoothness or 1.0, first_entry=first_entry,
        # At most as many entries as profiling: a warmup may repeat them, and each must be built.
        entries=min(wanted, first_entry), **ramps,
    )  # fmt: skip


def _stop(problems: Problems, mode: str, series: tuple[tuple[float, float], ...] | None) -> tuple[int | None, float | None]:
    """Request count and duration; where nothing ends the phase, what the mode takes instead."""
    kernel = problems.kernel
    count, duration_s = kernel.request_count, kernel.benchmark_duration_s
    if any(map(problems.given, STOPS)) or mode in (FIXED_SCHEDULE, USER_CENTRIC):
        return count, duration_s
    choose = f"choose one with {problems.flags(STOPS)}"
    if series is not None and series[-1][0] > 0:
        problems.warn(f"no stop condition is given: stopping at the end of the series, after {series[-1][0]:g} s; {choose}")
        return None, series[-1][0]
    level = kernel.concurrency or kernel.prefill_concurrency or 1
    count = 10 if mode == REQUEST_RATE else max(10, 2 * level)
    problems.warn(f"no stop condition is given: stopping after {count} requests; {choose}")
    return count, None


def _level(mode: str, concurrency: int | None, prefill: int | None) -> int | None:
    """Most sessions at a time: without pacing something must hold requests back."""
    return 1 if mode == BURST and concurrency is None and prefill is None else concurrency


def _ramps(
    curve: str, *, concurrency: tuple[int | None, float | None], prefill: tuple[int | None, float | None],
    rate: tuple[float | None, float | None],
) -> dict[str, Any]:
    """Fields of a phase; each pair is a target and the seconds to get there.  Without a target, or from 1 to 1, no ramp."""
    return {
        "ramp": curve, "concurrency_ramp_ns": _ns(concurrency[1]) if (concurrency[0] or 1) > 1 else None,
        "prefill_ramp_ns": _ns(prefill[1]) if (prefill[0] or 1) > 1 else None,
        "rate_ramp_ns": _ns(rate[1]) if rate[0] is not None else None,
    }


def _series(problems: Problems) -> tuple[tuple[float, float], ...] | None:
    path = problems.kernel.request_rate_series
    if path is None or problems.given("request_rate"):  # both have been refused
        return None
    with problems.collected(problems.flag("request_rate_series")):
        return rate_series(path)
    return None


def rate_series(path: Path) -> tuple[tuple[float, float], ...]:
    """The points, (seconds, requests/s) each, linear in between.

    Raises:
        ConfigError: The file can't be read, isn't such a list, or its times don't rise; names the point.
    """
    try:
        points = msgspec.json.decode(path.read_bytes(), type=list[tuple[float, float]])
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror or error}") from error
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
    return kernel.arrival_pattern or ("poisson" if kernel.arrival_smoothness is None else "gamma")


def _ns(seconds: float | None) -> int | None:
    """None also for ever."""
    return None if seconds is None or math.isinf(seconds) else round(seconds * NS_PER_S)


def _s(ns: int | None) -> float | None:
    return None if ns is None else ns / NS_PER_S
