"""Quantities over time, from samples that have what changed alone."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.series import Line, Moment, Sample, SeriesHeader, SourceHeader, TargetHeader, Value, Window
from aiperf.sdk.telemetry import SeriesKind
from aiperf_servers.over_time import MOST_POINTS, Points, over_time, thinned

SECOND = 1_000_000_000
PHASE = Window(0, 10 * SECOND, 20 * SECOND)
ORIGIN = SourceHeader(PluginRef("telemetry", "server_metrics", "m:S", "acme", "1"), 0.5, (TargetHeader("http://a", 0.5),))
RUNNING, TTFT, DONE, OTHER = (
    SeriesHeader(0, "vllm:num_requests_running", SeriesKind.GAUGE),
    SeriesHeader(1, "vllm:time_to_first_token_seconds", SeriesKind.HISTOGRAM, bounds=(0.1,)),
    SeriesHeader(2, "vllm:request_success_total", SeriesKind.COUNTER),
    SeriesHeader(3, "process_cpu_seconds_total", SeriesKind.COUNTER),
)


def at(second: float, **values: Value) -> Sample:
    moment = Moment(round(second * SECOND), 0, 0, 0)
    return Sample(moment, {int(number[1:]): value for number, value in values.items()})


def curves(*lines: Line) -> dict[str, Points]:
    found = over_time([ORIGIN, RUNNING, TTFT, DONE, OTHER, *lines], PHASE)
    return {f"{engine.name} {quantity} {unit}": points for _, engine, quantity, unit, points in found}


def test_a_value_that_did_not_change_holds() -> None:
    found = curves(at(9, _0=1), at(10, _0=2), at(11), at(12, _3=7), at(13, _0=5), at(21, _0=9))
    assert found == {"vllm running requests": [(0.0, 2.0), (1.0, 2.0), (2.0, 2.0), (3.0, 5.0)]}


def test_a_latency_is_the_mean_of_what_ended_since_the_point_before() -> None:
    found = curves(at(9, _1=[1.0, 5, 10]), at(11, _1=[3.0, 5, 20]), at(12), at(13, _1=[3.4, 6, 22]))
    seconds, means = zip(*found["vllm time_to_first_token ms"], strict=True)
    assert seconds == (1.0, 3.0) and means == pytest.approx((200.0, 200.0))


def test_a_count_is_its_growth_a_second_and_begins_again_with_the_server() -> None:
    found = curves(at(10, _2=100), at(11, _2=110), at(13, _2=110), at(14, _2=4), at(15, _2=10))
    assert found["vllm requests requests/s"] == [(1.0, 10.0), (3.0, 0.0), (5.0, 6.0)]


def test_a_series_that_ended_makes_no_points() -> None:
    gone = Sample(Moment(12 * SECOND, 0, 0, 0), ended=[0])
    assert curves(at(10, _0=2), at(11), gone, at(13))["vllm running requests"] == [(0.0, 2.0), (1.0, 2.0)]


def test_of_many_points_the_extremes_stay_in_order() -> None:
    draw = random.Random(3)
    points = [(float(n), draw.random()) for n in range(10_000)]
    points[4321] = 4321.0, 7.0
    kept = thinned(points)
    assert len(kept) <= MOST_POINTS and (4321.0, 7.0) in kept
    assert min(kept, key=lambda point: point[1]) == min(points, key=lambda point: point[1])
    assert all(before < after for before, after in pairwise(kept))
    assert thinned(points[:MOST_POINTS]) == points[:MOST_POINTS]
