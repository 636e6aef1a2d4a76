"""Rows of exporters that are put off until the summary is there: the same files, by one process and by two."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiperf.rundir.artifacts import part_path
from aiperf.rundir.journal import load_end
from aiperf.sdk.columns import Column, RecordBatch
from aiperf.sdk.exporter import BatchExporter
from aiperf.sdk.metric import Metric, Unit
from aiperf.sdk.summary import Summary
from aiperf.sdk.transport import STREAMED
from aiperf_reducer_columns.reduce import batches as stored_batches
from aiperf_reducer_columns.reduce.outlets import Outlets
from aiperf_reducer_columns.reduce.reducer import ShardReducer
from aiperf_reducer_columns.report.report import write_summary
from aiperf_testing.journals import CLOCK, Recording, event
from aiperf_testing.plans import sample_ref

REQUESTS = 40


class FirstToken(Metric):
    tag, title, unit = "first", "First", Unit.NANOSECONDS

    def column(self, batch: RecordBatch) -> Column:
        return batch["first_token_ns"] - batch["started_ns"]


class Lines(BatchExporter):
    label, kind = "Lines", "lines.txt"

    def rows(self, batch: RecordBatch) -> bytes:
        first = batch.values["first"]
        assert isinstance(first, np.ndarray)
        shown = zip(batch.texts["request_id"], first, batch["outcome"], batch.texts["error"], strict=True)
        return b"".join(repr(row).encode() + b"\n" for row in shown)


class Fussy(Lines):
    kind = "fussy.txt"

    def rows(self, batch: RecordBatch) -> bytes:
        raise ZeroDivisionError("no rows today")


def ref(category: str, plugin: type) -> Any:
    return sample_ref(category, f"{__name__}:{plugin.__name__}")


def a_run(directory: Path, *exporters: type, finishing: int = 0) -> Recording:
    """Forty requests in batches of three.  *finishing*: so many of the first answers have a reason for their end."""
    made = Recording(
        directory, metrics=(ref("metrics", FirstToken),),
        exporters=tuple(ref("exporters", each) for each in exporters or (Lines,)),
    )  # fmt: skip
    made.phase("begin", 0)
    for number in range(REQUESTS):
        start = 100 * number
        made.sent(number, start)
        made.read(number, start + 20 + number, event(text="a word", finish="stop" if number < finishing else None))
        made.done(number, start + 60, flags=STREAMED)
        made.flush(start + 70)
    made.phase("end", 5_001)
    made.ended()
    return made


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_batches, "BATCH_REQUESTS", 3)


def reducer(made: Recording) -> ShardReducer:
    return ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK)


def summary_of(made: Recording, work: ShardReducer) -> dict[str, Any]:
    write_summary(made.journal, reductions=[work.reduction])
    summary = msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)
    builtins: dict[str, Any] = msgspec.to_builtins(summary)
    return builtins


def part(made: Recording) -> bytes:
    return part_path(made.journal, "lines", 0).read_bytes()


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[str, Any]]:
    """Part and summary of a reducer that puts nothing off."""
    made = a_run(tmp_path_factory.mktemp("at-once"))
    work = reducer(made)
    work.finish(load_end(made.journal), save=False)
    return part(made), summary_of(made, work)


def put_off(made: Recording, frames: int, *, aside: bool) -> ShardReducer:
    """A reducer that has exported what so many frames have, and has put off the rest."""
    work = reducer(made)
    for _ in range(frames):
        work.step(0.0)
        work.emit()
    work.put_off_rows()
    if aside:
        work.read_aside(load_end(made.journal), lambda: [f"it was process {os.getpid()}"])
    work.finish(load_end(made.journal), save=False)
    return work


@pytest.mark.parametrize("frames", [0, 7, 200])
@pytest.mark.parametrize("aside", [False, True], ids=["alone", "by two"])
def test_rows_come_behind_the_summary_and_are_the_same(
    tmp_path: Path, at_once: tuple[bytes, dict[str, Any]], frames: int, aside: bool
) -> None:
    made = a_run(tmp_path)
    work = put_off(made, frames, aside=aside)
    summary = summary_of(made, work)
    if not aside:
        before = part(made)
        assert at_once[0].startswith(before) and (before == at_once[0]) == (frames == 200)
    assert work.rows_wait
    assert work.write_rows() == []
    assert not work.rows_wait
    assert (part(made), summary) == at_once
    assert all(each.startswith("it was process ") for each in work.warned_aside)


@pytest.mark.parametrize("aside", [False, True], ids=["alone", "by two"])
def test_answers_that_were_cut_are_errors_in_the_rows_too(tmp_path: Path, aside: bool) -> None:
    at_once = a_run(tmp_path / "at-once", finishing=6)
    reducer(at_once).finish(load_end(at_once.journal), save=False)
    made = a_run(tmp_path / "put-off", finishing=6)
    put_off(made, 0, aside=aside).write_rows()
    assert part(made) == part(at_once)
    assert part(made).count(b"IncompleteStream") == REQUESTS - 6


@pytest.fixture
def slow_child(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Rows take a second process 10 ms a batch, so that the reducer makes some, too; how many rows it made, by batch."""
    here, made = os.getpid(), list[int]()
    rows = Outlets.rows

    def slowly(outlets: Outlets, batch: RecordBatch) -> list[bytes]:
        if os.getpid() == here:
            made.append(len(batch))
        else:
            time.sleep(0.01)
        return rows(outlets, batch)

    monkeypatch.setattr(Outlets, "rows", slowly)
    yield made


