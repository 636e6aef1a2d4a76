"""A snapshot: how large it may be, and the lines that people read of it."""

from __future__ import annotations

import msgspec
from aiperf.sdk.snapshot import LiveFailures, LiveMetric, LiveStatistics, LogLine, Snapshot, VerdictSoFar
from aiperf.testing import full_snapshot

PLAIN = Snapshot("profiling", "profiling", 1.5, 9, 7, 1, 2, 4.0)


def test_a_large_snapshot_is_at_most_64_kilobytes() -> None:
    large = full_snapshot(metrics=120, workers=32, series=200, failures=20)
    assert (len(large.metrics), len(large.workers), len(large.series)) == (120, 32, 200)
    assert len(msgspec.msgpack.encode(large)) <= 64_000


def test_its_lines_have_fixed_words() -> None:
    assert PLAIN.lines() == (
        "profiling  0:01  9 sent  8 done  2 in flight  1 failed", "4.0 requests/s (so far 4.0)",
    )  # fmt: skip


def test_its_lines_tell_the_interval_and_the_whole() -> None:
    place, counts, numbers = full_snapshot().lines()
    assert place == "run 3 of 9  concurrency_4/trial_0002  2:10 left"
    assert counts == (
        "profiling  44 %  1:01  ETA 1:18  900 due  900 sent  883 done  17 in flight  23 failed (20 503, 19 503)"
    )
    assert numbers == (
        "15.5 requests/s (so far 14.3)  TTFT p50 34.00 p99 80.50 (so far 34.00 p99 80.50) ms  700 of 860 good (81.4%)"
        "  suspect: arrivals started late"
    )


def test_its_lines_name_two_latencies_at_most() -> None:
    stats = LiveStatistics(1.0, 1.0, 2.0, 0.5, 1.0, 2.0, 2.0, 2.0, 9)
    metrics = [LiveMetric(f"m{at}", f"M{at}", "ms", stats, None, "", "", None, at) for at in (3, 1, 2)]
    number = LiveMetric("rate", "Rate", "x/s", LiveStatistics(4.0), headline=0)
    now = msgspec.structs.replace(PLAIN, metrics=(*metrics, number))
    assert [metric.tag for metric in now.headlines()] == ["m1", "m2"]
    alone = msgspec.structs.replace(PLAIN, metrics=(metrics[0],))
    assert "M3 p50 1.00 p99 2.00 (so far 1.00 p99 2.00) ms" in alone.lines()[1]


def test_its_lines_name_the_two_commonest_kinds_of_failure() -> None:
    kinds = tuple(LiveFailures(f"Kind{at}", 9 - at, 500 + at if at else None) for at in range(3))
    now = msgspec.structs.replace(PLAIN, errors=24, failures=kinds, verdict=VerdictSoFar("trustworthy"))
    assert now.lines()[0].endswith("24 failed (9 Kind0, 8 501)") and "trustworthy" not in now.lines()[1]


def test_a_line_of_the_log_knows_its_level() -> None:
    assert LogLine.of("12:00:00.000 WARNING a") == LogLine("12:00:00.000 WARNING a", 30)
    assert LogLine.of("aiperf: stopping").level == 20
