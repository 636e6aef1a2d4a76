"""Journal segments to columns: one row per request, whatever happens to the request, the process and the disk."""

from __future__ import annotations

import json
import math
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, Self
from unittest.mock import ANY

import msgspec
import numpy as np
import pytest
from aiperf.errors import BadTokenizer
from aiperf.rundir import journal
from aiperf.rundir.artifacts import part_path
from aiperf.rundir.journal import load_end
from aiperf.rundir.store import Store
from aiperf.sdk.columns import BOUND_COLUMNS, Column, Floats, RecordBatch
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.endpoint import DecodingReader
from aiperf.sdk.exporter import BatchExporter
from aiperf.sdk.metric import Metric, PluginFold, PluginUnit, Unit
from aiperf.sdk.model import HIDDEN, Conversation, Delta, Turn
from aiperf.sdk.plan import PhasePlan, Plan, Secrets
from aiperf.sdk.reducer import ReducerJob
from aiperf.sdk.summary import Summary
from aiperf.sdk.transport import STREAMED
from aiperf_reducer_columns import running
from aiperf_reducer_columns.reduce import batches as stored_batches
from aiperf_reducer_columns.reduce import outlets, rows
from aiperf_reducer_columns.reduce.answer import MARKED, REASONING, TEXT
from aiperf_reducer_columns.reduce.aside import ReaderDiedError
from aiperf_reducer_columns.reduce.batches import StoredBatch, batch_of, read_batches
from aiperf_reducer_columns.reduce.gaps import instants, interval_widths
from aiperf_reducer_columns.reduce.reducer import ShardReducer, saved_reductions
from aiperf_reducer_columns.reduce.watch import Part
from aiperf_reducer_columns.report.report import write_summary
from aiperf_reducer_columns.running import ColumnsReduction
from aiperf_reducer_columns.statistics.phase_counts import KINDS, PhaseCounts
from aiperf_testing.journals import CLOCK, Plain, Recording, event
from aiperf_testing.plans import sample_ref
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

DONE = b"data: [DONE]\n\n"
MS = 1_000_000


class FirstToken(Metric):
    tag, title, unit, display = "first", "First", Unit.NANOSECONDS, Unit.MILLISECONDS

    def column(self, batch: RecordBatch) -> Column:
        return batch["first_token_ns"] - batch["started_ns"]


class Most(PluginFold):
    def __init__(self) -> None:
        self.most = 0.0

    def add(self, values: Floats) -> None:
        self.most = max(self.most, float(values.max()))

    def merge(self, other: Self) -> None:
        self.most = max(self.most, other.most)

    def dump(self) -> bytes:
        return repr(self.most).encode()

    @classmethod
    def load(cls, data: bytes) -> Self:
        fold = cls()
        fold.most = float(data)
        return fold

    def result(self) -> float:
        return self.most


class Slowest(FirstToken):
    tag, title, fold = "slowest", "Slowest", Most


class Adjusted(FirstToken):
    tag, title, adjusted, headline = "adjusted", "Adjusted", True, 1


class Broken(Most):
    def result(self) -> float:
        raise ZeroDivisionError("no result")


class WithoutResult(FirstToken):
    tag, title, fold = "broken", "Broken", Broken


class Gaps(Metric):
    tag, title, unit = "gaps", "Gaps", Unit.NANOSECONDS

    def column(self, batch: RecordBatch) -> Column:
        return batch.lists("gap_ns")


class Lines(BatchExporter):
    label, kind = "Lines", "lines.txt"

    def rows(self, batch: RecordBatch) -> bytes:
        first = batch.values["first"]
        assert isinstance(first, np.ndarray)
        shown = zip(
            batch.texts["request_id"], batch["outcome"], first, batch["output_tokens"], batch.texts["error"], strict=True
        )
        return b"".join(repr(row).encode() + b"\n" for row in shown)


class Texts(BatchExporter):
    label, kind, answers = "Texts", "texts.txt", True

    def rows(self, batch: RecordBatch) -> bytes:
        return repr(list(zip(batch.texts["reasoning"], batch.texts["answer"], strict=True))).encode()


class Failing(BatchExporter):
    label, kind = "Failing", "failing.txt"

    def rows(self, batch: RecordBatch) -> bytes:
        raise ZeroDivisionError("no rows today")


def ref(category: str, plugin: type) -> PluginRef:
    return sample_ref(category, f"{__name__}:{plugin.__name__}")


def recording(directory: Path, **changes: Any) -> Recording:
    changes.setdefault("metrics", (ref("metrics", FirstToken), ref("metrics", Gaps)))
    changes.setdefault("exporters", (ref("exporters", Lines),))
    return Recording(directory, **changes)


def reducer(made: Recording, index: int = 0, *, durable: bool = True, watched: bool = False) -> ShardReducer:
    of = made.plan.run.reducers
    lines_s = {0: 30.0, 1: 30.0} if watched else None
    return ShardReducer(made.plan, made.journal, index, of, clock=CLOCK, durable=durable, lines_s=lines_s)


def stored(made: Recording, index: int = 0) -> list[StoredBatch]:
    found = []
    for path in journal.numbered(made.journal, f"columns-{index}.*"):
        found += [batch for batch, _ in read_batches(path)]
    return found


def batches(made: Recording) -> Iterator[RecordBatch]:
    for each in stored(made):
        if each.count:
            yield batch_of(each, made.plan, Store(made.journal))


def reduced(made: Recording) -> RecordBatch:
    """The whole recording as one batch."""
    reducer(made).finish()
    (batch,) = batches(made)
    return batch


def summary_of(made: Recording) -> Summary:
    made.ended()
    write_summary(made.journal)
    return msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)


def value(batch: RecordBatch, name: str, row: int = 0) -> float | None:
    found = float(batch[name][row])
    return None if math.isnan(found) else found


