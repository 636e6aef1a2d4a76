"""Requests over time: instants in seconds since the first one, windows, how many are in flight."""

from __future__ import annotations

import math

import numpy as np
from aiperf.sdk.columns import Floats, Ints

START, END = "request_start_ns", "request_end_ns"
_NS_PER_S = 1e9
_SAME = 1e-9
"""Part of values by which those differ that count as the same."""
_WINDOWS = 60
"""Windows of a run, about."""


def known(*columns: Floats) -> Ints:
    """Rows in which all columns have a value."""
    found = np.ones(len(columns[0]), dtype=bool)
    for column in columns:
        found &= np.isfinite(column)
    return np.flatnonzero(found).astype(np.int64)


def since(at_ns: Floats, begin_ns: float) -> Floats:
    """Instants in seconds since *begin_ns*."""
    seconds: Floats = (at_ns - begin_ns) / _NS_PER_S
    return seconds


def windows(low: float, high: float, about: int = _WINDOWS) -> Floats:
    """Edges of windows of 1, 2 or 5 × 10ⁿ that hold *low* and *high*: between *about* / 3 and *about* + 2 of them.

    There is one where the values are the same, as wide as it would be of values from 0.
    """
    size = max(abs(low), abs(high))
    span = high - low if high - low > _SAME * size else size or 1.0
    step = 10.0 ** math.ceil(math.log10(span / about))
    for part in (0.2, 0.5):
        if span / (step * part) <= about:
            step *= part
            break
    first = math.floor(low / step)
    first -= first * step > low  # a quotient that was rounded up
    count = max(1, math.ceil(high / step - first))
    edges: Floats = np.asarray((first + np.arange(count + 1)) * step, dtype=np.float64)
    if edges[-1] <= high:
        edges = np.append(edges, edges[-1] + step)
    return edges


def decades(low: float, high: float, count: int) -> Floats:
    """*count* + 1 edges in equal ratios around positive values from *low* to *high*."""
    return np.geomspace(low * (1 - 1e-9), max(high, low * (1 + 1e-6)) * (1 + 1e-9), count + 1)


def in_flight(starts: Floats, ends: Floats, weights: Floats | None = None) -> tuple[Floats, Floats]:
    """Instants at which something begins or ends, and the sum of the *weights* (1 each) of what is under way from then on.

    What ends at an instant is over before what begins at it.
    """
    sizes = np.ones(len(starts)) if weights is None else weights
    at, steps = np.concatenate([ends, starts]), np.concatenate([-sizes, sizes])
    order = np.argsort(at, kind="stable")
    at, sums = at[order], np.cumsum(steps[order])
    last = np.append(at[1:] != at[:-1], True)
    under_way = sums[last]
    if weights is not None:  # sums of fractions leave traces
        under_way = np.where(np.abs(under_way) < 1e-9 * max(1.0, float(np.abs(sums).max(initial=0.0))), 0.0, under_way)
    return at[last], under_way


def slots(starts: Floats, ends: Floats) -> Ints:
    """A slot for each request, in the order of their starts: the lowest that is free then, so that none holds two at once."""
    import heapq

    order = np.argsort(starts, kind="stable")
    taken: list[tuple[float, int]] = []
    free: list[int] = []
    found = np.zeros(len(starts), dtype=np.int64)
    count = 0
    for row in order.tolist():
        while taken and taken[0][0] <= starts[row]:
            heapq.heappush(free, heapq.heappop(taken)[1])
        if free:
            slot = heapq.heappop(free)
        else:
            slot, count = count, count + 1
        found[row] = slot
        heapq.heappush(taken, (float(ends[row]), slot))
    return found


_SORTED = 1 << 20
"""Values of windows that are sorted together: of millions of requests all windows would fill the memory."""


def rolling(values: Floats, window: int, percents: tuple[float, ...]) -> list[Floats]:
    """Percentiles of each value and those before it, *window* in all; fewer at the beginning."""
    found = np.empty((len(percents), len(values)))
    for end in range(min(window - 1, len(values))):
        found[:, end] = np.percentile(values[: end + 1], percents)
    if len(values) >= window:
        every, step = np.lib.stride_tricks.sliding_window_view(values, window), max(1, _SORTED // window)
        at = np.array(percents) / 100 * (window - 1)
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, window - 1)
        for begin in range(0, len(every), step):
            ordered = np.sort(every[begin : begin + step], axis=1)
            part = ordered[:, low] + (ordered[:, high] - ordered[:, low]) * (at - low)
            found[:, window - 1 + begin : window - 1 + begin + len(part)] = part.T
    return [*found]
