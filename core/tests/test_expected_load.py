"""How many workers and reducers a load gets: the decisions as a table."""

from __future__ import annotations

import pytest
from aiperf.planning.expected_load import (
    ANSWER_TOKENS,
    CHUNK_US,
    REQUEST_US,
    STREAM_CHUNKS_PER_S,
    WORKER_SHARE,
    ExpectedLoad,
    expected_load,
    highest,
    reducers_for,
)
from aiperf.sdk.plan import PhasePlan, Replay


def phase(**more: object) -> PhasePlan:
    return PhasePlan("profiling", "profiling", 0, "burst", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("given", "streaming", "tokens", "requests_s", "chunks_s", "sessions"), [
    ({"rate": 100.0}, False, None, 100, 0, 0),
    ({"rate": 100.0}, True, 50.0, 100, 5_000, 0),
    ({"rate": 100.0}, True, None, 100, 100 * ANSWER_TOKENS, 0),
    ({"rate": 100.0}, True, 0.1, 100, 100, 0),
    # Ten streams bring no more chunks than ten streams can.
    ({"rate": 100.0, "concurrency": 10}, True, 50.0, 10 * STREAM_CHUNKS_PER_S / 50, 10 * STREAM_CHUNKS_PER_S, 10),
    ({"rate": 100.0, "concurrency": 10}, False, 50.0, 100, 0, 10),
    ({"rate_series": ((0.0, 10.0), (5.0, 400.0), (9.0, 20.0))}, True, 10.0, 400, 4_000, 0),
    ({"concurrency": 64}, True, 100.0, 64 * STREAM_CHUNKS_PER_S / 100, 64 * STREAM_CHUNKS_PER_S, 64),
    ({"concurrency": 64}, False, 100.0, 64 * STREAM_CHUNKS_PER_S / 100, 0, 64),
    ({"users": 30, "rate": 5.0}, True, 10.0, 5, 50, 30),
    ({"prefill_concurrency": 4}, True, 10.0, 0, 0, 0),
    ({"replay": Replay()}, True, 10.0, 0, 0, 0),
])  # fmt: skip
def test_a_phase_is_expected_to_bring(
    given: dict[str, object], streaming: bool, tokens: float | None, requests_s: float, chunks_s: float, sessions: int
) -> None:
    found = expected_load(phase(**given), streaming=streaming, answer_tokens=tokens)
    assert found == pytest.approx((requests_s, chunks_s, sessions))


FULL = WORKER_SHARE / REQUEST_US * 1e6
"""Requests/s of one worker without streaming."""
STREAMS = WORKER_SHARE / (STREAM_CHUNKS_PER_S * CHUNK_US) * 1e6
"""Streams that one worker reads, whose requests hardly cost anything."""


@pytest.mark.parametrize(("load", "workers"), [
    (ExpectedLoad(0, 0, 0), 1), (ExpectedLoad(FULL, 0, 0), 1), (ExpectedLoad(FULL + 1, 0, 0), 2),
    (ExpectedLoad(10 * FULL, 0, 0), 10), (ExpectedLoad(0, STREAMS * STREAM_CHUNKS_PER_S, 0), 1),
    (ExpectedLoad(0, 3.5 * STREAMS * STREAM_CHUNKS_PER_S, 0), 4), (ExpectedLoad(1, 1, 5_001), 2),
    (ExpectedLoad(1_000_000, 0, 0), 50),
])  # fmt: skip
def test_workers_keep_pace_with_the_expected_load(load: ExpectedLoad, workers: int) -> None:
    assert load.workers == workers


def test_the_phase_with_most_to_do_decides() -> None:
    one, other = ExpectedLoad(100, 5_000, 10), ExpectedLoad(200, 0, 10)
    assert highest([other, one, other]) is one


@pytest.mark.parametrize(("load", "workers", "cpus", "forced", "reducers"), [
    (ExpectedLoad(10, 1_000, 0), 1, 64, False, 1),
    (ExpectedLoad(70_000, 0, 0), 4, 64, False, 4),  # half a core of reducing for each worker
    (ExpectedLoad(40_000, 0, 0), 4, 64, False, 2),  # a quarter: a reducer reads for three, or two of them for two each
    (ExpectedLoad(200, 100_000, 0), 4, 64, False, 1),
    (ExpectedLoad(10, 0, 256), 4, 16, True, 4),  # four workers were asked for, so they are busy
    (ExpectedLoad(10, 1_000, 256), 4, 16, True, 2),
    (ExpectedLoad(10, 0, 256), 8, 16, True, 4),  # half of what workers leave
    (ExpectedLoad(10, 0, 256), 4, 2, True, 1),
    (ExpectedLoad(1e9, 0, 0), 32, 640, False, 32),
    (ExpectedLoad(0, 0, 0), 3, 64, False, 1),
    (ExpectedLoad(70_000, 0, 0), 4, None, False, 4),  # at sites: as many as the load needs
    (ExpectedLoad(10, 0, 256), 9, None, True, 1),
])  # fmt: skip
def test_reducers_keep_pace_with_the_workers(
    load: ExpectedLoad, workers: int, cpus: int | None, forced: bool, reducers: int
) -> None:
    assert reducers_for(load, workers, cpus, forced=forced) == reducers


def test_a_load_says_what_it_has() -> None:
    assert str(ExpectedLoad(1_000, 0, 0)) == "1,000 requests/s"
    assert str(ExpectedLoad(10, 5_120, 64)) == "10 requests/s with 5,120 chunks/s, 64 sessions at a time"
