"""A run's directory to its summary: every planned arrival has an outcome, whatever is left of the run."""

from __future__ import annotations

import errno
import json
import re
import shutil
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiperf.errors import BadJournal
from aiperf.rundir import journal
from aiperf.rundir.journal import hold, load_run, save_run
from aiperf.sdk.columns import NUMBERS, Column, RecordBatch
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.exporter import BatchExporter
from aiperf.sdk.hooks import hookimpl
from aiperf.sdk.metric import Metric, RunMetric, Totals, Unit
from aiperf.sdk.model import Delta
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.summary import Summary
from aiperf_reducer_columns.reduce import batches
from aiperf_reducer_columns.reduce.batches import REST, StoredBatch, read_batches
from aiperf_reducer_columns.reduce.reducer import ShardReducer
from aiperf_reducer_columns.report.again import reduced_again
from aiperf_reducer_columns.report.kept import Kept
from aiperf_reducer_columns.report.report import report, write_summary
from aiperf_reducer_columns.report.unsent import due_from
from aiperf_testing.journals import CLOCK, Plain, Recording, Words, event
from aiperf_testing.plans import sample_ref

MS = 10**6
PROFILING = PhasePlan("profiling", "profiling", 0, "burst")
COUNTED = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}


class Latency(Metric):
    tag, title, unit, display = "latency", "Latency", Unit.NANOSECONDS, Unit.MILLISECONDS

    def column(self, batch: RecordBatch) -> Column:
        return batch["last_byte_ns"] - batch["started_ns"]


class Duration(RunMetric):
    tag, title, unit = "benchmark_duration", "Benchmark Duration", Unit.SECONDS

    def number(self, run: Totals) -> float | None:
        return run.duration_s


class FailsOnTwo(Latency):
    """Fails in the reducer that sees request 2."""

    tag = "fails"

    def column(self, batch: RecordBatch) -> Column:
        if (batch["n"] == 2).any():
            raise ValueError("two")
        return batch["n"]


class Ledger(BatchExporter):
    label, kind = "Ledger", "ledger.txt"

    def rows(self, batch: RecordBatch) -> bytes:
        shown = [batch[name].tolist() for name in ("phase", "n", "outcome", "due_ns", "session", "turn")]
        return b"".join(json.dumps(row).encode() + b"\n" for row in zip(*shown, batch.texts["worker"], strict=True))


