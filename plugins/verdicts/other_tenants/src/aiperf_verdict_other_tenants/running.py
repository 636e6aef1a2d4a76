"""Requests in work on servers over time, beside the requests that the run had in flight."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from aiperf import Evidence
from aiperf.sdk.columns import Floats
from aiperf_servers import engine_of, over_time
from msgspec import Struct

PARTS = 8
"""Parts of the phase, whose means are one value each."""
_T = 4.785
"""The 0.999 quantile of Student's t with 7 degrees of freedom."""
_FEWEST_SAMPLES = 3 * PARTS


class RunningDifference(Struct, frozen=True):
    """Means over the phase, in requests: on the servers, of these not the run's, and the lower end of that one's interval."""

    server: float
    mean: float
    least: float


def foreign_running(
    evidence: Evidence, targets: Collection[str], engine: str, urls: Collection[int]
) -> RunningDifference | None:
    """Requests in work or waiting on the targets that the run had not in flight; None with too few samples."""
    window = next((each for each in evidence.windows if each.phase == evidence.phase.index), None)
    if window is None:
        return None
    levels: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for source in evidence.summary.telemetry:
        if any(engine_of(one.name) is not None for one in source.series):
            for target, of, quantity, _, points in over_time(evidence.samples(source.name), window, None):
                if target in targets and of.name == engine and quantity in ("running", "waiting"):
                    levels[target, quantity] = points
    if not all((target, "running") in levels for target in targets):
        return None
    at_s, known = _summed(levels)
    length_s = (window.end_ns - window.begin_ns) / 1e9
    if len(at_s) < _FEWEST_SAMPLES or length_s <= 0:
        return None
    differences = known - _in_flight(evidence, at_s + (window.begin_ns - evidence.zero_ns) / 1e9, urls)
    parts = np.minimum((at_s / length_s * PARTS).astype(np.int64), PARTS - 1)
    means = np.array([differences[parts == part].mean() for part in range(PARTS) if (parts == part).any()])
    if len(means) < PARTS:
        return None
    mean = float(means.mean())
    return RunningDifference(float(known.mean()), mean, mean - _T * float(means.std(ddof=1)) / math.sqrt(PARTS))


def _summed(levels: dict[tuple[str, str], list[tuple[float, float]]]) -> tuple[Floats, Floats]:
    """The moments at which the first level was sampled, and the sum of all at these: each holds until its next sample.

    Moments behind the last sample of any level are left out: nobody knows that one then.
    """
    first = next(iter(levels.values()))
    until_s = min(points[-1][0] for points in levels.values())
    at_s = np.array([at for at, _ in first if at <= until_s])
    total = np.zeros(len(at_s))
    for points in levels.values():
        own_s, values = np.array(points).T
        place = np.searchsorted(own_s, at_s, side="right") - 1
        total += np.where(place >= 0, values[np.maximum(place, 0)], 0.0)
    return at_s, total


def _in_flight(evidence: Evidence, at_s: Floats, urls: Collection[int]) -> Floats:
    """The run's requests in flight at these instants, since the run's start."""
    order = np.argsort(at_s, kind="stable")
    moments_s, changes = at_s[order], np.zeros(len(at_s) + 1, dtype=np.int64)
    for sent, ended, url in evidence.columns("sent_ns", "ended_ns", "url"):
        mine = ~np.isnan(sent)
        if len(urls) < len(evidence.plan.target.urls):
            mine &= np.isin(url, list(urls))
        for instants, change in ((sent[mine], 1), (ended[mine & ~np.isnan(ended)], -1)):
            changes += change * np.bincount(np.searchsorted(moments_s, instants / 1e9), minlength=len(changes))
    flying = np.empty(len(at_s))
    flying[order] = np.cumsum(changes[:-1])
    return flying
