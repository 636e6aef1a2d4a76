"""The sentence on a slow beginning."""

from __future__ import annotations

import math

import numpy as np
from aiperf import Evidence
from msgspec import Struct

from aiperf_verdict_cold_server.beginning import SlowBeginning, slow_beginning
from aiperf_verdict_cold_server.requests import ColdRequests, cold_requests, open_loop

_WAVE_FACTOR = 3.0
"""The first wave was slow if it took so many times the p95 of later requests, and *_WAVE_S* more."""
_WAVE_S = 0.05
_FEWEST_REQUESTS = 20


class ColdBeginning(Struct, frozen=True):
    sentence: str
    numbers: dict[str, int | float]


def told(evidence: Evidence) -> ColdBeginning | None:
    """The slow beginning, or the slow first wave; None without."""
    window = next((each for each in evidence.windows if each.phase == evidence.phase.index), None)
    if window is None or window.end_ns <= window.begin_ns:
        return None
    requests = cold_requests(evidence, float(window.begin_ns - evidence.zero_ns))
    if requests is None:
        return None
    length_s = (window.end_ns - window.begin_ns) / 1e9
    first = slow_beginning(requests.begun_s, requests.first_s, requests.cells, length_s)
    between = slow_beginning(requests.begun_s, requests.token_s, requests.token_cells, length_s)
    if between is None and not open_loop(evidence) and np.isfinite(requests.token_s).any():
        first = None  # users that begin together wait for each other, and then no longer
    if first is None and between is None:
        return _first_wave(evidence, requests)
    return _beginning(evidence, requests, first, between)


def _beginning(
    evidence: Evidence, requests: ColdRequests, first: SlowBeginning | None, between: SlowBeginning | None
) -> ColdBeginning:
    what = "time to first token" if requests.streamed else "latency"
    parts = [(what, first), ("inter-token latency", between)]
    known = [(name, one) for name, one in parts if one is not None]
    until_s = max((one for _, one in known), key=lambda one: one.t).until_s
    until_s = max([until_s, *(one.until_s for _, one in known if one.until_s <= 1.5 * until_s)])
    slower = " and ".join(f"its {name} was {one.factor:.2g} times" for name, one in known)
    count = int((requests.begun_s < until_s).sum())
    warmed = any(phase.kind == "warmup" for phase in evidence.plan.load.phases)
    length = math.ceil(until_s * 1.1)
    step = f"a warmup that is {length} s longer" if warmed else f"--warmup-duration {length}"
    unknown = [] if not np.isnan(requests.token_s).all() else ["inter-token latency"]
    sentence = (
        f"the server was cold: in the first {until_s:.1f} s {slower} that of later requests under the same load ({count:,}"
        f" requests began then, and are in all statistics); {step} would cover it"
    )
    if unknown:
        sentence += f"; not known: {', '.join(unknown)}"
    numbers: dict[str, int | float] = {"cold_s": until_s, "cold_requests": count}
    numbers |= {"first_factor": first.factor} if first is not None else {}
    numbers |= {"inter_token_factor": between.factor} if between is not None else {}
    return ColdBeginning(sentence, numbers)


def _first_wave(evidence: Evidence, requests: ColdRequests) -> ColdBeginning | None:
    """The first wave where even its fastest request was slow; None after a warmup."""
    size = max(1, min(evidence.phase.concurrency or 1, len(requests.begun_s) // 2))
    later = requests.first_s[size:]
    if len(later) < _FEWEST_REQUESTS or any(phase.kind == "warmup" for phase in evidence.plan.load.phases):
        return None
    fastest_s = float((requests.first_s / (1 + requests.companions))[:size].min())
    usual_s, p95_s = (float(np.quantile(later, q)) for q in (0.5, 0.95))
    if fastest_s <= max(_WAVE_FACTOR * p95_s, p95_s + _WAVE_S):
        return None
    shown_s = float(requests.first_s[:size].min())
    who = "the first request" if size == 1 else f"each of the first {size:,} requests"
    sentence = (
        f"the server was cold: {who} took {1e3 * shown_s:,.0f} ms or more until the first token, and the usual one later"
        f" {1e3 * usual_s:,.0f} ms; --warmup-request-count {size} would cover it"
    )
    if not requests.streamed:
        sentence = sentence.replace("until the first token", "to answer")
    numbers: dict[str, int | float] = {"first_ms": 1e3 * shown_s, "p50_ms": 1e3 * usual_s, "p95_ms": 1e3 * p95_s, "wave": size}
    return ColdBeginning(sentence, numbers)