class FailsOnNothing(Ledger):
    def rows(self, batch: RecordBatch) -> bytes:
        return b"" if batch.values else bytes(1 // len(batch.values))


class Broken(Plain):
    def decode(self, event: bytes) -> Delta | None:
        raise LookupError(event[:4].decode())


class Speechless(Words):
    def open(self, name: str) -> Words:
        return self

    def count(self, text: str) -> int:
        raise RuntimeError("no words")


class Listener:
    seen: list[int]

    def __init__(self) -> None:
        type(self).seen = []

    @hookimpl
    def aiperf_batch_reduced(self, batch: RecordBatch) -> None:
        self.seen.append(len(batch))


class Deaf:
    @hookimpl
    def aiperf_batch_reduced(self, batch: RecordBatch) -> None:
        raise OverflowError("too loud")


def ref(category: str, plugin: type) -> PluginRef:
    return sample_ref(category, f"{__name__}:{plugin.__name__}")


def recording(directory: Path, **changes: Any) -> Recording:
    changes.setdefault("metrics", (ref("metrics", Latency), ref("metrics", Duration)))
    changes.setdefault("exporters", (ref("exporters", Ledger),))
    return Recording(directory, **changes)


def summary(made: Recording) -> Summary:
    return report(made.directory)[0]


def ledger(made: Recording) -> list[list[Any]]:
    parts = sorted(made.journal.glob("part-ledger-*"))
    return [json.loads(line) for part in parts for line in part.read_text().splitlines()]


def due(made: Recording, index: int, *after_ns: int) -> str:
    path = made.journal / f"due-{index}.bin"
    path.write_bytes(array("q", after_ns).tobytes())
    return str(path)


def replanned(made: Recording, *phases: PhasePlan) -> Recording:
    made.plan = made.plan.replacing(phases=phases)
    save_run(made.journal, made.plan, CLOCK)
    return made


def answered(made: Recording, *requests: int) -> None:
    for request in requests:
        made.answered(request, request * MS, (request * MS + 5 * MS, event(text="a b", usage=COUNTED)))


def test_a_run_that_recorded_its_end_is_complete(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.phase("begin", 1 * MS)
    answered(made, 0, 1)
    made.phase("sending_complete", 3 * MS)
    made.flush(9 * MS)
    made.phase("end", 9 * MS)
    made.ended(requests={0: 2})
    found = summary(made)
    assert (found.complete, found.incomplete_reason, found.valid, found.failed) == (True, None, 2, 0)
    assert found.observation_window_s == 0.008
    wall = CLOCK.started_wall_ns
    assert (found.start_ns, found.end_ns) == (wall + 1 * MS, wall + 9 * MS)


def test_one_that_was_cut_off_is_reported_as_such(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.phase("begin", 0)
    answered(made, 0)
    made.sent(1, 2 * MS)
    made.flush(9 * MS)
    found = summary(made)
    assert (found.complete, found.incomplete_reason) == (False, "the run did not record its end")
    assert found.extra == {}, "an interruption is no loss"
    assert (found.valid, found.measurement.arrivals.unfinished) == (1, 1)


def test_the_duration_spans_first_start_to_last_end_of_all_requests(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.phase("begin", 1 * MS)
    made.sent(0, 2 * MS)  # an error first
    made.done(0, 3 * MS, outcome=journal.ERROR, status=500, flags=0)
    answered(made, 10)
    made.sent(1, 11 * MS)  # and one that was aborted last
    made.done(1, 52 * MS, outcome=journal.ABORTED, status=200)
    made.flush(60 * MS)
    made.phase("end", 61 * MS)
    found = summary(made)
    assert found.benchmark_duration_s == found.results["benchmark_duration"].stats["avg"] == 0.05
    assert found.observation_window_s == 0.06


def test_a_second_report_is_the_same_and_leaves_the_journal_alone(tmp_path: Path) -> None:
    made = recording(tmp_path)
    answered(made, 0, 1, 2)
    made.sent(3, 9 * MS)
    made.flush(9 * MS)
    segment = made.path().read_bytes()
    first, rows = summary(made), ledger(made)
    assert (summary(made), ledger(made)) == (first, rows)
    assert made.path().read_bytes() == segment
    assert not list(made.journal.glob("fold*"))


def test_a_directory_that_was_moved_can_be_reported(tmp_path: Path) -> None:
    made = recording(tmp_path / "here")
    made.phase("begin", 0)
    replanned(made, msgspec.structs.replace(PROFILING, rate=1.0, planned=2, due_file=due(made, 0, MS, 2 * MS)))
    answered(made, 0)
    made.flush(9 * MS)
    made.ended()
    shutil.move(tmp_path / "here", tmp_path / "there")
    found, plan, _ = report(tmp_path / "there")
    assert (found.valid, found.measurement.arrivals.never_sent) == (1, 1)
    assert plan.output.artifacts == str(tmp_path / "there")


def test_errors_are_listed_by_when_each_was_first_whichever_reducer_saw_it(tmp_path: Path) -> None:
    made = recording(tmp_path, workers=2, reducers=2)
    for shard, ends in ((0, {0: (5, "late"), 1: (9, "both")}), (1, {0: (4, "both"), 1: (3, "early")})):
        for request, (end, message) in ends.items():
            made.sent(request, 1 * MS, shard=shard, n=2 * request + shard)
            made.text(request, "error", {"message": message, "type": "E"}, shard=shard)
            made.done(request, end * MS, outcome=journal.ERROR, status=0, shard=shard)
        made.flush(10 * MS, shard=shard)
    found = summary(made)
    assert [(each.error.message, each.count) for each in found.errors] == [("early", 1), ("both", 2), ("late", 1)]
    assert found.failed == 4


def test_paced_arrivals_nobody_sent_have_a_row_with_their_due_time(tmp_path: Path) -> None:
    made = recording(tmp_path)
    replanned(made, msgspec.structs.replace(PROFILING, rate=1.0, planned=4, due_file=due(made, 0, 10, 20, 30, 40)))
    made.phase("begin", 1 * MS)
    made.answered(0, 2 * MS, (3 * MS, event(text="a")), n=2, due_ns=MS + 30)
    made.flush(9 * MS)
    made.ended()
    found = summary(made)
    never = float(journal.NEVER_SENT)
    assert ledger(made)[1:] == [
        [0, 0, never, MS + 10, 0, 0, None], [0, 1, never, MS + 20, 1, 0, None], [0, 3, never, MS + 40, 3, 0, None],
    ]  # fmt: skip
    arrivals = found.measurement.arrivals
    assert (arrivals.planned, arrivals.sent, arrivals.never_sent) == (4, 1, 3) and len(ledger(made)) == arrivals.planned
    assert found.delivered.never_sent == 3


def test_turns_nobody_sent_have_a_row_with_their_session(tmp_path: Path) -> None:
    """Two sessions of two and three turns: the times of later turns depend on the answers."""
    made = recording(tmp_path)
    (made.journal / "sessions-0.bin").write_bytes(array("q", [7, 2, 0, 4, 3, 2]).tobytes())
    due_file = due(made, 0, 10, -1, 20, -1, 50)
    files = {"due_file": due_file, "sessions_file": str(made.journal / "sessions-0.bin")}
    replanned(made, msgspec.structs.replace(PROFILING, request_count=None, rate=1.0, planned=5, **files))
    made.phase("begin", 1 * MS)
    made.answered(0, 2 * MS, (3 * MS, event(text="a")), n=0, due_ns=MS + 10)
    made.flush(9 * MS)
    made.ended()
    summary(made)
    rows = [[str(each) for each in row[1:6]] for row in ledger(made)[1:]]
    never = str(float(journal.NEVER_SENT))
    assert rows == [
        ["1.0", never, "nan", "0.0", "1.0"], ["2.0", never, str(float(MS + 20)), "1.0", "0.0"],
        ["3.0", never, "nan", "1.0", "1.0"], ["4.0", never, str(float(MS + 50)), "1.0", "2.0"],
    ]  # fmt: skip


def test_counted_arrivals_nobody_sent_have_a_row_in_every_phase(tmp_path: Path) -> None:
    made = recording(tmp_path)
    warmup = PhasePlan("warmup", "warmup", 0, "burst", request_count=2)
    replanned(made, warmup, PhasePlan("profiling", "profiling", 1, "burst", request_count=3))
    made.answered(0, 2 * MS, (3 * MS, event(text="a")), n=1)
    made.flush(9 * MS)
    made.ended()
    found = summary(made)
    assert [row[:3] for row in ledger(made)] == [[0, 1, 0], [0, 0, 5], [1, 0, 5], [1, 1, 5], [1, 2, 5]]
    assert found.measurement.arrivals.never_sent == 3


def phases() -> list[PhasePlan]:
    timed = PhasePlan("load", "profiling", 1, "burst", duration_ns=60 * 10**9)
    return [PhasePlan("warmup", "warmup", 0, "burst", request_count=2), timed, PhasePlan("late", "profiling", 2, "burst")]


@pytest.mark.parametrize("cancelled", [False, True])
def test_what_an_interrupted_run_did_not_see_is_named(tmp_path: Path, *, cancelled: bool) -> None:
    made = recording(tmp_path)
    replanned(made, *phases())
    made.phase("begin", 0)
    made.answered(0, MS, (2 * MS, event(text="a")))
    made.answered(1, 3 * MS, (2 * MS, event(text="a")), phase=1, n=0)
    made.flush(4 * MS)
    made.phase("begin", 5 * MS, phase=1)
    made.phase("end", 4005 * MS, phase=1)
    if cancelled:
        made.ended(cancelled=True, incomplete="stopped", requests={0: 2})
    found = summary(made)
    assert (found.complete, found.cancelled, found.extra) == (False, cancelled, {})
    first = "stopped" if cancelled else "the run did not record its end"
    assert found.incomplete_reason == (
        f"{first}; of phase warmup 1 of 2 arrivals were seen; phase load was seen for 4.0 of 60 s; phase late did not begin"
    )


@pytest.mark.parametrize(
    ("end", "shard_ended", "resumed", "outcome"),
    [
        (None, False, False, "unknown"),
        (None, True, False, "never_sent"),  # the worker's own last word
        (None, True, True, "unknown"),  # a replacement's last word
        ({0: 1}, False, False, "never_sent"),  # the journal has every request there was
        ({0: 1}, True, True, "never_sent"),
        ({0: 2}, True, False, "unknown"),
        ({}, False, False, "unknown"),  # a cluster: nobody counts for the workers
    ],
)
def test_arrivals_without_a_request_are_unknown_where_one_may_have_been_sent(
    tmp_path: Path, end: dict[int, int] | None, shard_ended: bool, resumed: bool, outcome: str
) -> None:
    made = recording(tmp_path)
    replanned(made, PhasePlan("profiling", "profiling", 0, "burst", request_count=3))
    made.phase("begin", 0)
    answered(made, 0)
    if resumed:
        made.phase("begin", MS, resumed=True)
    made.flush(9 * MS)
    if shard_ended:
        made.phase("end", 9 * MS)
    if end is not None:
        made.ended(requests=end)
    arrivals = summary(made).measurement.arrivals
    assert arrivals.planned == 3 == arrivals.completed + arrivals.never_sent + arrivals.unknown
    assert getattr(arrivals, outcome) == 2
    assert [journal.OUTCOMES[int(row[2])] for row in ledger(made)] == ["completed", outcome, outcome]


def test_requests_of_lost_columns_are_counted_and_the_files_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_REQUESTS", 1)
    monkeypatch.setattr(batches, "FILE_BYTES", 1)  # a file a batch
    made = recording(tmp_path)
    answered(made, 0, 1, 2, 3)
    made.flush(9 * MS)
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    files = journal.numbered(made.journal, "columns-*.*")
    made.ended(requests={0: 4}, columns={path.name: path.stat().st_size for path in files})
    assert summary(made).complete
    files[1].unlink()
    size = files[2].stat().st_size
    files[2].write_bytes(b"")
    files[3].write_bytes(files[3].read_bytes()[:-10])
    found = summary(made)
    assert found.valid == 1 and found.extra["lost"][1:] == [
        "columns-0.1 is missing", "columns-0.2 is missing", f"columns-0.3 lacks 10 of {size:,} bytes",
        "3 of 4 requests are in no file",
    ]  # fmt: skip


def test_a_damaged_request_is_in_no_statistic(tmp_path: Path) -> None:
    made = recording(tmp_path)
    answered(made, 0, 1)
    made.sent(2, 20 * MS)
    made.flush(21 * MS)
    made.skip_frame()
    made.read(2, 90 * MS, event(text="a b", usage=COUNTED))
    made.done(2, 91 * MS)
    made.flush(92 * MS)
    made.ended(requests={0: 3})
    found = summary(made)
    assert found.outcomes == {"completed": 2, "damaged": 1} and found.measurement.arrivals.damaged == 1
    assert found.results["latency"].stats["max"] < 50
    assert found.incomplete_reason == "requests are lost: shard-0.0.seg lacks 1 frame"


def test_due_times_of_a_phase_that_never_began_are_unknown(tmp_path: Path) -> None:
    made = recording(tmp_path)
    warmup = PhasePlan("warmup", "warmup", 0, "burst")
    replanned(made, warmup, PhasePlan("profiling", "profiling", 1, "r", rate=1.0, planned=1, due_file=due(made, 1, 5)))
    answered(made, 0)
    made.flush(9 * MS)
    summary(made)
    assert str(ledger(made)[-1][3]) == "nan"


def test_where_turns_take_arrivals_the_session_of_one_never_sent_is_unknown(tmp_path: Path) -> None:
    from aiperf.sdk.model import Conversation, Turn

    made = recording(tmp_path)
    made.data_set(Conversation("c", (Turn(("a",)), Turn(("b",)))))
    replanned(made, msgspec.structs.replace(PROFILING, request_count=1))
    made.flush(1)
    made.phase("begin", 0)
    summary(made)
    (row,) = ledger(made)
    assert [str(each) for each in row[4:6]] == ["nan", "nan"]


def test_due_times_of_the_first_arrivals_alone(tmp_path: Path) -> None:
    made = recording(tmp_path)
    phase = msgspec.structs.replace(PROFILING, due_file=due(made, 0, 10, -1, 30))
    np.testing.assert_equal(due_from(phase, 2, made.journal, 1.0), [11.0, np.nan])
    np.testing.assert_equal(due_from(phase, 5, made.journal, 1.0), [11.0, np.nan, 31.0, np.nan, np.nan])


def test_an_exporter_that_fails_on_unsent_arrivals_is_named(tmp_path: Path) -> None:
    made = recording(tmp_path, exporters=(ref("exporters", FailsOnNothing), ref("exporters", Ledger)))
    replanned(made, msgspec.structs.replace(PROFILING, request_count=2))
    answered(made, 0)
    made.flush(9 * MS)
    found = summary(made)
    (sentence,) = found.extra["failures"]
    assert sentence.startswith("the plugin exporters:failsonnothing of acme 1.2 failed: ZeroDivisionError: ")
    assert sentence in found.warnings
    assert len(ledger(made)) == 2


def test_a_metric_that_fails_in_one_reducer_gives_only_a_warning(tmp_path: Path) -> None:
    made = recording(
        tmp_path, workers=2, reducers=2, metrics=(ref("metrics", FailsOnTwo), ref("metrics", Latency)), export_level="raw"
    )
    for shard in (0, 1):
        for request in (0, 1):
            start = (request + 1) * MS
            made.answered(request, start, (start + MS, event(text="a")), shard=shard, n=2 * request + shard)
        made.flush(9 * MS, shard=shard)
    for index in (0, 1):
        ShardReducer(made.plan, made.journal, index, 2, clock=CLOCK).finish()
    from aiperf_reducer_columns.report.report import write_summary

    made.ended(warnings=("first",))
    write_summary(made.journal)
    found = msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)
    assert set(found.results) == {"latency"}
    assert found.warnings == ("first", "metric fails of acme 1.2 is switched off: ValueError: two")


def test_where_a_plugin_failed_its_segments_stay(tmp_path: Path) -> None:
    for name, metric, left in (("good", Latency, 0), ("bad", FailsOnTwo, 1)):
        made = recording(tmp_path / name, metrics=(ref("metrics", metric),))
        answered(made, 2)
        made.flush(9 * MS)
        ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
        assert len(list(made.journal.glob("shard-*.seg"))) == left


def test_an_endpoint_that_fails_is_named_and_its_answers_are_errors(tmp_path: Path) -> None:
    made = recording(tmp_path, endpoint=ref("endpoints", Broken))
    answered(made, 0, 1)
    made.flush(9 * MS)
    found = summary(made)
    assert [(each.error.type, each.count) for each in found.errors] == [("EndpointError", 2)]
    (sentence,) = found.extra["failures"]
    assert sentence.startswith("the plugin endpoints:broken of acme 1.2 failed: ")
    assert "LookupError" in sentence


def test_a_tokenizer_that_fails_costs_its_counts_and_is_named(tmp_path: Path) -> None:
    made = recording(tmp_path, tokenizer=ref("tokenizers", Speechless))
    answered(made, 0, 1)
    made.flush(9 * MS)
    found = summary(made)
    assert found.valid == 2
    assert found.extra["failures"] == ["the plugin tokenizers:speechless of acme 1.2 failed: RuntimeError: no words"]


def test_hook_plugins_see_every_batch_and_one_that_fails_is_named(tmp_path: Path) -> None:
    made = recording(tmp_path, hooks=(ref("hooks", Listener), ref("hooks", Deaf)))
    answered(made, 0, 1, 2)
    made.flush(9 * MS)
    found = summary(made)
    assert Listener.seen == [3]
    failure = "the plugin hooks:deaf of acme 1.2 failed in aiperf_batch_reduced: OverflowError: too loud"
    assert found.extra["failures"] == [failure]


@pytest.mark.parametrize("outcome", [journal.ABORTED, journal.CANCELLED, journal.ERROR])
def test_an_answer_that_was_cut_short_keeps_its_instants(tmp_path: Path, outcome: int) -> None:
    made = recording(tmp_path)
    made.sent(0, MS)
    made.read(0, 2 * MS, event(text="a"))
    made.read(0, 3 * MS, event(text="b")[:-9])
    made.text(0, "error", {"message": "reset", "type": "ConnectionResetError"})
    made.done(0, 5 * MS, outcome=outcome, status=200)
    made.flush(9 * MS)
    work = ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK)
    work.finish()
    (frame,) = journal.frames(journal.columns_path(made.journal, 0, 0))
    stored = msgspec.msgpack.decode(frame.payload, type=StoredBatch)
    assert np.frombuffer(stored.stamps, dtype=np.int64).tolist() == [2 * MS]
    kinds = [json.loads(text)["type"] for text in stored.errors.values()]
    assert kinds == ([] if outcome == journal.ABORTED else ["ConnectionResetError"])


def test_batches_keep_their_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_REQUESTS", 4)
    made = recording(tmp_path)
    answered(made, *range(11))
    for request in range(11, 20):
        made.sent(request, request * MS)
    made.flush(90 * MS)
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    frames = journal.frames(journal.columns_path(made.journal, 0, 0))
    assert [frame.count for frame in frames] == [4, 4, 4, 4, 4]


# Directories without a run


def test_a_directory_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadJournal, match=r"holds no run: .*run\.json is not there"):
        report(tmp_path)


def test_a_run_that_never_sent_anything_has_nothing_to_report(tmp_path: Path) -> None:
    made = recording(tmp_path)
    with pytest.raises(BadJournal, match="holds a plan but no observations"):
        report(made.directory)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"plan": 3}', b"\xff\xfe"])
