"""Rows that are made many at a time are those that are made one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from aiperf.rundir import journal
from aiperf.rundir.observations import observations
from aiperf.sdk.endpoint import DecodingReader, Reader
from aiperf.sdk.framing import Lines
from aiperf.sdk.metric import Unit
from aiperf.sdk.model import HIDDEN, Delta
from aiperf.sdk.transport import HIDDEN_BITS, RECONNECTED, RESENT, REUSED, STREAMED
from aiperf_reducer_columns.reduce.batches import StoredBatch, stored_batches
from aiperf_reducer_columns.reduce.bulk import BulkRows
from aiperf_reducer_columns.reduce.reducer import ShardReducer
from aiperf_reducer_columns.reduce.rows import RowMaker, TokenCounts
from aiperf_testing.journals import CLOCK, Plain, Recording, Words
from aiperf_testing.plans import sample_ref
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

END = b"data: [DONE]\n\n"


class Promising(Plain):
    """The dialect of most servers: pieces of text in one envelope."""

    repeats_envelope = True


class Failing(Words):
    """Counts no text with ``word7`` in it."""

    name = "words"

    def open(self, name: str) -> Failing:
        return self

    def count(self, text: str) -> int:
        if "word7" in text:
            raise ZeroDivisionError
        return super().count(text)


def event(**delta: Any) -> bytes:
    return b"data: " + msgspec.json.encode({"id": "a1", **delta, "created": 1}) + b"\n\n"


def reduced(made: Recording, *, bulk: bool) -> list[StoredBatch]:
    for path in journal.numbered(made.journal, "columns-*.*"):
        path.unlink()
    with patch.object(BulkRows, "can_read", BulkRows.can_read if bulk else lambda _: False):
        ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    return list(stored_batches(made.journal))


def recording(directory: Path, **changes: Any) -> Recording:
    endpoint = sample_ref("endpoints", f"{__name__}:Promising")
    return Recording(directory, **{"endpoint": endpoint, "export_level": "raw", **changes})


def same(made: Recording) -> StoredBatch:
    """Asserts that both ways give the same, and gives it."""
    many, single = reduced(made, bulk=True), reduced(made, bulk=False)
    assert many == single
    return many[0]


TEXTS = st.lists(
    st.one_of(
        st.sampled_from([" the", " load", "", "\n", '"', "\\", "\\u00e9", "é", '","', "\r", "\U0001f600"]),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    ),
    max_size=7,
)
MORE = st.sampled_from(
    [
        event(text="", finish="stop"), event(usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}), END,
        event(usage={"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}}), event(extra={"joules": 1.0}),
        event(reasoning=HIDDEN), event(reasoning=f"hm{HIDDEN}"),
        event(tool="call"), event(items=2), event(text="other", n=1), b": here\n\n", b"event: named\n" + event(text="named"),
        b'data: {"error":"no more"}\n\n', b"data: nonsense\n\n", event(text="a").replace(b"\n", b"\r\n"),
        b'data: {"id":"a1",\ndata: "text":"two lines","created":1}\n\n', event(text="raw").replace(b"raw", b"\xff"),
        event(usage={"prompt_tokens": -3, "completion_tokens": 4, "total_tokens": 7}), event(usage={"completion_tokens": "4"}),
        event(text="", finish="odd"), event(text="x", finish=""), event(extra={"refused": 1.0}, text="no"),
        event(text="raw").replace(b"raw", b"cut\\"), event(text="x").replace(b'"x"', b'"x","finish":"stop"'),
    ]
)  # fmt: skip


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """The events of a stream: usually of the usual form, sometimes with something else among them."""
    pieces = [event(reasoning=text) for text in draw(st.one_of(st.just([]), TEXTS))]
    pieces += [event(text=text) for text in draw(TEXTS)]
    pieces += [event(text="", finish="length"), END] if draw(st.booleans()) else []
    for more in draw(st.lists(MORE, max_size=2)):
        pieces.insert(draw(st.integers(0, len(pieces))), more)
    return pieces or [END]


@st.composite
def cuts(draw: st.DrawFn, stream: list[bytes]) -> list[tuple[int, bytes]]:
    """Reads of a stream, with the number of segments merged into each."""
    if not draw(st.booleans()):
        return [(0, piece) for piece in stream]
    whole = b"".join(stream)
    if draw(st.booleans()):  # between events
        ends = [sum(map(len, stream[:at])) for at in range(1, len(stream))]
        places = draw(st.sets(st.sampled_from(ends))) if ends else set()
    else:
        places = draw(st.sets(st.integers(1, max(1, len(whole) - 1)), max_size=4))
    edges = [0, *sorted(places - {len(whole)}), len(whole)]
    return [(draw(HIDDEN_SEGMENTS), whole[i:j]) for i, j in pairwise(edges)]


HIDDEN_SEGMENTS = st.integers(0, 3) | st.builds(
    lambda count, age: count | age << HIDDEN_BITS, st.integers(1, 3), st.integers(0, 60)
)
"""Segments merged into a read, some with the time since the socket was seen empty."""


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    streamed = draw(st.integers(0, 4)) > 0
    texts = st.fixed_dictionaries({}, optional={
        "text": st.text(max_size=9), "reasoning": st.just("hm"), "tool": st.just("f"),
        "finish": st.sampled_from(["stop", "odd", ""]), "usage": st.sampled_from([{"n": 1}, {"prompt_tokens": -1}]),
    })  # fmt: skip
    whole = texts.map(msgspec.json.encode)
    return {
        "reads": draw(streams().flatmap(cuts)) if streamed else [(0, part) for part in draw(whole).partition(b",") if part],
        "flags": STREAMED * streamed | draw(st.sampled_from([0, REUSED, RECONNECTED, RESENT, RECONNECTED | RESENT])),
        "outcome": draw(st.sampled_from([journal.COMPLETED] * 7 + [journal.ERROR, journal.ABORTED])),
        "status": draw(st.sampled_from([200] * 7 + [201, 500, 0])), "gap": draw(st.sampled_from([0, 1, 7, 7, 7, -3])),
        "due": draw(st.booleans()), "sent": draw(st.booleans()), "ack": draw(st.integers(0, 30)),
        "prompt": draw(st.integers(0, 9)),
    }  # fmt: skip


def recorded(made: Recording, drawn: list[dict[str, Any]]) -> None:
    made.phase("begin", 0)
    for number, each in enumerate(drawn):
        at = 1_000 * number
        made.sent(number, at, due_ns=at - 5 if each["due"] else None, entry=number % 2, after=number - 1, held_ns=2)
        if each["prompt"] == 0:
            made.text(number, "prompt", "what was sent")
        for hidden, body in each["reads"]:
            at += each["gap"]
            made.read(number, at + 20, body, hidden=hidden, late_ns=4)
        made.done(
            number, at + 40, outcome=each["outcome"], status=each["status"], flags=each["flags"],
            sent_ns=1_000 * number + 3 if each["sent"] else None, ack_ns=1_000 * number + each["ack"] if each["ack"] else None,
        )  # fmt: skip
        if number % 3 == 2:
            made.flush(at + 60)
    made.flush(1_000_000)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(requests(), min_size=1, max_size=12))
def test_rows_of_any_journal_are_the_same_made_together_or_alone(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[dict[str, Any]]
) -> None:
    made = recording(tmp_path_factory.mktemp("any"))
    recorded(made, drawn)
    same(made)


@pytest.mark.parametrize(("age", "since"), [(0, 3), (10, 14), (4, 20), (2, 3), (30, 3)])
def test_a_socket_seen_empty_narrows_a_merged_read(tmp_path: Path, age: int, since: int) -> None:
    """The stamp is at 20, the read at 24, the request at 3: what is behind the stamp, or before the request, says nothing."""
    made = recording(tmp_path)
    both = event(text="one") + event(text="two")
    recorded(made, [plain(0, reads=[(1 | age << HIDDEN_BITS, both), (0, END)], ack=0, gap=0)])
    (found,) = observations(made.journal, 0)
    assert found.merged_since == [CLOCK.started_mono_ns + since, None]
    assert same(made).since[0] == since


def plain(number: int, **changes: Any) -> dict[str, Any]:
    words = [event(text=f" word{number}") for _ in range(5)]
    usual = {
        "reads": [(0, word) for word in words] + [(0, END)], "flags": STREAMED, "outcome": journal.COMPLETED, "status": 200,
        "gap": 7, "due": False, "sent": True, "ack": 9, "prompt": 1,
    }  # fmt: skip
    return usual | changes


@pytest.fixture
def alone() -> Iterator[list[int]]:
    """Numbers of the requests that are finished one at a time."""
    finished: list[int] = []
    usual = RowMaker.finish_request

    def finish(self: RowMaker, request: Any, shard: int, batch: Any) -> None:
        finished.append(request.sent[0])
        usual(self, request, shard, batch)

    with patch.object(RowMaker, "finish_request", finish):
        yield finished


def test_good_answers_are_finished_together_and_others_alone(tmp_path: Path, alone: list[int]) -> None:
    made = recording(tmp_path)
    recorded(made, [plain(i, **({"status": 500} if i == 9 else {})) for i in range(20)])
    assert reduced(made, bulk=True)[0].count == 20
    assert alone == [9]


def test_where_many_are_unusual_all_are_finished_alone(tmp_path: Path, alone: list[int]) -> None:
    made = recording(tmp_path)
    recorded(made, [plain(i, **({"status": 500} if i % 3 else {})) for i in range(20)])
    reduced(made, bulk=True)
    assert alone == list(range(20))


def test_hidden_reasoning_is_no_text_either_way(tmp_path: Path) -> None:
    made = recording(tmp_path)
    stream = [(0, piece) for piece in (event(reasoning=HIDDEN), event(text="one"), event(text=" two"), END)]
    recorded(made, [{**plain(i), "reads": stream} for i in range(3)])
    assert set(same(made).columns()["output_tokens"]) == {2.0}


def test_a_tokenizer_that_fails_leaves_the_counts_of_others(tmp_path: Path) -> None:
    made = recording(tmp_path, tokenizer=sample_ref("tokenizers", f"{__name__}:Failing"))
    recorded(made, [plain(i) for i in range(20)])
    outputs = same(made).columns()["output_tokens"].tolist()
    assert outputs[:7] + outputs[8:] == [5.0] * 19 and outputs[7] != outputs[7]


class Closing(DecodingReader):
    def close(self) -> Delta | None:
        return Delta("behind")


class WithEnd(Promising):
    def reader(self) -> Reader:
        return Closing(self.decode)


class OfLines(Promising):
    framing = Lines


class Counting(Promising):
    numbers = MappingProxyType({"items": Unit.COUNT})


class Asking(Promising):
    def items_of(self, body: bytes) -> int | None:
        return None


@pytest.mark.parametrize(
    "changes",
    [
        {"endpoint": sample_ref("endpoints", f"{__name__}:Asking")},
        {"endpoint": sample_ref("endpoints", f"{__name__}:WithEnd")},
        {"endpoint": sample_ref("endpoints", f"{__name__}:OfLines")},
        {"endpoint": sample_ref("endpoints", f"{__name__}:Counting")},
        {"use_server_token_count": True},
        {"http_trace": True},
    ],
    ids=["items that are asked for", "a reader with an end", "another framing", "numbers", "the server's counts", "traces"],
)
def test_what_needs_each_answer_by_itself_is_finished_alone(tmp_path: Path, alone: list[int], changes: dict[str, Any]) -> None:
    made = recording(tmp_path, **changes)
    recorded(made, [plain(i) for i in range(3)])
    reduced(made, bulk=True)
    assert alone == [0, 1, 2]


def test_a_text_is_counted_once_and_long_ones_are_not_kept() -> None:
    counted: list[str] = []
    counts = TokenCounts(lambda text: counted.append(text) or len(text))  # type: ignore[func-returns-value]
    assert [counts[text] for text in ("one", "one", "x" * 5000, "x" * 5000)] == [3, 3, 5000, 5000]
    assert list(map(len, counted)) == [3, 5000, 5000] and list(counts) == ["one"]
