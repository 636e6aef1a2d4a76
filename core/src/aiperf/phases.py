"""From load options to phases: which combinations make sense, and the defaults that depend on others."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from aiperf.findings import Findings
from aiperf.plan import PhasePlan

NS_PER_S = 1_000_000_000
BURST, REQUEST_RATE = "burst", "request_rate"

_STOPS = ("request_count", "session_count", "benchmark_duration_s")
_TRIGGERS = ("warmup_request_count", "warmup_session_count", "warmup_duration_s")
_GRACE_S = 30.0
_ENTRIES = 100


def phases(findings: Findings, shaped: Callable[[str], bool]) -> tuple[PhasePlan, ...]:
    """Warmup, where it was asked for, then profiling.  They use different entries of the data set.

    *shaped* says of an arrival pattern whether its smoothness matters.  What is wrong goes to *findings*; then the result
    is only good for finding more.
    """
    _check(findings, shaped)
    kernel = findings.kernel
    main = _profiling(findings)
    entries = kernel.entries or kernel.session_count or kernel.request_count or _ENTRIES
    main = msgspec.structs.replace(main, entries=entries)
    if not any(map(findings.given, _TRIGGERS)):
        return (main,)
    return _warmup(findings, entries), msgspec.structs.replace(main, index=1)


def _profiling(findings: Findings) -> PhasePlan:
    kernel = findings.kernel
    rate, concurrency = kernel.request_rate, kernel.concurrency
    if rate is None:
        concurrency = concurrency or 1
    elif concurrency is None:
        ceiling = findings.flag("concurrency")
        findings.hint(f"a rate without {ceiling} has no ceiling: requests pile up at a server that is slower")
    count = kernel.request_count
    if not any(map(findings.given, _STOPS)):
        count = 10 if rate is not None else max(10, 2 * (concurrency or 1))
        findings.warn(f"no stop condition is given: stopping after {count} requests; choose one with {findings.flags(_STOPS)}")
    timed = kernel.benchmark_duration_s is not None
    return PhasePlan(
        name="profiling",
        kind="profiling",
        index=0,
        schedule=BURST if rate is None else REQUEST_RATE,
        request_count=count,
        session_count=kernel.session_count,
        duration_ns=_ns(kernel.benchmark_duration_s),
        grace_ns=_ns(_GRACE_S if kernel.benchmark_grace_s is None else kernel.benchmark_grace_s) if timed else None,
        concurrency=concurrency,
        rate=rate,
        pattern=None if rate is None else _pattern(findings),
        smoothness=kernel.arrival_smoothness or 1.0,
    )


def _warmup(findings: Findings, first_entry: int) -> PhasePlan:
    kernel = findings.kernel
    rate = kernel.warmup_request_rate or kernel.request_rate
    concurrency = kernel.warmup_concurrency or kernel.concurrency
    if rate is None:
        concurrency = concurrency or 1
    wanted = kernel.warmup_session_count or kernel.warmup_request_count or _ENTRIES
    return PhasePlan(
        name="warmup",
        kind="warmup",
        index=0,
        schedule=BURST if rate is None else REQUEST_RATE,
        request_count=kernel.warmup_request_count,
        session_count=kernel.warmup_session_count,
        duration_ns=_ns(kernel.warmup_duration_s),
        grace_ns=_ns(kernel.warmup_grace_s),
        concurrency=concurrency,
        rate=rate,
        pattern=None if rate is None else kernel.warmup_arrival_pattern or _pattern(findings),
        smoothness=kernel.arrival_smoothness or 1.0,
        first_entry=first_entry,
        # No more than profiling has: a warmup may repeat itself, and what it uses must be built too.
        entries=min(wanted, first_entry),
    )


def _pattern(findings: Findings) -> str:
    kernel = findings.kernel
    return kernel.arrival_pattern or ("poisson" if kernel.arrival_smoothness is None else "gamma")


def _ns(seconds: float | None) -> int | None:
    """None also for ever."""
    return None if seconds is None or math.isinf(seconds) else round(seconds * NS_PER_S)


def _check(findings: Findings, shaped: Callable[[str], bool]) -> None:
    findings.exclusive("request_count", "session_count", "both are counts to stop at")
    findings.exclusive("warmup_request_count", "warmup_session_count", "both are counts that end the warmup")
    findings.needs("benchmark_grace_s", ["benchmark_duration_s"], "the grace period follows the duration")
    findings.needs("warmup_grace_s", ["warmup_duration_s"], "the grace period follows the duration")
    _check_arrivals(findings, shaped)
    for field in ("request_count", "session_count"):
        _check_reachable(findings, "concurrency", field)
        _check_reachable(findings, "warmup_concurrency", f"warmup_{field}")
    for field in ("warmup_concurrency", "warmup_request_rate", "warmup_arrival_pattern"):
        findings.needs(field, _TRIGGERS, "without one no warmup runs")


def _check_arrivals(findings: Findings, shaped: Callable[[str], bool]) -> None:
    kernel = findings.kernel
    for field, rates in (
        ("arrival_pattern", ["request_rate"]),
        ("warmup_arrival_pattern", ["warmup_request_rate", "request_rate"]),
    ):
        pattern = getattr(kernel, field)
        if pattern == "concurrency_burst":
            findings.refuse(
                f"{findings.flag(field)} concurrency_burst means no rate, and {findings.flag('request_rate')} is one"
                if findings.given("request_rate")
                else f"{findings.flag(field)} concurrency_burst is what happens without {findings.flag('request_rate')}",
                f"drop {findings.flag(field)}",
            )
        elif pattern is not None:
            findings.needs(field, rates, "without a rate requests follow free slots")
    if kernel.arrival_smoothness is None:
        return
    warms_up = any(map(findings.given, _TRIGGERS))
    findings.needs(
        "arrival_smoothness",
        ["request_rate", "warmup_request_rate"] if warms_up else ["request_rate"],
        "without a rate requests follow free slots",
    )
    patterns = [_pattern(findings), *([kernel.warmup_arrival_pattern] if warms_up and kernel.warmup_arrival_pattern else [])]
    if not any(map(shaped, patterns)):
        smoothness, pattern = findings.flag("arrival_smoothness"), findings.flag("arrival_pattern")
        findings.refuse(
            f"{smoothness} shapes gamma arrivals, and {pattern} is {kernel.arrival_pattern}",
            f"pass {pattern} gamma, or drop {smoothness}",
        )


def _check_reachable(findings: Findings, level: str, count: str) -> None:
    most, given = getattr(findings.kernel, count), getattr(findings.kernel, level)
    if most is not None and given is not None and given > most:
        findings.refuse(
            f"{findings.flag(level)} {given} can never be reached with {findings.flag(count)} {most}",
            f"lower {findings.flag(level)}, or raise {findings.flag(count)}",
        )
