"""A telemetry source without an end, a grader that draws, and a name that another package claims."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import count

from aiperf import Grade, Grader
from aiperf.sdk.telemetry import Point, SeriesKind, TelemetrySource


class Endless(TelemetrySource):
    interval_s = 1.0

    def sample(self) -> Iterable[Point]:
        return (Point("level", n, SeriesKind.GAUGE, "1", labels={"n": str(n)}) for n in count())


class Dice(Grader):
    def grade(self, expected: str, response: str) -> Grade:
        return Grade(correct=random.random() < 0.5)


def twin(seed: int, session: int, count: int) -> int:
    return session % count
