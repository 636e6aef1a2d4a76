"""When requests leave, which entry and which URL they use, and what becomes of them on the way out."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import numpy as np
from aiperf import HttpRequest, PhasePlan, Plan, Schedule, ScheduleContext, Turn, UrlStrategy, hookimpl
from numpy.typing import NDArray

from acme_sundries.options import SundriesOptions

Floats = NDArray[np.float64]

_ASKED = re.compile(rb'("max_(?:completion_)?tokens": ?)(\d+)')


def lumps(seed: int, stream: str, block: int, count: int, smoothness: float) -> Floats:
    return np.tile([2.0, 0.0], -(-count // 2))[:count]


def leaps(x: Floats) -> Floats:
    risen: Floats = np.floor(x * 4.0) / 4.0
    return risen


def backwards(seed: int, session: int, count: int) -> int:
    return count - 1 - session % count


class Counterclockwise(UrlStrategy):
    def choose(self, session: int, in_flight: Sequence[int]) -> int:
        return -1 - session % len(self.weights) + len(self.weights)


class Metronome:
    paced = True

    def __init__(self, context: ScheduleContext, beat_s: float = 0.1) -> None:
        self._beat_ns = round(beat_s * 1e9)

    def due_block(self, first: int, count: int) -> NDArray[np.int64]:
        return np.arange(first, first + count, dtype=np.int64) * self._beat_ns


class Sundries:
    options: SundriesOptions

    @hookimpl
    def aiperf_make_schedule(self, plan: Plan, phase: PhasePlan) -> Schedule | None:
        beat_s = self.options.beat_s
        return None if beat_s is None else Metronome(ScheduleContext(plan.run.seed, phase), beat_s)

    @hookimpl
    def aiperf_request_prepared(self, request: HttpRequest, turn: Turn) -> HttpRequest | None:
        most = self.options.thrift
        if most is None or request.body is None:
            return None
        less = _ASKED.sub(lambda found: found[1] + b"%d" % min(most, int(found[2])), request.body)
        return msgspec.structs.replace(request, body=less)