def test_a_plan_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    made = recording(tmp_path)
    (made.journal / "run.json").write_bytes(content)
    with pytest.raises(BadJournal, match=r"run\.json can't be read"):
        report(made.directory)


def test_a_run_without_its_data_set_is_refused(tmp_path: Path) -> None:
    made = recording(tmp_path)
    answered(made, 0)
    made.flush(9 * MS)
    (made.journal / "dataset.json").unlink()
    with pytest.raises(BadJournal, match=r"the data set of .* can't be read"):
        report(made.directory)


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        (b"\x93\x01", "can't be read"),
        (msgspec.msgpack.encode({"count": 1}), "can't be read"),
        (msgspec.msgpack.encode({"count": 0, "numbers": b"", "stamps": b"", "kinds": b"", "lengths": b"", "version": 9}),
         "has columns of version 9, and not 1 as this program"),
        (msgspec.msgpack.encode({"count": 3, "numbers": b"12", "stamps": b"", "kinds": b"", "lengths": b""}), "has columns of"),
    ],
)  # fmt: skip
def test_columns_of_another_version_are_refused_with_what_to_do(tmp_path: Path, payload: bytes, complaint: str) -> None:
    made = recording(tmp_path)
    journal.columns_path(made.journal, 0, 0).write_bytes(journal.pack(journal.COLUMNS, payload, 1, 1))
    with pytest.raises(BadJournal, match=complaint) as caught:
        report(made.directory)
    assert caught.value.hints == ("report it with the version that made the run",)