def test_two_processes_take_every_other_batch(
    tmp_path: Path, at_once: tuple[bytes, dict[str, Any]], slow_child: list[int]
) -> None:
    made = a_run(tmp_path)
    work = put_off(made, 0, aside=True)
    assert slow_child == []
    assert work.write_rows() == []
    assert 3 <= sum(slow_child) <= REQUESTS // 2 + 3
    assert part(made) == at_once[0]


@pytest.mark.parametrize("death", [lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: 1 // 0], ids=["killed", "raises"])
@pytest.mark.parametrize("batches", [0, 1, 4])
def test_a_second_process_that_dies_leaves_no_row_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: tuple[bytes, dict[str, Any]], slow_child: list[int],
    death: Callable[[], object], batches: int,
) -> None:  # fmt: skip
    made, here, written, write = a_run(tmp_path), os.getpid(), [], Outlets.write

    def dying(outlets: Outlets, rows: list[bytes]) -> None:
        write(outlets, rows)
        written.append(rows)
        if os.getpid() != here and len(written) > batches:
            death()

    monkeypatch.setattr(Outlets, "write", dying)
    work = put_off(made, 5, aside=True)
    assert work.write_rows() == []
    assert part(made) == at_once[0]


@pytest.mark.parametrize("aside", [False, True], ids=["alone", "by two"])
def test_an_exporter_that_fails_behind_the_summary_is_told_once(
    tmp_path: Path, at_once: tuple[bytes, dict[str, Any]], aside: bool
) -> None:
    made = a_run(tmp_path, Lines, Fussy)
    work = put_off(made, 0, aside=aside)
    assert summary_of(made, work)["extra"].get("failures", []) == []
    (sentence,) = work.write_rows()
    assert "fussy" in sentence and "no rows today" in sentence
    assert part(made) == at_once[0]
    work = put_off(a_run(tmp_path / "early", Lines, Fussy), 5, aside=aside)
    assert work.reduction.failures == [sentence], "some batches came before"
    assert work.write_rows() == []


@pytest.mark.parametrize("aside", [False, True], ids=["alone", "by two"])
def test_a_full_disk_behind_the_summary_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aside: bool) -> None:
    def full(outlets: Outlets, rows: list[bytes]) -> None:
        raise OSError(28, "No space left on device")

    work = put_off(a_run(tmp_path), 0, aside=False)
    monkeypatch.setattr(Outlets, "write", full)
    if aside:
        work = put_off(a_run(tmp_path / "aside"), 0, aside=True)
    with pytest.raises(OSError, match="No space left"):
        work.write_rows()


def test_nothing_is_put_off_where_nothing_is_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    children, fork = list[int](), os.fork

    def counted() -> int:
        children.append(fork())
        return children[-1]

    monkeypatch.setattr(os, "fork", counted)
    made = a_run(tmp_path)
    work = ShardReducer(made.plan.replacing(exporters=()), made.journal, 0, 1, clock=CLOCK)
    work.put_off_rows()
    work.read_aside(load_end(made.journal))
    work.finish(load_end(made.journal), save=False)
    assert not work.rows_wait
    with pytest.raises(ProcessLookupError):
        os.kill(children[0], 0)
