"""Frames on disk: whole, torn, damaged, followed."""

from __future__ import annotations

import os
from array import array
from pathlib import Path
from typing import Any

import pytest
from aiperf.rundir import journal
from aiperf.worker.logbook import Logbook

SENT = (0, 0, 0, 0, 0, 0, 0, 0, -1, 5)
DONE = (0, journal.COMPLETED, 200, 0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0)


def write(path: Path, *payloads: bytes) -> None:
    path.write_bytes(b"".join(journal.pack(journal.TEXT, payload, 1, 2, 3) for payload in payloads))


def test_frames_come_back_as_they_were_packed(tmp_path: Path) -> None:
    write(tmp_path / "a", b"one", b"", b"three")
    assert [(f.kind, f.count, f.mono_ns, f.wall_ns, f.payload) for f in journal.frames(tmp_path / "a")] == [
        (journal.TEXT, 3, 1, 2, payload) for payload in (b"one", b"", b"three")
    ]


def test_a_file_cut_anywhere_gives_its_whole_frames(tmp_path: Path) -> None:
    write(tmp_path / "a", b"one", b"two")
    data = (tmp_path / "a").read_bytes()
    first = journal.HEADER_BYTES + 3
    for cut in range(len(data)):
        (tmp_path / "b").write_bytes(data[:cut])
        assert len(list(journal.frames(tmp_path / "b"))) == (cut >= first)


class Growing:
    """A path of a file that a writer goes on with as soon as a reader has met its end."""

    def __init__(self, path: Path, rest: bytes) -> None:
        self._path, self._rest = path, rest

    def open(self, mode: str) -> Growing:
        self._file = self._path.open(mode)
        return self

    def __enter__(self) -> Growing:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def seek(self, place: int) -> None:
        self._file.seek(place)

    def read(self, count: int = -1) -> bytes:
        found: bytes = self._file.read(count)
        if self._rest and len(found) < count:
            with self._path.open("ab") as file:
                file.write(self._rest)
            self._rest = b""
        return found


def test_a_frame_that_becomes_whole_while_it_is_read_is_not_passed_over(tmp_path: Path) -> None:
    """The writer finishes the second frame, and writes the third, between two reads of a reader that follows it."""
    write(tmp_path / "a", b"one", b"two", b"three")
    data = (tmp_path / "a").read_bytes()
    for cut in range(journal.HEADER_BYTES + 3, len(data)):
        (tmp_path / "b").write_bytes(data[:cut])
        growing: Any = Growing(tmp_path / "b", data[cut:])
        found = [f.payload for f in journal.frames(growing)]
        assert found == [b"one", b"two", b"three"][: len(found)], cut
        assert len(found) > 1 or cut < 2 * journal.HEADER_BYTES + 3, cut


def test_a_flipped_bit_costs_its_frame_alone(tmp_path: Path) -> None:
    write(tmp_path / "a", b"one", b"two", b"three")
    data = bytearray((tmp_path / "a").read_bytes())
    size = journal.HEADER_BYTES + 3
    for at in range(size, 2 * size):
        data[at] ^= 1
        (tmp_path / "b").write_bytes(data)
        data[at] ^= 1
        assert [(f.payload, f.skipped) for f in journal.frames(tmp_path / "b")] == [(b"one", 0), (b"three", size)]


def test_bytes_taken_out_cost_the_frames_they_were_of(tmp_path: Path) -> None:
    write(tmp_path / "a", b"one", b"two", b"three")
    data = (tmp_path / "a").read_bytes()
    size = journal.HEADER_BYTES + 3
    for taken in range(1, size):
        (tmp_path / "b").write_bytes(data[: size + 1] + data[size + 1 + taken :])
        assert [f.payload for f in journal.frames(tmp_path / "b")] == [b"one", b"three"][: 1 + (taken < size)]


def test_a_marker_in_a_payload_is_no_frame(tmp_path: Path) -> None:
    write(tmp_path / "a", b"one", journal.MARKER * 30, b"three")
    data = bytearray((tmp_path / "a").read_bytes())
    data[journal.HEADER_BYTES + 3] ^= 1
    (tmp_path / "a").write_bytes(data)
    assert [f.payload for f in journal.frames(tmp_path / "a")] == [b"one", b"three"]


@pytest.mark.parametrize(("change", "torn"), [("nothing", True), ("cut", True), ("flip", False)])
def test_a_half_written_frame_is_told_from_a_damaged_one(tmp_path: Path, change: str, torn: bool) -> None:
    write(tmp_path / "a", b"one", b"two")
    data = bytearray((tmp_path / "a").read_bytes())
    whole = journal.HEADER_BYTES + 3
    for at in range(whole, len(data)):
        changed = bytearray(data[:at] if change == "cut" else data)
        if change == "flip":
            changed[at] ^= 1
        (tmp_path / "b").write_bytes(changed)
        ends = [f.end for f in journal.frames(tmp_path / "b")]
        assert journal.torn(tmp_path / "b", ends[-1]) is torn