def error(batch: RecordBatch, row: int = 0) -> dict[str, Any]:
    text = batch.texts["error"][row]
    assert text is not None
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_streamed_answer_becomes_a_row_of_instants_on_the_runs_clock(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.sent(0, 1 * MS, due_ns=900_000, session=3, turn=0, entry=0)
    for at, body in (
        (5, event()),
        (6, event(reasoning="let me see")),
        (8, event(text="two words")),
        (12, event(text=" and more")),
        (13, event(finish="stop", usage={"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16}) + DONE),
    ):
        made.read(0, at * MS, body, late_ns=40_000)
    made.done(0, 14 * MS, ack_ns=4_900_000)
    made.flush(15 * MS)
    batch = reduced(made)
    wanted = {
        "n": 0, "session": 3, "turn": 0, "due_ns": 900_000, "started_ns": 1 * MS, "ack_ns": 4_900_000,
        "first_byte_ns": 5 * MS, "first_token_ns": 6 * MS, "second_token_ns": 8 * MS, "first_output_ns": 8 * MS,
        "last_token_ns": 12 * MS, "last_byte_ns": 13 * MS, "ended_ns": 13 * MS, "status": 200,
        "input_tokens": 3, "output_tokens": 4, "reasoning_tokens": 3, "requested_tokens": 4,
        "usage_prompt_tokens": 7, "usage_completion_tokens": 9, "usage_total_tokens": 16,
        "bytes_sent": 10, "bytes_received": 20, "coalesced": 0, "outcome": journal.COMPLETED, "connected_ns": None,
    }  # fmt: skip
    assert {name: value(batch, name) for name in wanted} == wanted
    assert batch.lists("chunk_ns").row(0).tolist() == [6 * MS, 8 * MS, 12 * MS]
    assert batch.lists("gap_ns").row(0).tolist() == [2 * MS, 4 * MS]
    assert batch.lists("gap_ns").at_ns.tolist() == [8 * MS, 12 * MS]
    assert batch.valid.tolist() == [True]
    assert {name: texts[0] for name, texts in batch.texts.items()} == {
        "conversation_id": "first",
        "request_id": "01234567-89ab-8000-a000-000000000000",
        "session_id": "01234567-89ab-8000-b000-000000000003",
        "model": "m",
        "url": "http://h",
        "worker": "worker-0",
        "error": None,
        "finish_reason": "stop",
        "task": None,
    }


@pytest.mark.parametrize(
    ("reads", "chunks", "gaps", "second", "coalesced"),
    [
        # pieces sent together share the instant; there is no gap between them
        ([(10, "a", 0), (20, "bc", 0), (30, "d", 0)], [10, 20, 30], [10, 10], 20, 0),
        # all but the last of merged pieces are marked; the gaps around them are estimates whose sum is right
        ([(10, "a", 0), (20, "bc", 1), (30, "d", 0)], [10, 20, 30], [5, 5, 10], None, 1),
        # without a first instant the sum of the gaps is not known: here between 0 and 9
        ([(10, "abc", 2), (20, "d", 0), (30, "e", 0)], [10, 20, 30], [2.25, 2.25, 10, 10], None, 2),
        # one event in merged segments has a known instant
        ([(10, "a", 0), (20, "b", 7), (30, "c", 0)], [10, 20, 30], [10, 10], 20, 0),
        ([(10, "a", 0), (20, "b", 0), (30, "cd", 1)], [10, 20, 30], [10, 5, 5], 20, 1),
        # three pieces of two segments have two instants
        ([(10, "a", 0), (20, "bcd", 1)], [10, 20], [5, 5], None, 2),
        ([(10, "abcd", 0)], [10], [], None, 0),
    ],
)
def test_what_came_in_one_read(
    tmp_path: Path, reads: list[tuple[int, str, int]], chunks: list[int], gaps: list[float], second: int | None, coalesced: int
) -> None:
    batch = streamed(tmp_path, reads)
    assert batch.lists("chunk_ns").row(0).tolist() == chunks
    assert batch.lists("gap_ns").row(0).tolist() == gaps
    assert (value(batch, "second_token_ns"), value(batch, "coalesced")) == (second, coalesced)
    assert value(batch, "last_token_ns") == chunks[-1]
    first, marked_first = value(batch, "first_token_ns"), bool(reads[0][2]) and len(reads[0][1]) > 1
    assert first == chunks[0] or (marked_first and "first_low_ns" in batch.columns and value(batch, "first_low_ns") <= first)


def streamed(folder: Path, reads: list[tuple[int, str, int]], tail: bytes = b"") -> RecordBatch:
    """An answer in reads of (instant, letters of its pieces, merged segments); *tail*: events behind the last piece."""
    made = recording(folder)
    made.sent(0, 1)
    for place, (at, letters, hidden) in enumerate(reads, 1):
        body = b"".join(event(text=letter) for letter in letters) or event()
        made.read(0, at, body + (tail if place == len(reads) else b""), hidden=hidden, late_ns=0)
    made.done(0, 50)
    made.flush(60)
    return reduced(made)


@pytest.mark.parametrize(
    ("reads", "tail", "low", "high", "slack"),
    [
        # the sum of 30 is known: at most one gap is 30, two are 15, three are 10
        ([(10, "a", 0), (40, "bcd", 2)], b"", [10, 0, 0], [30, 15, 10], [0, 0, 0]),
        # the socket was empty until 10, so that the first gap is at least 5
        ([(5, "a", 0), (10, "", 0), (40, "bc", 1)], b"", [17.5, 0], [35, 17.5], [0, 0]),
        # nothing is known of the last piece but that it came between 10 and 40
        ([(10, "a", 0), (40, "b", 1)], DONE, [0], [30], [15]),
        # nor of the first: it came after the request was started
        ([(12, "ab", 1), (20, "c", 0)], b"", [0, 8], [11, 8], [5.5, 0]),
    ],
)
def test_gaps_around_merged_reads_have_bounds(
    tmp_path: Path, reads: list[tuple[int, str, int]], tail: bytes, low: list[float], high: list[float], slack: list[float]
) -> None:
    batch = streamed(tmp_path, reads, tail)
    found = [batch.lists(name).row(0).tolist() for name in ("gap_low_ns", "gap_high_ns", "gap_slack_ns")]
    assert found == [low, high, slack]


def test_a_read_stamped_behind_the_next_ones_content_is_no_bound(tmp_path: Path) -> None:
    """Sent 5.1 ms apart; another program had the core from the first read until the third piece was there."""
    made = recording(tmp_path)
    made.sent(0, 1)
    made.read(0, 10_000_000, event(text="a"), late_ns=10_291_000)
    made.read(0, 20_280_000, event(text="b") + event(text="c"), hidden=1)
    made.done(0, 21_000_000)
    made.flush(22_000_000)
    batch = reduced(made)
    low, value, high = (batch.lists(name).row(0) for name in ("gap_low_ns", "gap_ns", "gap_high_ns"))
    assert value.sum() == 10_280_000  # not 10.28 and 0.0 ms
    for truth in (5_100_000, 5_180_000):
        assert low.min() <= truth <= high.max()
    assert (low.tolist(), high.tolist()) == ([5_140_000, 0], [10_280_000, 5_140_000])


def test_a_full_read_may_have_left_what_the_next_one_brings(tmp_path: Path) -> None:
    for letters in ("a", "a" * 70_000):  # the second is in the middle of the stream, and read by itself
        made = recording(tmp_path / str(len(letters)))
        made.sent(0, 1)
        made.read(0, 10, event(text=letters), late_ns=5)
        made.read(0, 30, event(text="b") + event(text="c"), hidden=1)
        made.done(0, 50)
        made.flush(60)
        least, *_ = reduced(made).lists("gap_low_ns").row(0).tolist()
        assert least == 10  # of a sum of 20
        second = reduced(made)["second_low_ns"][0]
        assert second == (0 if len(letters) > 1 else 5)


def test_merged_first_content_has_no_width_between_two_tokens() -> None:
    stamps, kinds = np.array([10, 10, 30, 30, 5, 5]), np.array([17, 1, 17, 1, 17, 1], dtype=np.uint8)
    assert interval_widths(stamps, kinds, np.array([4, 0, 2]), np.array([2, 12, 1])).tolist() == [18.0]


class Truth(NamedTuple):
    """What a server did, and the columns of a client that reads late."""

    instants: list[int]
    output: list[bool]
    columns: dict[str, Column]


@st.composite
def truths(draw: st.DrawFn) -> Truth:
    """The truth is drawn first; reads then hide it as a frozen client does."""
    stamps: list[int] = []
    since: list[int] = []
    kinds: list[int] = []
    truth: list[int] = []
    at = 0
    for marked, wait in draw(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 50)), min_size=1, max_size=6)):
        empty, at = at, at + wait
        hidden = sorted(draw(st.integers(empty + 1, at)) for _ in range(marked))
        last = draw(st.booleans()) or not marked  # else the last event of the read is no content
        truth += [*hidden, *([at] if last else [])]
        stamps += [at] * (marked + last)
        since += [empty] * marked
        kinds += [MARKED] * marked + [0] * last
    kinds = [kind | (TEXT if draw(st.booleans()) else REASONING) for kind in kinds]
    found = instants(np.array(stamps), np.array(kinds, np.uint8), np.array([len(stamps)]), np.array(since, np.int64))
    assert bool(since) == bool(set(BOUND_COLUMNS) & found.keys())
    return Truth(truth, [bool(kind & TEXT) for kind in kinds], found)


@settings(deadline=None)
@given(truths())
def test_bounds_of_gaps_hold_for_every_possible_truth(truth: Truth) -> None:
    gaps = np.diff(truth.instants)
    if not set(BOUND_COLUMNS) & truth.columns.keys():
        return
    lists = RecordBatch(truth.columns, np.ones(1, dtype=bool)).lists
    value, low, high, slack = (lists(name).row(0) for name in ("gap_ns", *BOUND_COLUMNS[:3]))
    assert len(value) == len(gaps) and (low <= high).all()
    assert abs(value.sum() - gaps.sum()) <= slack.sum() + 1e-6
    for share in (0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 1.0):
        if len(gaps):
            lower, real, upper = (np.quantile(each, share) for each in (low, gaps, high))
            assert lower - 1e-6 <= real <= upper + 1e-6


@settings(deadline=None)
@given(truths())
def test_bounds_of_the_first_content_hold_for_every_possible_truth(truth: Truth) -> None:
    if "first_low_ns" not in truth.columns:
        return
    batch = RecordBatch(truth.columns, np.ones(1, dtype=bool))
    output = next((at for at, shown in zip(truth.instants, truth.output, strict=True) if shown), np.nan)
    for name, real in (("first", truth.instants[0]), ("output", output)):
        low, value, high = (batch[column][0] for column in (f"{name}_low_ns", _VALUES[name], f"{name}_high_ns"))
        assert np.isnan([low, value, high]).all() if np.isnan(real) else low <= real <= high and low <= value <= high
    low, high = batch["decode_low_ns"][0], batch["decode_high_ns"][0]
    decoding = truth.instants[-1] - truth.instants[0]
    assert decoding <= high and low <= max(decoding, 1), "where it takes time, at least a nanosecond"


_VALUES = {"first": "first_token_ns", "output": "first_output_ns"}


def test_first_content_behind_which_the_pace_is_known_came_that_much_earlier(tmp_path: Path) -> None:
    batch = streamed(tmp_path, [(200, "abc", 2), (210, "d", 0), (220, "e", 0)])
    assert [value(batch, name) for name in ("first_low_ns", "first_token_ns", "first_high_ns")] == [2, 180, 200]
    assert [value(batch, name) for name in ("decode_low_ns", "decode_high_ns")] == [20, 218]


@pytest.mark.parametrize("letters", ["a", "abc"])
def test_first_content_without_a_later_read_came_at_the_stamp_and_maybe_before(tmp_path: Path, letters: str) -> None:
    batch = streamed(tmp_path, [(200, letters, 2)], DONE)
    assert [value(batch, name) for name in ("first_low_ns", "first_token_ns", "first_high_ns")] == [2, 200, 200]
    several = len(letters) > 1
    assert [value(batch, name) for name in ("decode_low_ns", "decode_high_ns")] == [0, 198 * several]


def test_a_first_output_behind_reasoning_has_bounds_of_its_own(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.sent(0, 1)
    made.read(0, 40, event(reasoning="a") + event(text="b") + event(text="c"), hidden=2, late_ns=0)
    made.read(0, 50, event(text="d"), late_ns=0)
    made.done(0, 60)
    made.flush(70)
    batch = reduced(made)
    assert [value(batch, name) for name in ("first_low_ns", "first_token_ns", "first_high_ns")] == [2, 20, 40]
    assert [value(batch, name) for name in ("output_low_ns", "first_output_ns", "output_high_ns")] == [2, 30, 40]


def test_reads_without_a_kernel_stamp_have_the_reads_own(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.sent(0, 1)
    made.read(0, 10, event(text="a"), late_ns=5, stamped=False)
    made.read(0, 12, event(text="b"), late_ns=9)  # the kernel had it before the other was stamped: no time can go back
    made.read(0, 30, event(text="c"), late_ns=5)
    made.done(0, 50)
    made.flush(60)
    work = reducer(made)
    work.finish()
    (batch,) = batches(made)
    assert batch.lists("chunk_ns").row(0).tolist() == [15, 30]
    assert (work.reduction.lateness.count, float(work.reduction.lateness.sum)) == (2, 14.0)


def test_setting_the_wall_clock_moves_no_instant_and_counts_once(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.sent(0, 1 * MS)
    made.read(0, 2 * MS, event(text="a"), late_ns=10)
    made.flush(3 * MS)
    made.sent(1, 4 * MS)  # a frame of the same flush before the chunks: it must not hide the step from them
    made.read(0, 4 * MS, event(text="b"), late_ns=10)
    made.step_ns = -3600 * 10**9
    made.read(0, 5 * MS, event(text="c"), late_ns=10)
    made.flush(6 * MS)
    made.read(0, 7 * MS, event(text="d"), late_ns=10)
    made.done(0, 9 * MS)
    made.flush(9 * MS)
    work = reducer(made)
    work.finish()
    (batch,) = batches(made)
    assert batch.lists("chunk_ns").row(0).tolist() == [2 * MS, 4 * MS + 10, 5 * MS + 10, 7 * MS]
    assert work.reduction.clock_steps == 1
    assert (work.reduction.lateness.count, work.reduction.lateness.high) == (2, 10.0)
    again = reducer(made)
    assert again.reduction.clock_steps == 1
    again.finish()
    assert again.reduction.clock_steps == 1


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (
            event(usage={"prompt_tokens": 1}) + DONE,
            {"message": "the answer has no content", "type": "InvalidInferenceResultError"},
        ),
        (b"", {"message": "the answer has no content", "type": "InvalidInferenceResultError"}),
        (event(text="a") + b'data: {"error":"full"}\n\n', {"message": "full", "type": "overloaded", "code": 503}),
        (b"data: <html>\n\n", {"message": "plain: not JSON", "type": "InvalidInferenceResultError", "cause": "<html>"}),
        (
            b"data: <<<" + bytes(17 << 20),
            {"message": "an event is longer than 16 MiB", "type": "InvalidInferenceResultError", "cause": ANY},
        ),
        (b"event: error\ndata: gone\n\n", {"message": "gone", "type": "SSEResponseError", "code": 502}),
    ],
)
def test_a_good_status_without_a_good_answer_is_an_error(tmp_path: Path, body: bytes, wanted: dict[str, Any]) -> None:
    made = recording(tmp_path)
    made.answered(0, 1, *([(10, body)] if body else []))
    made.flush(60)
    batch = reduced(made)
    assert (value(batch, "outcome"), batch.valid.tolist()) == (journal.ERROR, [False])
    assert error(batch) == wanted


class Counting(Plain):
    """As many items as the request has words; a request that begins with ``odd`` can't be counted."""

    numbers = {"items": PluginUnit("scores")}

    def items_of(self, body: bytes) -> int | None:
        return len(body.split()) if not body.startswith(b"odd") else int(body)


@pytest.mark.parametrize(("text", "items", "wanted"), [
    ("a b", 2, None),
    ("a b", 1, {"message": "scores: 1 in the answer, 2 asked for", "type": "InvalidInferenceResultError"}),
    ("a", 3, {"message": "scores: 3 in the answer, 1 asked for", "type": "InvalidInferenceResultError"}),
    ("a", 0, {"message": "the answer has no content", "type": "InvalidInferenceResultError"}),
])  # fmt: skip
def test_an_answer_with_another_number_of_items_than_asked_for_is_an_error(
    tmp_path: Path, text: str, items: int, wanted: dict[str, Any] | None
) -> None:
    made = recording(tmp_path, endpoint=ref("endpoints", Counting))
    made.data_set(Conversation("first", (Turn((text,)),)))
    made.answered(0, 1, (10, event(items=items)))
    made.flush(60)
    batch = reduced(made)
    assert batch.valid.tolist() == [wanted is None]
    assert wanted is None or error(batch) == wanted


def test_a_request_whose_items_cannot_be_counted_names_the_endpoint(tmp_path: Path) -> None:
    made = recording(tmp_path, endpoint=ref("endpoints", Counting))
    made.data_set(Conversation("first", (Turn(("odd",)),)))
    made.answered(0, 1, (10, event(items=2)))
    made.flush(60)
    assert error(reduced(made))["message"].startswith("the endpoint can't count the items of the request: ValueError")


WHOLE = event(text="a b", finish="stop") + DONE
SHORT = event(text="a")


@pytest.mark.parametrize(
    ("bodies", "cut"),
    [
        ((WHOLE, SHORT, WHOLE), [1]),
        ((SHORT, SHORT, WHOLE), [0, 1]),
        ((SHORT, b"data:{}\n\n" + SHORT, event(text="b", finish="length")), [0, 1]),
        ((WHOLE, SHORT + DONE, SHORT + DONE), []),  # a marker is an end, too
        ((SHORT, SHORT + DONE, SHORT), []),  # no answer of this server has a finish reason
    ],
)
@pytest.mark.parametrize("frames", [0, 3])
@pytest.mark.parametrize("reducers", [1, 2])
def test_a_stream_that_ends_early_is_cut_where_others_have_a_finish_reason(
    tmp_path: Path, bodies: tuple[bytes, ...], cut: list[int], frames: int, reducers: int
) -> None:
    """The same whether the first finish reason came before or behind the cut answer, in its batch or another."""
    made = recording(tmp_path, workers=reducers, reducers=reducers)
    for request, body in enumerate(bodies):
        made.answered(request // reducers, request, (10 + request, body), shard=request % reducers, n=request)
        made.flush(20 + request, shard=request % reducers)
    for index in range(reducers):
        one_frame_at_a_time(reducer(made, index), frames)
        reducer(made, index).finish()
    found = summary_of(made)
    kinds = {"completed": len(bodies) - len(cut), "cut": len(cut)}
    assert (found.outcomes, found.failed) == ({kind: count for kind, count in kinds.items() if count}, len(cut))
    errors = [(each.count, each.error.type) for each in found.errors]
    assert found.complete and errors == ([(len(cut), "IncompleteStream")] if cut else [])
    lines = b"".join(path.read_bytes() for path in sorted(made.journal.glob("part-lines-*"))).splitlines()
    failed = {line.split(b",")[0] for line in lines if b"IncompleteStream" in line}
    assert (len(lines), len(failed)) == (len(bodies), len(cut))
    assert read_again(made) == len(cut)


def read_again(made: Recording) -> int:
    """Requests that later readers of the columns find failed."""
    return sum(int((~batch.valid).sum()) for batch in stored_batches.batches(made.journal, made.plan))


def test_another_status_keeps_its_reason_and_its_body(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.sent(0, 1)
    made.read(0, 10, b'{"error": "slow ')
    made.read(0, 11, b'down"}')
    made.text(0, "head", {"status": 429, "reason": "Too Many Requests", "headers": []})
    made.done(0, 12, outcome=journal.ERROR, status=429, flags=0)
    made.sent(1, 1)
    made.done(1, 12, outcome=journal.ERROR, status=500, flags=0)
    made.flush(60)
    batch = reduced(made)
    assert error(batch) == {"message": '{"error": "slow down"}', "type": "Too Many Requests", "code": 429}
    assert error(batch, 1) == {"message": "", "type": "HTTP 500", "code": 500}
    assert (value(batch, "ended_ns"), value(batch, "status"), value(batch, "input_tokens")) == (12, 429, 3)
    assert value(batch, "first_token_ns") is None


@pytest.mark.parametrize("status", [200, 500])
def test_a_huge_error_is_kept_by_its_beginning_and_its_size(tmp_path: Path, status: int) -> None:
    made = recording(tmp_path)
    for request in (0, 1):
        huge = b"x" * 2_000_000 + b"%d" % request  # differs behind the beginning
        made.sent(request, 1)
        made.read(request, 10, b"event: error\ndata: " + huge + b"\n\n" if status == 200 else huge)
        outcome = journal.COMPLETED if status == 200 else journal.ERROR
        made.done(request, 12, outcome=outcome, status=status, flags=STREAMED if status == 200 else 0)
    made.flush(60)
    batch = reduced(made)
    message = error(batch)["message"]
    assert message == "x" * 4096 + "… (2,000,001 characters)"
    assert batch.texts["error"][0] == batch.texts["error"][1]


def test_a_transports_error_is_kept_as_it_said_it(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.sent(0, 1)
    said = {"message": "reset by peer", "type": "ConnectionResetError", "cause": "ECONNRESET"}
    made.text(0, "error", said)
    made.done(0, 12, outcome=journal.ERROR, status=0)
    made.flush(60)
    assert error(reduced(made)) == said


@pytest.mark.parametrize(("last_ms", "cause"), [(95, "the answer was still coming"), (50, None), (None, None)])
def test_a_timeout_tells_an_answer_that_was_still_coming(tmp_path: Path, last_ms: int | None, cause: str | None) -> None:
    made = recording(tmp_path)
    made.sent(0, 0)
    made.text(0, "error", {"message": "no whole answer within 0.1 s", "type": "TimeoutError", "code": 504})
    for at_ms in (10, last_ms) if last_ms else ():
        made.read(0, at_ms * MS, event(text="a"))
    made.done(0, 100 * MS, outcome=journal.ERROR, status=200)
    made.flush(100 * MS)
    assert error(reduced(made)).get("cause") == cause


@pytest.mark.parametrize(
    ("outcome", "failed"), [(journal.ABORTED, 0), (journal.CANCELLED, 1), (journal.ERROR, 1), (journal.COMPLETED, 0)]
)
def test_what_the_end_of_the_run_aborted_is_neither_valid_nor_failed(tmp_path: Path, outcome: int, failed: int) -> None:
    made = recording(tmp_path)
    made.sent(0, 1)
    made.read(0, 10, event(text="a"))
    made.done(0, 12, outcome=outcome)
    made.flush(60)
    reducer(made).finish()
    (batch,) = batches(made)
    assert batch.valid.tolist() == [outcome == journal.COMPLETED]
    made.ended()
    write_summary(made.journal)
    summary = msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)
    assert (summary.valid, summary.failed) == (int(outcome == journal.COMPLETED), failed)
    assert summary.measurement.arrivals.aborted_in_flight == (outcome == journal.ABORTED)


def test_a_request_without_an_end_is_unfinished_with_what_it_has(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.sent(0, 1)
    made.read(0, 10, event(text="a b"))
    made.sent(1, 2)
    made.flush(60)
    batch = reduced(made)
    assert batch["outcome"].tolist() == [journal.UNFINISHED] * 2
    assert (value(batch, "first_token_ns"), value(batch, "output_tokens"), value(batch, "ended_ns")) == (10, 2, 10)
    assert value(batch, "ended_ns", 1) is None
    assert batch.texts["error"] == [None, None]


def test_a_torn_last_frame_is_left_out_and_the_rest_counts(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.answered(0, 1, (10, event(text="a")))
    made.flush(20)
    made.answered(1, 21, (30, event(text="b")))
    whole = made.path().stat().st_size
    made.flush(40)
    torn = made.path().read_bytes()
    made.path().write_bytes(torn[: whole + (len(torn) - whole) * 2 // 3])
    batch = reduced(made)
    assert batch["outcome"].tolist() == [journal.COMPLETED, journal.UNFINISHED]


def test_the_prompt_a_worker_logged_is_what_was_asked(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.sent(0, 1)
    made.text(0, "prompt", "a b c d e f")
    made.read(0, 10, event(text="a"))
    made.done(0, 12)
    made.flush(60)
    assert value(reduced(made), "input_tokens") == 6


def _recorded_session(made: Recording, turns: range) -> None:
    """Turns of a session, each of which continues the one before."""
    for turn in turns:
        made.sent(turn, (30 * turn + 1) * MS, session=0, turn=turn)
        if turn:
            made.text(turn, "prompt", {"of": turn - 1 if turn > 1 else -1, "was": "", "now": " said", "own": True})
        made.read(turn, (30 * turn + 9) * MS, event(text="said"))
        made.done(turn, (30 * turn + 10) * MS)
        made.flush((30 * turn + 10) * MS)


LONG = Conversation("c", tuple(Turn(("a b c",)) for _ in range(5)))


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_turns_that_continue_a_lost_one_have_no_input_tokens_and_are_told(tmp_path: Path, lost: int) -> None:
    made = recording(tmp_path)
    made.data_set(LONG)
    _recorded_session(made, range(lost))
    made.skip_frame()
    _recorded_session(made, range(lost + 1, 5))
    made.ended(requests={0: 5})
    reduction = reducer(made).finish(load_end(made.journal))
    (batch,) = batches(made)
    counts = [3 + 4 * turn if turn < lost or lost == 0 else None for turn in range(5) if turn != lost]
    assert [value(batch, "input_tokens", row) for row in range(4)] == counts, "the data set has the first turn's count"
    told = [f"{4 - lost} requests continue one that is lost, and their input tokens are not known"] if lost else []
    assert (reduction.missing, reduction.lost) == (1, ["shard-0.0.seg lacks 1 frame", *told])
    assert batch["outcome"].tolist() == [0.0] * 4


def test_a_reducer_that_starts_again_goes_on_counting_a_conversation(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.data_set(LONG)
    _recorded_session(made, range(2))
    first = reducer(made)
    first.step(1)
    first.emit()
    _recorded_session(made, range(2, 5))
    reducer(made).finish()
    assert [tokens for batch in batches(made) for tokens in batch["input_tokens"].tolist()] == [3, 7, 11, 15, 19]


def _recorded_loop(made: Recording) -> None:
    """Three requests of 10 ms in one slot, 2 ms apart."""
    for i, start in enumerate((MS, 13 * MS, 25 * MS)):
        made.sent(i, start, after=i - 1)
        made.read(i, start + 10 * MS, event(text="a"))
        made.done(i, start + 11 * MS, sent_ns=start)  # we read the answer a millisecond late
        made.flush(start + 11 * MS)


def test_a_turnaround_is_from_the_answer_to_the_next_request(tmp_path: Path) -> None:
    made = recording(tmp_path)
    _recorded_loop(made)
    batch = reduced(made)
    assert [value(batch, "turnaround_ns", row) for row in range(3)] == [None, 2 * MS, 2 * MS]


def test_a_session_that_follows_a_turn_with_a_delay_has_a_turnaround(tmp_path: Path) -> None:
    made = recording(tmp_path)
    for number, due_ms in enumerate((None, 20, None)):
        start = (0, 20, 33)[number] * MS
        made.sent(number, start, due_ns=None if due_ms is None else due_ms * MS, after=1 if number == 2 else -1)
        made.read(number, start + 10 * MS, event(text="a"))
        made.done(number, start + 11 * MS, sent_ns=start)
    made.flush(50 * MS)
    batch = reduced(made)
    assert [value(batch, "turnaround_ns", row) for row in range(3)] == [None, None, 3 * MS]


def test_a_reducer_that_starts_again_knows_the_turnaround(tmp_path: Path) -> None:
    made = recording(tmp_path)
    _recorded_loop(made)
    first = reducer(made)
    first.step(1.0)
    first.emit()  # and is killed
    made.sent(3, 40 * MS, after=2)
    made.done(3, 45 * MS, sent_ns=40 * MS)
    made.flush(45 * MS)
    reducer(made).finish()
    *_, last = batches(made)
    assert value(last, "turnaround_ns") == 40 * MS - 35 * MS


def test_the_servers_counts_are_used_when_asked_for(tmp_path: Path) -> None:
    made = recording(tmp_path, use_server_token_count=True, tokenizer=None, tokenizer_name=None)
    said = {"prompt_tokens": 70, "completion_tokens": 30, "completion_tokens_details": {"reasoning_tokens": 10}}
    made.answered(0, 1, (10, event(text="a")), (20, event(usage=said)))
    made.answered(1, 1, (10, event(text="a")))
    made.answered(2, 1, (10, event(text="a")), (20, event(usage=said | {"completion_tokens": 4})))
    made.flush(60)
    batch = reduced(made)
    names = ("input_tokens", "output_tokens", "reasoning_tokens")
    assert [[value(batch, name, row) for name in names] for row in range(3)] == [[70, 20, 10], [None] * 3, [70, 0, 10]]


class Mixed(DecodingReader):
    """Texts of two answers, a piece of each in turn."""

    def __init__(self) -> None:
        super().__init__(Plain().decode)
        self.texts: list[str] = []

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        deltas = list(map(self.decode, events))
        self.texts += [delta.text for delta in deltas if delta is not None]
        return deltas

    def choices(self) -> Sequence[Delta] | None:
        if "broken" in self.texts:
            raise ValueError("no choices")
        return [Delta("".join(self.texts[::2])), Delta("".join(self.texts[1::2]), HIDDEN)]


class Several(Plain):
    def reader(self) -> Mixed:
        return Mixed()


@pytest.mark.parametrize(("several", "tokens"), [(True, 2 + 2), (False, 3)])
def test_the_tokens_of_several_answers_are_counted_apart(tmp_path: Path, several: bool, tokens: int) -> None:
    made = recording(tmp_path, endpoint=ref("endpoints", Several), several_answers=several)
    made.answered(0, 1, *((10 * at, event(text=text)) for at, text in enumerate(("on", "tw", "e a", "o b"), 1)))
    made.sent(1, 1)
    made.read(1, 10, b'{"text":"a b","reasoning":"hm"}')
    made.done(1, 30, flags=0, ack_ns=5)
    made.flush(60)
    batch = reduced(made)
    # "on" and "tw" are "ontwe ao b" where they come, three words; "one a" and "two b" apart.
    assert value(batch, "output_tokens") == tokens
    assert value(batch, "output_tokens", 1) == 2


def test_a_reader_that_fails_to_tell_the_choices_fails_its_request(tmp_path: Path) -> None:
    made = recording(tmp_path, endpoint=ref("endpoints", Several), several_answers=True)
    made.answered(0, 1, (10, event(text="broken")))
    made.flush(60)
    assert "can't tell the choices of the answer: ValueError: no choices" in error(reduced(made))["message"]


def test_an_answer_that_does_not_stream_has_one_instant(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.sent(0, 1)
    made.read(0, 10, b'{"text":"a b",')
    made.read(0, 20, b'"usage":{}}')
    made.done(0, 30, flags=0, ack_ns=15)
    made.flush(60)
    batch = reduced(made)
    assert batch.lists("chunk_ns").row(0).tolist() == [20]
    assert (value(batch, "first_byte_ns"), value(batch, "first_token_ns"), value(batch, "output_tokens")) == (10, 20, 2)
    assert value(batch, "ack_ns") == 10  # our stamp of the head was later than the kernel's of the body behind it


# Processes that die


def a_run(directory: Path, **changes: Any) -> Recording:
    """Three segments of one shard: answers, an error, one aborted, one without an end; some begin in one and end in another."""
    made = recording(directory, **changes)
    made.phase("begin", 0)
    for i in range(40):
        start = 100 * i
        made.sent(i, start, due_ns=start - 10, entry=i % 2)
        made.read(i, start + 20, event(text=f"word{i} "), hidden=i % 3)
        if i == 12:
            made.step_ns = 10**9
        if i % 10 == 9:
            made.flush(start + 60)
        made.read(i, start + 70 + i, event(text="and more") + event(text="!"), hidden=i % 2)
        if i == 30:
            continue
        outcome = {5: journal.ERROR, 6: journal.ABORTED}.get(i, journal.COMPLETED)
        made.done(i, start + 150 + i, outcome=outcome, status=500 if i == 5 else 200)
        if i in (13, 27):
            made.flush(start + 160)
            made.event(
                journal.LOOP, {"lag_ns": [i], "cpu_ns": i, "wall_ns": i + 1, "in_phase": True, "statistics": {}}, start + 170
            )
            made.roll()
    made.flush(5_000)
    made.phase("end", 5_001)
    return made


def outcome_of(made: Recording) -> tuple[bytes, dict[str, Any]]:
    """The part file and the summary."""
    part = part_path(made.journal, "lines", 0).read_bytes()
    made.ended()
    write_summary(made.journal)
    summary = msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)
    return part, msgspec.to_builtins(summary)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[str, Any]]:
    made = a_run(tmp_path_factory.mktemp("undisturbed"))
    reducer(made).finish()
    return outcome_of(made)


def one_frame_at_a_time(work: ShardReducer, frames: int) -> None:
    for _ in range(frames):
        work.step(0.0)
        work.emit()


@pytest.mark.parametrize("frames", [1, 2, 3, 5, 8, 9, 13, 14, 17])
def test_a_reducer_that_dies_and_starts_again_changes_nothing(
    tmp_path: Path, frames: int, undisturbed: tuple[bytes, dict[str, Any]]
) -> None:
    made = a_run(tmp_path)
    one_frame_at_a_time(reducer(made), frames)  # and is gone
    one_frame_at_a_time(reducer(made), 2)
    reducer(made).finish()
    assert outcome_of(made) == undisturbed


def rest_aside(made: Recording, frames: int = 0) -> ShardReducer:
    """A reducer that has taken so many frames by itself, and all the others from a second process."""
    work = reducer(made)
    one_frame_at_a_time(work, frames)
    work.read_aside(load_end(made.journal), lambda: [f"it was process {os.getpid()}"])
    while work.step(0.1):
        pass
    work.finish(load_end(made.journal))
    return work


@pytest.mark.parametrize("frames", [0, 1, 5, 9, 13, 17, 30])
def test_a_second_process_that_reads_the_rest_changes_nothing(
    tmp_path: Path, frames: int, undisturbed: tuple[bytes, dict[str, Any]]
) -> None:
    made = a_run(tmp_path)
    assert reducer(made).unread > 0
    work = rest_aside(made, frames)
    assert outcome_of(made) == undisturbed
    assert work.live.done == 40
    (warned,) = work.warned_aside
    assert warned.startswith("it was process ") and warned != f"it was process {os.getpid()}"
    alone = reducer(made)  # which finds all of it in the columns
    alone.finish()
    assert (alone.live.done, alone.unread) == (40, 0)


@pytest.mark.parametrize(("death", "fate"), [
    (lambda: os.kill(os.getpid(), signal.SIGKILL), "was killed by SIGKILL"), (lambda: 1 // 0, "exited with 1"),
])  # fmt: skip
def test_a_second_process_that_dies_costs_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: tuple[bytes, dict[str, Any]],
    death: Callable[[], object], fate: str,
) -> None:  # fmt: skip
    made = a_run(tmp_path)
    with monkeypatch.context() as patched, pytest.raises(ReaderDiedError, match=f"the process that reads the journal {fate}"):
        patched.setattr(ShardReducer, "_read_rest", lambda work, end: (work.emit(), death()))
        rest_aside(made, 5)
    reducer(made).finish()
    assert outcome_of(made) == undisturbed


def test_a_second_process_tells_what_is_lost(tmp_path: Path) -> None:
    found = []
    for name, finish in (("alone", lambda made: reducer(made).finish(load_end(made.journal))), ("aside", rest_aside)):
        made = a_run(tmp_path / name)
        made.ended(requests={0: 41})
        journal.segment_path(made.journal, 0, 1).unlink()
        finish(made)
        (reduction,) = saved_reductions(made.journal)
        assert reduction.lost and reduction.missing
        found.append((reduction.lost, reduction.missing, reduction.notes, reduction.counts))
    assert found[0] == found[1]


@pytest.mark.parametrize("lost", [1, 17, 200, 900])
def test_a_columns_frame_that_was_cut_is_reduced_again(
    tmp_path: Path, lost: int, undisturbed: tuple[bytes, dict[str, Any]]
) -> None:
    made = a_run(tmp_path, export_level="raw")
    one_frame_at_a_time(reducer(made), 9)
    path = journal.columns_path(made.journal, 0, 0)
    path.write_bytes(path.read_bytes()[:-lost])
    reducer(made).finish()
    assert sum(each.count for each in stored(made)) == 40
    part, summary = outcome_of(made)
    assert (part, summary["results"]) == (undisturbed[0], undisturbed[1]["results"])
    assert summary["measurement"] == undisturbed[1]["measurement"]


def test_a_report_over_columns_and_segments_says_what_the_run_said(
    tmp_path: Path, undisturbed: tuple[bytes, dict[str, Any]]
) -> None:
    made = a_run(tmp_path)
    one_frame_at_a_time(reducer(made), 9)
    before = {path.name: path.read_bytes() for path in made.journal.iterdir() if "columns" in path.name or "shard" in path.name}
    reducer(made, durable=False).finish()
    after = {path.name: path.read_bytes() for path in made.journal.iterdir() if "columns" in path.name or "shard" in path.name}
    assert before == after
    assert outcome_of(made) == undisturbed


def test_a_report_opens_the_tokenizer_only_for_what_is_not_counted_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: tuple[bytes, dict[str, Any]]
) -> None:
    def gone(plan: Plan) -> None:
        raise BadTokenizer("the tokenizer can't be had")

    whole, torn = a_run(tmp_path / "whole"), a_run(tmp_path / "torn")
    reducer(whole).finish()
    one_frame_at_a_time(reducer(torn), 9)
    monkeypatch.setattr(rows, "open_tokenizer", gone)
    reducer(whole, durable=False).finish()
    assert outcome_of(whole) == undisturbed
    with pytest.raises(BadTokenizer, match="can't be had"):
        reducer(torn, durable=False).finish()


def test_what_the_disk_refuses_of_a_report_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = a_run(tmp_path)
    one_frame_at_a_time(reducer(made), 9)
    monkeypatch.setattr(outlets, "part_path", lambda *_: Path("/dev/full"))
    with pytest.raises(OSError, match="No space left on device"):
        reducer(made, durable=False).finish()


def test_columns_go_on_in_another_file_when_one_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: tuple[bytes, dict[str, Any]]
) -> None:
    monkeypatch.setattr(stored_batches, "FILE_BYTES", 2_000)
    made = a_run(tmp_path)
    one_frame_at_a_time(reducer(made), 9)
    reducer(made).finish()
    assert len(list(made.journal.glob("columns-0.*"))) > 2
    reducer(made).finish()
    assert outcome_of(made) == undisturbed


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.integers(1, 12), max_size=20), st.booleans())
def test_how_it_was_cut_into_batches_changes_no_number(
    tmp_path_factory: pytest.TempPathFactory, undisturbed: tuple[bytes, dict[str, Any]], cuts: list[int], again: bool
) -> None:
    made = a_run(tmp_path_factory.mktemp("cut"))
    work = reducer(made)
    for frames in cuts:
        for _ in range(frames):
            work.step(0.0)
        work.emit()
        if again:
            work = reducer(made)
    work.finish()
    assert outcome_of(made) == undisturbed


@pytest.mark.parametrize("reducers", [1, 2, 3])
def test_how_many_reducers_there_are_changes_no_number(tmp_path: Path, reducers: int) -> None:
    made = recording(tmp_path, workers=3, reducers=reducers)
    for shard in range(3):
        for i in range(7):
            start = 1_000 * i + 100 * shard
            made.answered(i, start, (start + 37 * (i + shard + 1), event(text="a")), shard=shard, n=3 * i + shard)
        made.flush(9_000, shard=shard)
    for index in range(reducers):
        reducer(made, index).finish()
    made.ended()
    write_summary(made.journal)
    summary = msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)
    values = sorted(37 * (i + shard + 1) for shard in range(3) for i in range(7))
    stats = {name: number * MS for name, number in summary.results["first"].stats.items()}
    wanted = {"min": values[0], "max": values[-1], "p50": values[10], "sum": sum(values), "p25": values[5], "count": 21 * MS}
    assert {name: stats[name] for name in wanted} == pytest.approx(wanted, rel=1e-15)


def test_segments_go_when_every_request_in_them_is_in_the_columns(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.sent(0, 1)
    made.answered(1, 2, (10, event(text="a")))
    made.flush(20)
    made.roll()
    made.answered(2, 21, (30, event(text="a")))
    made.flush(40)
    made.roll()
    made.answered(3, 41, (50, event(text="a")))
    made.flush(60)
    work = reducer(made)
    work.step(1)
    work.emit()
    # Request 0 is open: the segment in which it begins stays, and all later ones.
    assert len(journal.numbered(made.journal, "shard-*.seg")) == 3
    made.done(0, 70)
    made.flush(70)
    work.step(1)
    work.emit()
    assert [path.name for path in journal.numbered(made.journal, "shard-*.seg")] == ["shard-0.2.seg"]
    made.answered(4, 71, (80, event(text="a")))
    made.flush(90)
    work.step(1)
    work.finish()
    assert journal.numbered(made.journal, "shard-*.seg") == []
    assert sum(each.count for each in stored(made)) == 5


def test_raw_runs_keep_their_segments(tmp_path: Path) -> None:
    made = a_run(tmp_path, export_level="raw")
    work = reducer(made)
    work.step(1)
    work.finish()
    assert len(journal.numbered(made.journal, "shard-*.seg")) == 3


def test_an_exporter_that_fails_is_named_once_and_keeps_nobody_from_writing(tmp_path: Path) -> None:
    made = a_run(tmp_path, exporters=(ref("exporters", Failing), ref("exporters", Lines)))
    work = reducer(made)
    one_frame_at_a_time(work, 6)
    work.finish()
    (reduction,) = saved_reductions(made.journal)
    (sentence,) = reduction.failures
    assert "of acme 1.2 failed: ZeroDivisionError: no rows today" in sentence
    assert part_path(made.journal, "lines", 0).read_bytes().count(b"\n") == 40


@pytest.mark.parametrize("frames", [0, 9, 30])
def test_live_numbers_are_those_of_the_summary(tmp_path: Path, frames: int) -> None:
    made = a_run(tmp_path, metrics=tuple(ref("metrics", each) for each in (FirstToken, Gaps, Slowest, Adjusted, WithoutResult)))
    work = reducer(made, watched=True)
    assert work.watch is not None
    one_frame_at_a_time(work, frames)
    before = work.watch.live(work.live.done)
    work.finish(load_end(made.journal))
    live = work.watch.live(work.live.done)
    summary = summary_of(made)
    assert sum(each.reduced for each in live.phases) == live.done == 40 >= before.done
    (now,) = (each for each in live.phases if each.metrics)
    (phase,) = (each for each in summary.phases if each.index == now.phase)
    known = phase.results
    assert {metric.tag for metric in now.metrics} == known.keys() >= {"first", "gaps", "slowest", "adjusted", "adj_adjusted"}
    for metric in now.metrics:
        stats = known[metric.tag].stats
        for name in ("avg", "min", "max", "count"):
            assert getattr(metric.so_far, name) == stats.get(name), (metric.tag, name)
        for name in ("p50", "p90", "p95", "p99", "std"):
            told, exact = getattr(metric.so_far, name), stats.get(name)
            assert told == (exact if exact is None else pytest.approx(exact, rel=0.002)), (metric.tag, name)
        assert metric.recent == metric.so_far, "all of it is recent"
        assert metric.interval == (metric.so_far if metric.tag == "adjusted" else None)
    failed = {(each.error.type, each.error.code): each.count for each in phase.errors}
    assert sum(each.count for each in now.failures) + now.further_failures == sum(failed.values()) == now.failed


def told(reducer: int, place: str, completed: int) -> bytes:
    """What a reducer tells that has seen so many requests of phase 0."""
    kinds = dict.fromkeys(range(len(KINDS)), 0) | {KINDS.index("completed"): completed}
    return msgspec.msgpack.encode(Part(reducer, counts={0: PhaseCounts(kinds=kinds)}, late={0: 1}, place=place))


def test_live_counts_of_a_lost_site_stay_beside_those_of_the_next_one(tmp_path: Path) -> None:
    made = a_run(tmp_path, restart_lost=True)
    work = reducer(made, watched=True)
    assert work.watch is not None
    work.finish(load_end(made.journal))

    def reduced_now() -> int:
        assert work.watch is not None
        return sum(each.reduced for each in work.watch.live(work.live.done).phases)

    own = work.watch.live(work.live.done).part
    assert own and reduced_now() == 40
    work.watch.take_part(told(1, "/barn/first", 5))
    work.watch.take_part(told(1, "/barn/first", 7))  # the same reducer, later
    assert reduced_now() == 47
    work.watch.take_part(told(1, "/barn/second", 2))
    assert reduced_now() == 49
    work.watch.take_part(own)  # of one that died here: its columns are there
    assert reduced_now() == 49

    elsewhere = a_run(tmp_path / "elsewhere", restart_lost=True)
    again = reducer(elsewhere, watched=True)
    assert again.watch is not None
    again.watch.take_part(own)  # of one that was lost with its columns
    assert sum(each.reduced for each in again.watch.live(0).phases) == 40


def test_the_first_reducer_tells_its_counts_where_its_site_may_be_lost_alone(tmp_path: Path) -> None:
    watch = reducer(a_run(tmp_path), watched=True).watch
    assert watch is not None and watch.live(0).part == b""


def test_nobody_looks_and_nothing_is_folded(tmp_path: Path) -> None:
    made = a_run(tmp_path)
    work = reducer(made)
    assert work.watch is None
    work.finish(load_end(made.journal))


def test_phases_are_folded_apart(tmp_path: Path) -> None:
    phases = (PhasePlan("warmup", "warmup", 0, "burst"), PhasePlan("profiling", "profiling", 1, "burst"))
    made = recording(tmp_path, phases=phases)
    made.answered(0, 0, (2 * MS, event(text="a")))
    made.answered(1, 10 * MS, (13 * MS, event(text="a")), phase=1, n=0)
    made.answered(2, 10 * MS, (15 * MS, event(text="a")), phase=1, n=1)
    made.flush(20 * MS)
    reducer(made).finish()
    made.ended()
    write_summary(made.journal)
    summary = msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)
    assert [(each.results["first"].stats["avg"], each.valid) for each in summary.phases] == [(2.0, 1), (4.0, 2)]
    assert summary.results["first"].stats["avg"] == 4.0


@pytest.mark.parametrize(("server", "counts"), [(True, (None, None)), (False, (3, 2))])
def test_zero_tokens_are_not_believed_of_an_answer_with_content(tmp_path: Path, server: bool, counts: Any) -> None:
    made = recording(tmp_path, use_server_token_count=server)
    none = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    made.answered(0, 1, (10, event(text="two words", usage=none)))
    made.answered(1, 1, (10, event(text="two words", usage={"prompt_tokens": 3, "completion_tokens": 2})))
    made.flush(60)
    batch = reduced(made)
    assert (value(batch, "input_tokens"), value(batch, "output_tokens")) == counts
    assert [value(batch, name, 1) for name in ("input_tokens", "output_tokens")] == [3, 2]


def test_unreadable_events_are_counted_and_bound_the_first_token(tmp_path: Path) -> None:
    made = recording(tmp_path)
    for request in range(4):
        early = [(4 * MS, b"data: {\"text\": NaN}\n\n")] if request == 0 else []
        late = [(7 * MS, b'data: {"text": "\\ud800"}\n\n')] if request < 2 else []
        made.answered(request, 0, *early, (6 * MS, event(text="a")), *late, (8 * MS, event(text="b")))
    made.flush(9 * MS)
    batch = reduced(made)
    assert [value(batch, "unreadable", row) for row in range(4)] == [2, 1, 0, 0]
    assert [value(batch, "unreadable_ns", row) for row in range(2)] == [4 * MS, None]
    assert value(batch, "first_token_ns") == 6 * MS


@pytest.mark.parametrize(("server", "first"), [(True, 3), (False, None)])
@pytest.mark.parametrize("whole", [True, False])
def test_the_servers_count_of_the_first_content_is_stored_where_used(
    tmp_path: Path, server: bool, first: int | None, whole: bool
) -> None:
    """Chunks of three tokens with a running count; *whole*: reads are whole events."""
    made = recording(tmp_path, use_server_token_count=server)
    chunks = [event(usage={"completion_tokens": 0})]
    chunks += [event(text="one two three", usage={"prompt_tokens": 4, "completion_tokens": 3 * n}) for n in (1, 2, 3)]
    pieces = chunks if whole else [b"".join(chunks)[:60], b"".join(chunks)[60:]]
    made.answered(0, MS, *((2 * MS + i * MS, piece) for i, piece in enumerate([*pieces, DONE])))
    made.flush(9 * MS)
    batch = reduced(made)
    assert (value(batch, "first_tokens"), value(batch, "usage_completion_tokens")) == (first, 9)


@pytest.mark.parametrize("durable", [True, False])
def test_an_exporter_that_wants_answers_gets_their_texts(tmp_path: Path, *, durable: bool) -> None:
    made = recording(tmp_path, exporters=(ref("exporters", Texts),))
    for number, events in enumerate(([event(reasoning="hm"), event(text="yes")], [event(text="no")], [event()])):
        made.sent(number, (1 + number) * MS)
        for at, body in enumerate([*events, event(finish="stop") + DONE]):
            made.read(number, (10 + 5 * number + at) * MS, body)
        made.done(number, (14 + 5 * number) * MS)
    made.flush(60 * MS)
    reducer(made).finish()
    if not durable:  # a report has the columns alone
        reducer(made, durable=False).finish()
    name = sample_ref("exporters", f"{__name__}:Texts").name
    assert eval(part_path(made.journal, name, 0).read_bytes()) == [("hm", "yes"), ("", "no"), (None, None)]


def test_answers_are_not_kept_where_no_exporter_wants_them(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.sent(0, MS)
    made.read(0, 5 * MS, event(text="secret", finish="stop") + DONE)
    made.done(0, 6 * MS)
    made.flush(7 * MS)
    assert "answer" not in reduced(made).texts
    assert stored(made)[0].answers is None


def test_a_step_that_waited_for_a_core_is_followed_by_a_bounded_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = recording(tmp_path)
    monkeypatch.setattr(running, "_schedule", lambda policy: None)
    monkeypatch.setattr(running, "gc", SimpleNamespace(set_threshold=lambda *_: None))
    nothing: Any = lambda *_: ()  # noqa: E731
    reduction = ColumnsReduction(
        ReducerJob(made.plan, made.journal, 0, CLOCK, Secrets(), nothing, nothing, nothing, nothing)
    )  # fmt: skip
    reduction._crowded = reduction._preloaded = True
    monkeypatch.setattr(reduction, "reducer", SimpleNamespace(step=lambda budget_s: True))
    instants = iter((10.0, 200.0))
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: next(instants)))
    assert reduction.step() == 500
