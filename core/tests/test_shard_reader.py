"""Segments read as requests: instants on one clock, and nothing that is stored already."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from aiperf.rundir import journal
from aiperf.rundir.shard_reader import ShardReader
from aiperf.testing.journals import CLOCK, Recording

MS = 1_000_000


def recorded(directory: Path) -> Recording:
    """Two requests that end, one that doesn't; the wall clock is set before the second flush."""
    recording = Recording(directory)
    recording.phase("begin", 0)
    recording.answered(0, MS, (2 * MS, b"a"))
    recording.flush(3 * MS)
    recording.step_ns = 10**9
    recording.answered(1, 4 * MS, (5 * MS, b"b"))
    recording.sent(2, 4 * MS)
    recording.flush(6 * MS)
    return recording


def test_requests_come_in_the_order_of_their_ends(tmp_path: Path) -> None:
    reader = ShardReader(recorded(tmp_path).journal, 0, CLOCK.started_mono_ns)
    requests = list(reader.finished())
    assert [(request.sent[0], request.done[1]) for request in requests] == [(0, journal.COMPLETED), (1, journal.COMPLETED)]
    assert [(request.sent[0], request.done[1]) for request in reader.unfinished()] == [(2, journal.UNFINISHED)]


def test_a_clock_step_leaves_the_read_stamp_and_is_news_once(tmp_path: Path) -> None:
    reader = ShardReader(recorded(tmp_path).journal, 0, CLOCK.started_mono_ns)
    assert [request.reads for request in reader.finished()] == [
        [(2 * MS, 2 * MS + 1_000, 0, b"a")],
        [(5 * MS + 1_000, 5 * MS + 1_000, 0, b"b")],
    ]
    news = reader.take_news()
    assert (news.clock_steps, [value["event"] for _, _, value in news.events]) == (1, ["begin"])
    assert not reader.has_news


def test_stored_requests_and_events_are_left_out(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    first = ShardReader(recording.journal, 0)
    list(first.finished())
    reader = ShardReader(recording.journal, 0)
    reader.skip_stored(np.array([0]))
    reader.skip_events(first.position)
    assert [request.sent[0] for request in reader.finished()] == [1]
    assert not reader.has_news
