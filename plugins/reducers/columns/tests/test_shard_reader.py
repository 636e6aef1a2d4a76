"""Segments read as requests: instants on one clock, and nothing that is stored already."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest
from aiperf.parts.segments import ShardReader
from aiperf.rundir import journal
from aiperf_testing.journals import CLOCK, Recording

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


def test_instants_of_a_site_are_on_the_clock_of_the_run(tmp_path: Path) -> None:
    recording, ahead_ns = recorded(tmp_path), 3 * 10**12 + 1
    legs = [(CLOCK.started_mono_ns, 0, CLOCK.started_mono_ns + 5, 200, False)]
    recording.sent(3, 7 * MS, due_ns=6 * MS)
    recording.text(3, "legs", legs)
    recording.read(3, 8 * MS, b"c")
    recording.done(3, 9 * MS)
    recording.flush(10 * MS)
    plain, shifted = (
        ShardReader(recording.journal, 0, CLOCK.started_mono_ns - ahead, ahead) for ahead in (0, ahead_ns)
    )  # fmt: skip
    for here, there in zip(plain.finished(), shifted.finished(), strict=True):
        assert there.reads == here.reads
        moved = [a - b for a, b in zip(here.sent + here.done, there.sent + there.done, strict=True)]
        due = [journal.SENT_FIELDS.index("due_ns")] if here.sent[0] == 3 else []
        ended = len(here.sent) + journal.DONE_FIELDS.index("ended_ns")
        expected = dict.fromkeys([*due, journal.SENT_FIELDS.index("started_ns"), ended], ahead_ns)
        assert {place: by for place, by in enumerate(moved) if by} == expected
    assert there.texts["legs"] == [[legs[0][0] - ahead_ns, 0, legs[0][2] - ahead_ns, 200, False]]
    ((_, _, event),) = shifted.take_news().events
    assert event["at_ns"] == CLOCK.started_mono_ns - ahead_ns


def test_stored_requests_and_events_are_left_out(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    first = ShardReader(recording.journal, 0)
    list(first.finished())
    reader = ShardReader(recording.journal, 0)
    reader.skip_stored(np.array([0]))
    reader.skip_events(first.position)
    assert [request.sent[0] for request in reader.finished()] == [1]
    assert not reader.has_news


def test_a_segment_is_needed_until_the_last_request_of_a_frame_is_taken(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.phase("begin", 0)
    for number in range(3):
        recording.sent(number, MS)
        recording.read(number, 2 * MS, b"an ", late_ns=0)
        recording.read(number, 3 * MS, b"answer", late_ns=0)
    recording.flush(4 * MS)
    for number in range(3):
        recording.done(number, 4 * MS)
    recording.flush(5 * MS)
    whole = journal.segment_path(recording.journal, 0, 0)
    frames = list(journal.frames(whole))
    cut = next(before.end for before, frame in pairwise(frames) if frame.kind == journal.DONE)
    data = whole.read_bytes()
    whole.write_bytes(data[:cut])
    journal.segment_path(recording.journal, 0, 1).write_bytes(data[cut:])
    reader, needed = ShardReader(recording.journal, 0, CLOCK.started_mono_ns), []
    for request in reader.finished():
        assert (request.bodies, request.pieces, request.size) == ([b"an ", b"answer"], [b"an answer"], 9)
        needed.append(reader.oldest_segment)
    assert needed == [0, 0, 0]
    assert reader.oldest_segment == 1


KINDS = (journal.SENT, journal.CHUNKS, journal.DONE)


def flown(directory: Path) -> Recording:
    """Four requests, two at a time: each flush has the end of one, a piece of another, and the begin of a third."""
    recording = Recording(directory)
    for number in range(4):
        if number:
            recording.read(number - 1, number * 10 * MS, b"b")
            recording.done(number - 1, number * 10 * MS)
        recording.sent(number, number * 10 * MS)
        recording.read(number, number * 10 * MS + MS, b"a")
        recording.flush(number * 10 * MS + 2 * MS)
    recording.read(3, 40 * MS, b"b")
    recording.done(3, 40 * MS)
    recording.flush(41 * MS)
    return recording


def outcomes(recording: Recording, *, ended: bool = False) -> tuple[dict[int, str], ShardReader]:
    """What became of each request, and the reader at the end."""
    reader = ShardReader(recording.journal, 0)
    reader.skip_dropped()

    def requests() -> Iterator[tuple[int, str]]:
        for request in [*reader.finished(), *reader.unfinished(ended=ended)]:
            assert request.done[1] != journal.DAMAGED or not request.reads
            yield request.sent[0], journal.OUTCOMES[request.done[1]]

    return dict(requests()), reader


@pytest.mark.parametrize("way", ["flip in the header", "flip in the payload", "taken out"])
@pytest.mark.parametrize(
    ("frame", "damaged", "missing"),
    [
        (0, [], 1),  # the begin of the first request
        (1, [0], 0),  # its piece
        (2, [0], 1),  # the begin of the second: the first is in flight
        (4, [0, 1], 0),  # the end of the first
    ],
)
def test_a_lost_frame_damages_the_requests_in_flight(
    tmp_path: Path, frame: int, damaged: list[int], missing: int, way: str
) -> None:
    recording = flown(tmp_path)
    path = recording.path()
    begins = [0, *(each.end for each in journal.frames(path))]
    data = bytearray(path.read_bytes())
    if way == "taken out":
        del data[begins[frame] : begins[frame + 1]]
    else:
        data[begins[frame] + (8 if way == "flip in the header" else journal.HEADER_BYTES)] ^= 1
    path.write_bytes(data)
    ends, reader = outcomes(recording)
    assert sorted(number for number, outcome in ends.items() if outcome == "damaged") == damaged
    assert reader.missing(4) == missing and len(ends) == 4 - missing
    assert reader.lost == {path.name: 1} and reader.damaged == len(damaged)
    assert ends[3] == "completed", "what began behind the damage is whole"


def test_the_last_frame_of_all_may_be_the_damaged_one(tmp_path: Path) -> None:
    recording = flown(tmp_path)
    data = bytearray(recording.path().read_bytes())
    data[-1] ^= 1
    recording.path().write_bytes(data)
    assert outcomes(recording)[0][3] == "damaged"


def test_a_half_written_end_is_no_damage_of_an_interrupted_run(tmp_path: Path) -> None:
    recording = flown(tmp_path)
    recording.path().write_bytes(recording.path().read_bytes()[:-1])
    ends, reader = outcomes(recording)
    assert ends[3] == "unfinished" and not reader.lost
    ends, reader = outcomes(recording, ended=True)
    assert ends[3] == "damaged", "the run had recorded the end of every request"
    assert reader.lost == {"shard-0.0.seg": 1}


def test_a_lost_segment_is_passed_over(tmp_path: Path) -> None:
    recording = flown(tmp_path)
    for number in (4, 5, 6):
        recording.roll()
        recording.answered(number, 50 * MS, (51 * MS, b"a"))
        recording.flush(52 * MS)
    journal.segment_path(recording.journal, 0, 2).unlink()
    ends, reader = outcomes(recording)
    assert list(ends) == [0, 1, 2, 3, 4, 6] and reader.missing(0) == 1
    assert reader.lost == {"shard-0.2.seg": 0}


def test_a_worker_in_the_place_of_a_dead_one_numbers_its_frames_anew(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    for pid in (7, 8):
        recording.frame(journal.PLAN, msgspec.msgpack.encode({"pid": pid, "started_mono_ns": 1}), 0)
        recording.restart()
        recording.sent(pid, pid * MS)
        recording.flush(pid * MS)
        recording.roll()
    ends, reader = outcomes(recording)
    assert set(ends.values()) == {"unfinished"} and not reader.lost
