"""From load options to phases: the mode, what a warmup inherits, and the defaults that depend on other options."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from aiperf import loadchecks, modes, rateseries
from aiperf.findings import Findings
from aiperf.loadchecks import STOPS
from aiperf.modes import BURST, FIXED_SCHEDULE, REQUEST_RATE, TRIGGERS, USER_CENTRIC
from aiperf.options import KernelOptions
from aiperf.plan import PhasePlan, Replay

NS_PER_S = 1_000_000_000

_GRACE_S = 30.0
_ENTRIES = 100


def phases(findings: Findings, shaped: Callable[[str], bool], *, promoted: bool = False) -> tuple[PhasePlan, ...]:
    """Warmup, where it was asked for, then profiling.  They use different entries of the data set.

    *shaped* says of an arrival pattern whether its smoothness matters; *promoted*, that the input file is a trace to be
    replayed without being told.  What is wrong goes to *findings*; then the result is only good for finding more.
    """
    kernel = findings.kernel
    mode = modes.chosen(findings, promoted=promoted)
    modes.check(findings, mode)
    loadchecks.check(findings, mode, shaped, _pattern(kernel))
    main = _profiling(findings, mode)
    entries = kernel.entries or kernel.session_count or kernel.request_count or _ENTRIES
    main = msgspec.structs.replace(main, entries=entries)
    if not any(map(findings.given, TRIGGERS)):
        return (main,)
    return _warmup(findings, entries), msgspec.structs.replace(main, index=1)


def target(phase: PhasePlan) -> str:
    """What the phase is to do, for a line of the log."""
    parts = []
    if phase.schedule == FIXED_SCHEDULE:
        parts.append("a recorded trace")
    if phase.users is not None:
        parts.append(f"{phase.users} users")
    if phase.rate is not None:
        parts.append(f"{phase.rate:g} requests/s" + (f" {phase.pattern}" if phase.pattern else ""))
    if phase.rate_series is not None:
        parts.append(f"a rate of {len(phase.rate_series)} points {phase.pattern}")
    if phase.concurrency is not None:
        parts.append(f"concurrency {phase.concurrency}")
    if phase.prefill_concurrency is not None:
        parts.append(f"prefill concurrency {phase.prefill_concurrency}")
    if phase.request_count is not None:
        parts.append(f"{phase.request_count} requests")
    if phase.session_count is not None:
        parts.append(f"{phase.session_count} sessions")
    if phase.duration_ns is not None:
        parts.append(f"{phase.duration_ns / NS_PER_S:g} s")
    return "target: " + ", ".join(parts)


def section(phase: PhasePlan) -> dict[str, Any]:
    """The phase in the configuration that result files show; None is unset.  Seconds, requests/s."""
    replay = phase.replay
    return {
        "name": phase.name,
        "kind": phase.kind,
        # The reference's word for as many at a time as there may be.
        "type": phase.pattern or {"burst": "concurrency"}.get(phase.schedule, phase.schedule),
        "concurrency": phase.concurrency,
        "prefill_concurrency": phase.prefill_concurrency,
        "rate": phase.rate,
        "rate_series": None if phase.rate_series is None else {"points": _points(phase.rate_series)},
        "smoothness": phase.smoothness if phase.pattern and phase.smoothness != 1.0 else None,
        "users": phase.users,
        "requests": phase.request_count,
        "sessions": phase.session_count,
        "duration": _s(phase.duration_ns),
        "grace_period": _s(phase.grace_ns),
        "concurrency_ramp": _s(phase.concurrency_ramp_ns),
        "prefill_ramp": _s(phase.prefill_ramp_ns),
        "rate_ramp": _s(phase.rate_ramp_ns),
        "auto_offset": None if replay is None else replay.auto_offset,
        "start_offset": None if replay is None else replay.start_ms,
        "end_offset": None if replay is None else replay.end_ms,
        "cancellation": {"rate": 100 * phase.cancel_share, "delay": _s(phase.cancel_delay_ns)} if phase.cancel_share else None,
    }


def _points(series: tuple[tuple[float, float], ...]) -> list[dict[str, float]]:
    return [{"time_s": at_s, "qps": rate} for at_s, rate in series]


def _profiling(findings: Findings, mode: str) -> PhasePlan:
    kernel = findings.kernel
    concurrency = _level(mode, kernel.concurrency, kernel.prefill_concurrency)
    if mode == REQUEST_RATE and concurrency is None:
        ceiling = findings.flag("concurrency")
        findings.hint(f"a rate without {ceiling} has no ceiling: requests pile up at a server that is slower")
    if mode == BURST and not findings.given("concurrency") and findings.given("concurrency_ramp_s"):
        findings.warn(f"{findings.flag('concurrency_ramp_s')} has nothing to ramp without {findings.flag('concurrency')}")
    series = _series(findings) if mode == REQUEST_RATE else None
    count, duration_s = _stop(findings, mode, series)
    grace_s = kernel.benchmark_grace_s
    if grace_s is None:
        # Users take their turns far apart: what is in flight at the end is a part of the pattern.
        grace_s = math.inf if mode == USER_CENTRIC else _GRACE_S
    return PhasePlan(
        name="profiling",
        kind="profiling",
        index=0,
        schedule=mode,
        request_count=count,
        session_count=kernel.session_count,
        duration_ns=_ns(duration_s),
        grace_ns=None if duration_s is None else _ns(grace_s),
        concurrency=concurrency,
        prefill_concurrency=kernel.prefill_concurrency,
        rate={REQUEST_RATE: kernel.request_rate, USER_CENTRIC: kernel.user_centric_rate}.get(mode),
        rate_series=series,
        pattern=_pattern(kernel) if mode == REQUEST_RATE else None,
        smoothness=kernel.arrival_smoothness or 1.0,
        users=kernel.users if mode == USER_CENTRIC else None,
        replay=_replay(findings) if mode == FIXED_SCHEDULE else None,
        cancel_share=(kernel.cancellation_pct or 0.0) / 100,
        cancel_delay_ns=_ns(kernel.cancellation_delay_s) or 0,
        **_ramps(
            kernel.ramp,
            concurrency=(concurrency, kernel.concurrency_ramp_s),
            prefill=(kernel.prefill_concurrency, kernel.prefill_ramp_s),
            rate=(kernel.request_rate, kernel.rate_ramp_s),
        ),
    )


def _warmup(findings: Findings, first_entry: int) -> PhasePlan:
    """Never a replay, nor users: a warmup needs no more than a rate or free slots."""
    kernel = findings.kernel
    lent = KernelOptions() if kernel.warmup_alone else kernel
    rate = kernel.warmup_request_rate or lent.request_rate
    mode = BURST if rate is None else REQUEST_RATE
    prefill = kernel.warmup_prefill_concurrency or lent.prefill_concurrency
    concurrency = _level(mode, kernel.warmup_concurrency or lent.concurrency, prefill)
    wanted = kernel.warmup_session_count or kernel.warmup_request_count or _ENTRIES
    return PhasePlan(
        name="warmup",
        kind="warmup",
        index=0,
        schedule=mode,
        request_count=kernel.warmup_request_count,
        session_count=kernel.warmup_session_count,
        duration_ns=_ns(kernel.warmup_duration_s),
        grace_ns=_ns(kernel.warmup_grace_s),
        concurrency=concurrency,
        prefill_concurrency=prefill,
        rate=rate,
        pattern=None if rate is None else kernel.warmup_arrival_pattern or _pattern(lent),
        smoothness=lent.arrival_smoothness or 1.0,
        first_entry=first_entry,
        # No more than profiling has: a warmup may repeat itself, and what it uses must be built too.
        entries=min(wanted, first_entry),
        **_ramps(
            kernel.ramp,
            concurrency=(concurrency, kernel.warmup_concurrency_ramp_s or lent.concurrency_ramp_s),
            prefill=(prefill, kernel.warmup_prefill_ramp_s or lent.prefill_ramp_s),
            rate=(rate, kernel.warmup_rate_ramp_s or lent.rate_ramp_s),
        ),
    )


def _stop(
    findings: Findings, mode: str, series: tuple[tuple[float, float], ...] | None
) -> tuple[int | None, float | None]:
    """Request count and duration; where nothing ends the phase, what the mode takes instead."""
    kernel = findings.kernel
    count, duration_s = kernel.request_count, kernel.benchmark_duration_s
    if any(map(findings.given, STOPS)) or mode in (FIXED_SCHEDULE, USER_CENTRIC):
        return count, duration_s
    choose = f"choose one with {findings.flags(STOPS)}"
    if series is not None and series[-1][0] > 0:
        findings.warn(f"no stop condition is given: stopping at the end of the series, after {series[-1][0]:g} s; {choose}")
        return None, series[-1][0]
    level = kernel.concurrency or kernel.prefill_concurrency or 1
    count = 10 if mode == REQUEST_RATE else max(10, 2 * level)
    findings.warn(f"no stop condition is given: stopping after {count} requests; {choose}")
    return count, None


def _level(mode: str, concurrency: int | None, prefill: int | None) -> int | None:
    """Most sessions at a time: without pacing something must hold requests back."""
    return 1 if mode == BURST and concurrency is None and prefill is None else concurrency


def _ramps(
    curve: str,
    *,
    concurrency: tuple[int | None, float | None],
    prefill: tuple[int | None, float | None],
    rate: tuple[float | None, float | None],
) -> dict[str, Any]:
    """Fields of a phase; each pair is a target and the seconds to get there.  Without a target, or from 1 to 1, no ramp."""
    return {
        "ramp": curve,
        "concurrency_ramp_ns": _ns(concurrency[1]) if (concurrency[0] or 1) > 1 else None,
        "prefill_ramp_ns": _ns(prefill[1]) if (prefill[0] or 1) > 1 else None,
        "rate_ramp_ns": _ns(rate[1]) if rate[0] is not None else None,
    }


def _series(findings: Findings) -> tuple[tuple[float, float], ...] | None:
    path = findings.kernel.request_rate_series
    if path is None or findings.given("request_rate"):  # both have been refused
        return None
    with findings.collected(findings.flag("request_rate_series")):
        return rateseries.read(path)
    return None


def _replay(findings: Findings) -> Replay:
    kernel = findings.kernel
    auto = kernel.fixed_auto_offset and kernel.fixed_start_ms is None
    return Replay(auto_offset=auto, start_ms=kernel.fixed_start_ms, end_ms=kernel.fixed_end_ms)


def _pattern(kernel: KernelOptions) -> str:
    return kernel.arrival_pattern or ("poisson" if kernel.arrival_smoothness is None else "gamma")


def _ns(seconds: float | None) -> int | None:
    """None also for ever."""
    return None if seconds is None or math.isinf(seconds) else round(seconds * NS_PER_S)


def _s(ns: int | None) -> float | None:
    return None if ns is None else ns / NS_PER_S