def test_a_directory_that_somebody_writes_to_is_left_alone(tmp_path: Path) -> None:
    made = recording(tmp_path)
    answered(made, 0)
    made.flush(9 * MS)
    with hold(made.journal), pytest.raises(BadJournal, match="is in use by another run or report"):
        report(made.directory)
    assert summary(made).valid == 1


@pytest.mark.parametrize("kept", [0, 10, 40])
def test_a_segment_of_which_hardly_anything_is_left_is_an_empty_run(tmp_path: Path, kept: int) -> None:
    made = recording(tmp_path)
    answered(made, 0)
    made.flush(9 * MS)
    made.path().write_bytes(made.path().read_bytes()[:kept])
    found = summary(made)
    assert (found.valid, found.results, found.complete) == (0, {}, False)
    assert found.benchmark_duration_s is None


def test_a_run_is_saved_whole_and_read_back(tmp_path: Path) -> None:
    made = recording(tmp_path)
    plan, clock = load_run(made.journal)
    assert (plan, clock) == (made.plan, CLOCK)
    assert (made.journal / "run.json").stat().st_mode & 0o777 == 0o600
    assert not list(made.journal.glob("*.draft"))


def cut_columns(made: Recording, change: Callable[[StoredBatch], StoredBatch]) -> None:
    """Reduce the recording as a run does, and then *change* each frame of its columns."""
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    (path,) = journal.numbered(made.journal, "columns-0.*")
    stored = [batch for batch, _ in read_batches(path)]  # unpacked, as earlier versions wrote them
    path.write_bytes(
        b"".join(journal.pack(journal.COLUMNS, msgspec.msgpack.encode(change(each)), 0, 0, each.count) for each in stored)
    )


