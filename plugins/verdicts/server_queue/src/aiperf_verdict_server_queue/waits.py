"""The waits of requests in the queues of servers, and the load that was there meanwhile."""

from __future__ import annotations

import math
from collections.abc import Iterator

from aiperf import Evidence
from aiperf_servers import Client, Levels, ServerCounts, lacks, servers, urls_of
from msgspec import Struct

SHARE = 0.25
"""A queue with a smaller part of the time to first token is not spoken of."""
SHARE_WITHOUT_STEP = 0.4
"""Likewise where the time between tokens, and with it the length of the step that each request waits for, is not known."""
_STEPS = 1.5
"""Mean times between tokens that a request may wait for the step under way, which may compute other prompts, too."""
_FEWEST_REQUESTS = 5
_ERRORS = 3.0
"""Standard errors of a mean that comes from samples."""


class QueueWait(Struct, frozen=True):
    """The queue of one target.

    exact: both times are the server's own, over the whole phase.  streamed: the share is of the time to first token, else of
    the whole latency.
    """

    sentence: str
    numbers: dict[str, int | float]
    exact: bool
    streamed: bool


class _Time(Struct, frozen=True):
    """A mean time in ms, and the least that it may be; own: the server counted it itself."""

    mean_ms: float
    least_ms: float
    own: bool


def waits(evidence: Evidence) -> Iterator[QueueWait]:
    """The queues that had their part in the times, by target and engine."""
    for target, server in servers(evidence):
        client = Client(evidence, urls_of(evidence, target))
        waited, whole = _waited(evidence, server), _until_first(server, client)
        streamed = whole is not None
        whole = whole or _latency(server, client)
        if waited is None or whole is None or whole.mean_ms <= 0:
            continue
        step_ms = _step_ms(server, client)
        least = SHARE_WITHOUT_STEP if step_ms is None else SHARE
        if waited.least_ms < least * whole.mean_ms or waited.least_ms <= _STEPS * (step_ms or 0.0):
            continue
        yield _said(evidence, target, server, waited, whole, streamed=streamed)


def _waited(evidence: Evidence, server: ServerCounts) -> _Time | None:
    """The mean wait: of the histogram, else by Little's law; None where the server has neither, or too few requests."""
    seen = server.observed("queue_time")
    if seen is not None:
        mean_ms = seen.mean_ms
        return None if mean_ms is None or seen.number < _FEWEST_REQUESTS else _Time(mean_ms, mean_ms, own=True)
    requests, level = server.counted("requests"), server.leveled("waiting")
    seconds = evidence.summary.observation_window_s
    if requests is None or requests < _FEWEST_REQUESTS or level is None or not seconds:
        return None
    each_ms = 1e3 * seconds / requests
    return _Time(each_ms * level.avg, each_ms * (level.avg - _error(server)), own=False)


def _error(server: ServerCounts) -> float:
    """By how much the mean number of waiting requests may be too large, as it comes from samples."""
    families = {name for each in server.engine.levels if each.quantity == "waiting" for name in each.families}
    known = [one.stats for name in families for one in server.gauges(name)]
    return _ERRORS * math.sqrt(sum(one.get("std", 0.0) ** 2 / max(1.0, one.get("count", 1.0)) for one in known))


def _until_first(server: ServerCounts, client: Client) -> _Time | None:
    seen = server.observed("time_to_first_token")
    if seen is not None and seen.mean_ms is not None:
        return _Time(seen.mean_ms, seen.mean_ms, own=True)
    mean_ms = client.latency("time_to_first_token", "avg")
    return None if mean_ms is None else _Time(mean_ms, mean_ms, own=False)


def _latency(server: ServerCounts, client: Client) -> _Time | None:
    seen = server.observed("request_latency")
    if seen is not None and seen.mean_ms is not None:
        return _Time(seen.mean_ms, seen.mean_ms, own=True)
    mean_ms = client.latency("request_latency", "avg")
    return None if mean_ms is None else _Time(mean_ms, mean_ms, own=False)


def _step_ms(server: ServerCounts, client: Client) -> float | None:
    seen = server.observed("inter_token_latency")
    return seen.mean_ms if seen is not None and seen.mean_ms else client.latency("inter_token_latency", "avg")


def _said(
    evidence: Evidence, target: str, server: ServerCounts, waited: _Time, whole: _Time, *, streamed: bool
) -> QueueWait:
    share, what = 100 * waited.mean_ms / whole.mean_ms, "time to first token" if streamed else "latency"
    running, waiting = server.leveled("running"), server.leveled("waiting")
    asked, hint = _asked(evidence)
    where = f"{server.engine.name} at {target}" if target else server.engine.name
    unknown = [] if waited.own else ["a histogram of waits (the wait follows from the number that waited)"]
    unknown += [] if whole.own else [f"the server's own {what} (it is the client's)"]
    unknown += [] if running is not None else ["how many it computed at a time"]
    if lack := lacks(evidence, target):
        unknown.append(f"the whole phase ({lack})")
    sentence = (
        f"requests spent {share:.0f} % of their {what} in the queue of {where}: {waited.mean_ms:,.0f} of {whole.mean_ms:,.0f}"
        f" ms on average{_load(running, waiting)}{asked}. That part is of the load, not of the model: {hint}, or let"
        " the server compute more requests at a time"
    )
    sentence += f"; not known: {', '.join(unknown)}" if unknown else ""
    numbers: dict[str, int | float] = {"queue_mean_ms": waited.mean_ms, "mean_ms": whole.mean_ms, "share_pct": share}
    for name, level in (("running", running), ("waiting", waiting)):
        if level is not None:
            numbers |= {f"{name}_avg": level.avg} | ({} if level.most is None else {f"{name}_max": level.most})
    return QueueWait(sentence, numbers, waited.own and whole.own and not lack, streamed)


def _load(running: Levels | None, waiting: Levels | None) -> str:
    """The server's load meanwhile; empty where it is not known."""
    parts = [
        f"{level.avg:.3g} {what}" + ("" if level.most is None else f" (at most {level.most:.0f})")
        for level, what in ((running, "were computed"), (waiting, "waited")) if level is not None
    ]  # fmt: skip
    return f", while {' and '.join(parts)}" if parts else ""


def _asked(evidence: Evidence) -> tuple[str, str]:
    """The load that was asked for, and what lowers it."""
    phase = evidence.phase
    if phase.paced and phase.rate is not None:
        return f" at {phase.rate:g} requests/s", "send fewer requests a second"
    if phase.concurrency is not None:
        return f" with --concurrency {phase.concurrency}", "lower the concurrency"
    return "", "send less"
