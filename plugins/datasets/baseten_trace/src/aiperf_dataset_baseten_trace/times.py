"""When the requests of a trace are sent again."""

from __future__ import annotations

from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from aiperf_dataset_baseten_trace.options import BasetenTraceOptions


class Request(Struct, frozen=True):
    """A row of the trace, by its number, with its recorded start and length.

    session: None for a request by itself.  timestamp_ms, delay_ms: of the replay; None where it follows the other one.
    """

    row: int
    start_ms: float
    length_ms: float
    session: str | None = None
    timestamp_ms: float | None = None
    delay_ms: float | None = None


def replayed(sessions: list[list[Request]], options: BasetenTraceOptions) -> list[list[Request]]:
    """The sessions, each in the order of its times, with the times and delays of the replay."""
    starts = sorted(request.start_ms for session in sessions for request in session)
    cap = float("inf") if options.idle_gap_cap_s is None else options.idle_gap_cap_s * 1000.0
    places, now = {starts[0]: 0.0}, 0.0
    for before, start in pairwise(starts):
        now += min(start - before, cap)
        places[start] = now
    return [list(_session(session, places, options)) for session in sessions]


def _session(session: list[Request], places: dict[float, float], options: BasetenTraceOptions) -> list[Request]:
    done = []
    for at, request in enumerate(session):
        place = places[request.start_ms]
        if at == 0 or options.open_loop_replay:
            done.append(replace(request, timestamp_ms=place / options.speedup))
            continue
        before = session[at - 1]
        pause = max(0.0, place - places[before.start_ms] - before.length_ms)
        done.append(replace(request, delay_ms=pause / options.speedup))
    return done