def without_status(stored: StoredBatch) -> StoredBatch:
    """The batch as a version without that column writes it."""
    at, row = NUMBERS.index("status"), 8 * stored.count
    numbers = stored.numbers[: at * row] + stored.numbers[(at + 1) * row :]
    kept = tuple(name for name in NUMBERS if name != "status")
    return msgspec.structs.replace(stored, numbers=numbers, names=kept)


def test_missing_columns_of_an_older_version_are_named_without_answers(tmp_path: Path) -> None:
    made = recording(tmp_path)
    answered(made, 0, 1)
    made.flush(9 * MS)
    cut_columns(made, without_status)
    found = summary(made)
    assert (found.valid, found.results["latency"].stats["count"]) == (2, 2)
    (warning,) = [each for each in found.warnings if "status" in each]
    assert "version 0.1.0 kept no such column, and the answers themselves are gone" in warning


def test_missing_columns_of_an_older_version_come_from_kept_answers(tmp_path: Path) -> None:
    made = recording(tmp_path, export_level="raw")
    answered(made, 0, 1)
    made.flush(9 * MS)
    cut_columns(made, without_status)
    found = summary(made)
    assert found.valid == 2
    assert [each for each in found.warnings if "status" in each] == []


def damaged(made: Recording, frame: int) -> None:
    """Reduce the recording as a run does, a request a frame, and then flip a bit in one of them."""
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    (path,) = journal.numbered(made.journal, "columns-0.*")
    begins = [0, *(each.end for each in journal.frames(path))]
    content = bytearray(path.read_bytes())
    content[begins[frame] + journal.HEADER_BYTES] ^= 1
    path.write_bytes(content)