def test_a_growing_file_is_followed_from_the_last_end(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write(path, b"one")
    (frame,) = journal.frames(path)
    with path.open("ab") as file:
        file.write(journal.pack(journal.TEXT, b"two", 0, 0))
    assert [f.payload for f in journal.frames(path, frame.end)] == [b"two"]


def test_files_are_ordered_by_number_not_by_letter(tmp_path: Path) -> None:
    for name in ("shard-10.0.seg", "shard-2.10.seg", "shard-2.9.seg"):
        (tmp_path / name).touch()
    assert [p.name for p in journal.numbered(tmp_path, "shard-*.seg")] == ["shard-2.9.seg", "shard-2.10.seg", "shard-10.0.seg"]


def test_a_logbook_keeps_rows_and_bodies_together_and_done_behind_its_chunks(tmp_path: Path) -> None:
    book = Logbook(tmp_path, 3, {"run_id": "x"})
    book.sent(SENT)
    book.chunk(0, 11, 12, b"hello", 0)
    book.chunk(0, 13, 14, b"you", 1)
    book.text(0, "error", {"message": "no"})
    book.done(DONE)
    book.close()
    kinds = [f.kind for f in journal.frames(journal.segment_path(tmp_path, 3, 0))]
    assert kinds == [journal.PLAN, journal.SENT, journal.CHUNKS, journal.TEXT, journal.DONE]
    chunks = next(f for f in journal.frames(journal.segment_path(tmp_path, 3, 0)) if f.kind == journal.CHUNKS)
    rows = array("q", chunks.payload[: 2 * 40])
    assert rows.tolist() == [0, 11, 12, 5, 0, 0, 13, 14, 3, 1]
    assert chunks.payload[80:] == b"helloyou"


def test_a_logbook_flushes_by_itself_when_a_frame_is_full(tmp_path: Path) -> None:
    book = Logbook(tmp_path, 0, {})
    for _ in range(3):
        book.chunk(0, 0, 0, b"x" * journal.FLUSH_BYTES, 0)
    book.close()
    assert [f.count for f in journal.frames(journal.segment_path(tmp_path, 0, 0)) if f.kind == journal.CHUNKS] == [1, 1, 1]


def test_a_segment_goes_on_where_no_other_file_can_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_file_left(*_: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(journal, "SEGMENT_BYTES", 1)
    book = Logbook(tmp_path, 0, {})
    monkeypatch.setattr("aiperf.worker.logbook.os.open", no_file_left)
    for _ in range(3):
        book.sent(SENT)
        book.flush()
    book.close()
    assert book.trouble is None
    kinds = [frame.kind for frame in journal.frames(journal.segment_path(tmp_path, 0, 0))]
    assert kinds == [journal.PLAN, journal.SENT, journal.SENT, journal.SENT]


def test_a_disk_that_refuses_leaves_a_sentence_and_a_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    written = 0

    def full(fd: int, data: bytes | memoryview) -> int:
        nonlocal written
        if written > 100:
            raise OSError(28, "No space left on device")
        written += len(data)
        return real(fd, data)

    monkeypatch.setattr(journal.os, "write", full)
    book = Logbook(tmp_path, 0, {"run_id": "x" * 80})
    for _ in range(2):
        book.sent(SENT)
        book.flush()
    book.close()
    assert book.trouble is not None
    assert "No space left" in book.trouble
    assert [f.kind for f in journal.frames(journal.segment_path(tmp_path, 0, 0))] == [journal.PLAN, journal.SENT]


def test_what_a_full_disk_refuses_is_kept_for_whoever_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, room = os.write, 150

    def full(fd: int, data: bytes | memoryview) -> int:
        nonlocal room
        if not room:
            raise OSError(28, "No space left on device")
        written = real(fd, data[:room])
        room -= written
        return written

    monkeypatch.setattr(journal.os, "write", full)
    book = Logbook(tmp_path, 0, {"run_id": "x"}, keeps=True)
    for _ in range(3):
        book.sent(SENT)
        book.flush()
    book.close()
    (name,) = {name for name, _ in book.unwritten()}
    rest, path = b"".join(piece for _, piece in book.unwritten()), tmp_path / name
    assert book.trouble is not None and path.stat().st_size == 150
    path.write_bytes(path.read_bytes() + rest)
    found = [*journal.frames(path)]
    assert [frame.kind for frame in found] == [journal.PLAN, *[journal.SENT] * 3] and not sum(frame.skipped for frame in found)


def test_a_segment_that_no_file_could_be_made_for_is_kept_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("aiperf.worker.logbook.os.open", no_room)
    book = Logbook(tmp_path, 0, {"run_id": "x"}, keeps=True)
    book.sent(SENT)
    book.close()
    ((name, rest),) = book.unwritten()
    assert book.trouble is not None and [*tmp_path.iterdir()] == []
    (tmp_path / name).write_bytes(rest)
    assert name == "shard-0.0.seg"
    assert [frame.kind for frame in journal.frames(tmp_path / name)] == [journal.PLAN, journal.SENT]