def test_damaged_columns_without_answers_make_the_run_incomplete_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_REQUESTS", 1)
    made = recording(tmp_path)
    answered(made, 0, 1, 2)
    made.flush(9 * MS)
    damaged(made, 1)
    found = summary(made)
    assert (found.valid, found.complete) == (2, False), "the batch behind the damage counts"
    lost = r"requests are lost: [0-9,]+ bytes of columns-0\.0 are damaged; 1 of 3 requests are in no file"
    assert re.fullmatch(f"the run did not record its end; {lost}", found.incomplete_reason or "")
    made.ended(requests={0: 3})
    assert re.fullmatch(lost, summary(made).incomplete_reason or "")


def test_what_damaged_columns_held_comes_from_the_segments_where_they_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_REQUESTS", 1)
    made = recording(tmp_path, export_level="raw")
    answered(made, 0, 1, 2)
    made.flush(9 * MS)
    damaged(made, 1)
    assert summary(made).valid == 3


def test_evidence_has_the_bodies_of_the_data_set(tmp_path: Path) -> None:
    made = Recording(tmp_path)
    kept = Kept(made.journal, 0)
    assert [kept.body(entry) for entry in (0, 1, 2)] == [b"one two three", b"one", b""]


def six_requests(tmp_path: Path) -> Recording:
    """The journal of a run whose two phases have three requests each, reduced."""
    phases = (PhasePlan("warmup", "warmup", 0, "burst"), PhasePlan("profiling", "profiling", 1, "burst"))
    made = Recording(tmp_path, phases=phases)
    for request in range(6):
        made.answered(request, request * 10**6, (request * 10**6 + 5, event(text="a b")), phase=request % 2, n=request // 2)
    made.flush(21 * 10**6)
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    return made


_NAMES = ("n", "sent_ns", "started_ns", "output_tokens", "dns_ns")


@pytest.mark.parametrize("most", [0, 1 << 28])
@pytest.mark.parametrize("first", _NAMES)
def test_columns_that_are_read_together_are_those_read_alone(
    tmp_path: Path, most: int, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiperf_reducer_columns.report.kept_columns.MOST_BYTES", most)
    made = six_requests(tmp_path)
    together = Kept(made.journal, 1)
    together.column(first)
    for name in _NAMES:
        alone = Kept(made.journal, 1).column(name)
        assert len(alone) == 3 and alone.tobytes() == together.column(name).tobytes() == together.column(name).tobytes()
        assert np.concatenate([block for (block,) in together.columns([name])]).tobytes() == alone.tobytes()
    together.column("started_ns")[:] = 0
    (block,) = together.columns(["started_ns"])
    block[0][:] = 0
    assert together.column("started_ns").any(), "who asks gets columns of their own"
    assert not list(made.journal.glob("scratch-*")), "a file without a name"


def test_columns_come_in_blocks_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_REQUESTS", 1)
    monkeypatch.setattr("aiperf_reducer_columns.report.kept_columns.BLOCK", 2)
    kept = Kept(six_requests(tmp_path).journal, 1)
    assert [(n.tolist(), len(sent)) for n, sent in kept.columns(["n", "sent_ns"])] == [([0, 1], 2), ([2], 1)]
    ((places, values),) = kept.ordered("started_ns")
    assert values.tolist() == sorted(kept.column("started_ns").tolist()) == kept.column("started_ns")[places].tolist()
    assert [len(values) for _, values in kept.ordered("sent_ns")] == [0], "without those that have none"
    with pytest.raises(LookupError, match="did you mean 'sent_ns'"):
        kept.columns(["n", "send_ns"])


def test_without_room_on_the_disk_columns_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = six_requests(tmp_path)
    usual = {name: Kept(made.journal, 1).column(name).tolist() for name in ("n", "started_ns", "ended_ns")}
    order = [values.tolist() for _, values in Kept(made.journal, 1).ordered("ended_ns")]

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr("aiperf_reducer_columns.report.kept_columns.MOST_BYTES", 0)
    monkeypatch.setattr("aiperf_reducer_columns.report.ordering.IN_MEMORY", 1)
    monkeypatch.setattr("aiperf_reducer_columns.report.scratch.Scratch.add", full)
    kept = Kept(made.journal, 1)
    assert {name: kept.column(name).tolist() for name in usual} == usual
    assert [values.tolist() for _, values in kept.ordered("ended_ns")] == order
    ((ended, started),) = kept.columns(["ended_ns", "started_ns"])
    assert [ended.tolist(), started.tolist()] == [usual["ended_ns"], usual["started_ns"]]


def test_evidence_has_the_requests_that_a_killed_reducer_did_not_store(tmp_path: Path) -> None:
    made = recording(tmp_path)
    answered(made, 0, 1)
    made.flush(9 * MS)
    reducer = ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK)
    reducer.step(60.0)
    reducer.emit()
    answered(made, 2)
    made.flush(20 * MS)
    reduction = reduced_again(made.plan, CLOCK, made.journal)
    kept = Kept(made.journal, 0, again=reduction.again)
    assert len(Kept(made.journal, 0, again=True).column("sent_ns")) == 1 < len(kept.column("sent_ns")) == 3
    write_summary(made.journal, plan=made.plan, reductions=[reduction])
    assert not (made.journal / REST).exists()
