"""One request's bytes to its content and instants."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from aiperf.errors import BadResponse
from aiperf.parts.segments import Read
from aiperf.rundir.journal import MESSAGE
from aiperf.sdk.endpoint import DecodingReader
from aiperf.sdk.framing import Lines
from aiperf.sdk.model import Delta
from aiperf.sdk.transport import LAST_HIDDEN
from aiperf_reducer_columns.reduce.answer import MARKED, REASONING, TEXT, TOOL, Answer, read_answer, read_trailers
from aiperf_testing.journals import Plain, event
from hypothesis import given
from hypothesis import strategies as st

DONE = b"data: [DONE]\n\n"
new_reader = Plain().reader


def read(stamp: int, body: bytes, hidden: int = 0) -> Read:
    return stamp, stamp + 1, hidden, body


def streamed(*reads: Read) -> Answer:
    return read_answer(list(reads), new_reader, streamed=True, empty=[0, *(each[1] for each in reads[:-1])])


def test_events_in_reads_of_their_own_have_instants_of_their_own() -> None:
    answer = streamed(read(10, event(text="a")), read(20, event(text="b")), read(30, DONE))
    assert (answer.text, answer.stamps, answer.marked) == ("ab", [10, 20], 0)


def test_each_message_is_an_event_whatever_its_bytes() -> None:
    bodies = [b"", b"data: {\n\n", b"a\r\nb", b"[END]"]
    ordered = [(10 * i, 10 * i + 1, MESSAGE, body) for i, body in enumerate(bodies)]
    for reads in (ordered, [ordered[1], ordered[0], *ordered[2:]]):
        seen: list[bytes] = []

        def take(event: bytes, seen: list[bytes] = seen) -> Delta:
            seen.append(event)
            return Delta(text=f"{len(event)} ")

        answer = read_answer(reads, lambda take=take: DecodingReader(take), streamed=True)  # type: ignore[misc]
        assert seen == [read[3] for read in reads]
        assert answer.text.split() == [str(len(event)) for event in seen]
        assert answer.stamps == ([0, 10, 20, 30] if reads is ordered else [10, 10, 20, 30])
        assert (answer.marked, answer.since) == (0, [])


def test_messages_that_came_with_others_are_marked() -> None:
    earlier = ~(3 | LAST_HIDDEN)
    reads = [(10, 11, earlier, b"a"), (20, 21, MESSAGE, b"b"), (30, 31, earlier, b"c"), (30, 31, earlier, b"")]
    for order in (reads, [reads[1], reads[0], *reads[2:]]):  # by columns, and one by one
        answer = read_answer(
            order, lambda: DecodingReader(lambda event: Delta(text=event.decode())), streamed=True, empty=[5, 6, 25, 26]
        )  # fmt: skip
        assert (answer.text, answer.marked) == ("".join(each[3].decode() for each in order), 2)
        assert [bool(kind & MARKED) for kind in answer.kinds] == [each[2] == earlier for each in order[:3]]
        assert answer.since == ([5, 25] if order is reads else [6, 25])


@pytest.mark.parametrize("framed", [event(text="a"), event(text="a") + event(text="b")], ids=["one event", "two events"])
@pytest.mark.parametrize("cut", [0, 4], ids=["whole", "cut"])
def test_where_the_last_segment_is_of_another_answer_no_event_has_its_instant(framed: bytes, cut: int) -> None:
    first, rest = framed[:cut], framed[cut:]
    reads = [*([read(10, first)] if first else []), read(20, rest, 1 | LAST_HIDDEN), read(30, DONE)]
    answer = streamed(*reads)
    assert all(kind & MARKED for kind in answer.kinds) and answer.marked == len(answer.kinds) == framed.count(b"data")


def test_several_messages_of_an_answer_that_was_not_to_stream_are_events_too() -> None:
    reads = [(10, 11, MESSAGE, b"a"), (20, 21, MESSAGE, b"b")]
    answer = read_answer(reads, lambda: DecodingReader(lambda event: Delta(text=event.decode())), streamed=False)
    assert (answer.text, answer.stamps) == ("ab", [10, 20])


def test_trailers_add_to_an_answer_and_their_error_is_its_own() -> None:
    answer = Answer(text="a", usage={"x": 1})
    read_trailers(answer, lambda: Delta(usage={"y": 2}, finish="stop"), 30)
    assert (answer.text, answer.usage, answer.finish, answer.stamps) == ("a", {"x": 1, "y": 2}, "stop", [])

    def refuse() -> Delta | None:
        raise BadResponse("spent", code=8)

    read_trailers(answer, refuse, 30)
    read_trailers(answer, lambda: Delta(text=b"no text"), 30)  # type: ignore[arg-type]
    assert answer.error is not None and "can't read the answer" in answer.error.message
    earlier = Answer(error=BadResponse("first"))
    read_trailers(earlier, refuse, 30)
    assert earlier.error is not None and earlier.error.message == "first"


def test_events_sent_together_share_their_instant_and_none_is_marked() -> None:
    answer = streamed(read(10, event(text="a")), read(20, event(text="b") + event(text="c") + DONE))
    assert answer.stamps == [10, 20, 20]
    assert (list(answer.kinds), answer.marked, answer.since) == ([TEXT] * 3, 0, [])


def test_all_but_the_last_event_of_merged_segments_are_marked() -> None:
    answer = streamed(read(10, event(text="a")), read(20, event(text="b") + event(text="c") + event(text="d"), hidden=2))
    assert list(answer.kinds) == [TEXT, TEXT | MARKED, TEXT | MARKED, TEXT]
    assert (answer.marked, answer.since) == (2, [11, 11])  # the read before


def test_an_end_marker_merged_behind_the_last_content_marks_that() -> None:
    answer = streamed(read(10, event(text="a")), read(20, event(text="b") + DONE, hidden=1))
    assert list(answer.kinds) == [TEXT, TEXT | MARKED]


def test_a_merged_read_ending_inside_an_event_marks_all_whole_events() -> None:
    whole = event(text="c")
    answer = streamed(read(10, event(text="a")), read(20, event(text="b") + whole[:9], hidden=1), read(30, whole[9:]))
    assert answer.stamps == [10, 20, 30]
    assert list(answer.kinds) == [TEXT, TEXT | MARKED, TEXT]


def test_an_event_that_several_merged_segments_carry_is_whole_with_the_last() -> None:
    answer = streamed(read(10, event(text="a")), read(20, event(text="b" * 9000), hidden=5))
    assert (answer.stamps, answer.marked) == ([10, 20], 0)


def test_first_content_that_was_merged_came_after_the_answer_began() -> None:
    answer = streamed(read(10, event(text="a") + event(text="b"), hidden=1))
    assert (list(answer.kinds), answer.marked, answer.since) == ([TEXT | MARKED, TEXT], 1, [0])


def test_pieces_that_show_nothing_have_no_instant() -> None:
    answer = streamed(
        read(5, event(text="")),
        read(10, event(text="a")),
        read(20, event(finish="stop")),
        read(30, event(usage={"x": 1})),
        read(40, DONE),
    )
    assert (answer.stamps, answer.finish, answer.usage) == ([10], "stop", {"x": 1})


@pytest.mark.parametrize(
    ("closing", "events", "last"),
    [
        (b"", 2, 10),
        (event(finish="stop"), 3, 20),
        (event(usage={"x": 1}), 2, 10),  # stands alone: says nothing of the answer
        (event(finish="stop", usage={"x": 1}), 3, 20),
        (event(text=""), 3, 20),
    ],
)
def test_the_first_and_the_last_event_say_more_than_usage(closing: bytes, events: int, last: int) -> None:
    answer = streamed(read(5, event(text="")), read(10, event(text="a")), read(20, closing), read(30, DONE))
    assert (answer.events, answer.first_event_ns, answer.last_event_ns) == (events, 5, last)


def test_an_answer_that_says_nothing_has_no_event() -> None:
    answer = streamed(read(10, DONE))
    assert (answer.events, answer.first_event_ns, answer.last_event_ns) == (0, None, None)


def test_first_output_is_behind_reasoning_and_before_or_at_a_tool_call() -> None:
    answer = streamed(read(10, event(reasoning="hm")), read(20, event(tool="f{}")), read(30, event(text="a", reasoning="b")))
    assert (answer.first_output_ns, answer.stamps[0]) == (20, 10)
    assert list(answer.kinds) == [REASONING, TOOL, TEXT | REASONING]
    assert (answer.text, answer.reasoning) == ("f{}a", "hmb")


def test_reasoning_alone_is_no_output() -> None:
    assert streamed(read(10, event(reasoning="hm"))).first_output_ns is None


def test_the_last_usage_that_says_something_counts() -> None:
    answer = streamed(read(10, event(text="a", usage={"n": 1})), read(20, event(usage={"n": 2})), read(30, event(usage={})))
    assert answer.usage == {"n": 2}


def test_numbers_the_server_gives_are_kept_wherever_they_stand() -> None:
    assert streamed(read(10, event(text="a", extra={"t": 1.5})), read(20, event(text="b"))).extra == {"t": 1.5}


def test_an_in_band_error_keeps_earlier_content_and_the_servers_message() -> None:
    answer = streamed(read(10, event(text="a")), read(20, b'data: {"error":"full"}\n\n'), read(30, event(text="b")))
    assert (answer.text, answer.stamps) == ("a", [10])
    assert answer.error is not None
    assert (answer.error.message, answer.error.code, answer.error.kind) == ("full", 503, "overloaded")


@pytest.mark.parametrize(
    ("data", "message", "code", "kind"),
    [
        (b"event: error\ndata: out of memory\n\n", "out of memory", 502, "SSEResponseError"),
        (b"event: error\n\n", "the server sent an error event", 502, "SSEResponseError"),
        (b'event: error\ndata: {"error":"full"}\n\n', "full", 503, "overloaded"),
    ],
)
def test_an_event_named_error_is_one_whatever_it_carries(data: bytes, message: str, code: int, kind: str) -> None:
    for answer in (
        streamed(read(10, event(text="a")), read(20, data)),
        streamed(read(10, event(text="a")), read(20, data[:-1])),
    ):
        assert answer.error is not None
        assert (answer.error.message, answer.error.code, answer.error.kind) == (message, code, kind)


def test_an_endpoint_that_fails_is_an_error_of_this_answer_alone() -> None:
    def fails(data: bytes) -> Delta:
        raise KeyError("choices")

    for whole in (True, False):
        answer = read_answer([read(10, event(text="a"))], partial(DecodingReader, fails), streamed=not whole)
        assert answer.error is not None
        assert answer.error.message == "the endpoint can't read the answer: KeyError: 'choices'"
        assert answer.error.kind == "EndpointError"


def test_an_answer_that_does_not_stream_came_with_its_last_read() -> None:
    reads = [read(10, b'{"text":"a b",'), read(20, b'"reasoning":"c","usage":{"n":1}}')]
    answer = read_answer(reads, new_reader, streamed=False)
    assert (answer.text, answer.reasoning, answer.stamps, answer.first_output_ns) == ("a b", "c", [20], 20)
    assert answer.usage == {"n": 1}


def test_an_answer_that_does_not_stream_and_shows_nothing_has_no_instant() -> None:
    assert read_answer([read(10, b'{"usage":{"n":1}}')], new_reader, streamed=False).stamps == []


def test_the_last_event_needs_no_blank_line() -> None:
    answer = streamed(read(10, event(text="a")), read(20, event(text="b", finish="stop")[:-2]))
    assert (answer.text, answer.stamps, answer.finish) == ("ab", [10, 20], "stop")


def test_stamps_of_one_answer_never_go_back() -> None:
    # A read stamp in place of a missing kernel stamp may be behind the kernel's stamp of the next read.
    answer = read_answer([(15, 15, 0, event(text="a")), (12, 16, 0, event(text="b"))], new_reader, streamed=True)
    assert answer.stamps == [15, 15]


PIECES = st.lists(
    st.one_of(
        st.builds(lambda text: event(text=text), st.text(max_size=5)),
        st.builds(lambda text: event(reasoning=text), st.text(max_size=3)),
        st.sampled_from([DONE, b": still here\n\n", event(usage={"n": 3}), event(text="x").replace(b"\n", b"\r\n")]),
    ),
    min_size=1,
    max_size=8,
)


@given(PIECES, st.data())
def test_where_the_bytes_were_cut_changes_nothing_that_was_said(pieces: list[bytes], data: Any) -> None:
    stream = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    whole, cut = streamed(read(1, stream)), streamed(*(read(1, part) for part in parts if part))
    for name in ("text", "reasoning", "usage", "stamps", "kinds", "first_output_ns", "finish"):
        assert getattr(whole, name) == getattr(cut, name), name


@given(
    st.lists(
        st.sampled_from([event(text="a"), event(reasoning="b"), event(tool="c"), event(text=""), DONE]), min_size=1, max_size=8
    ),
    st.data(),
)
def test_read_by_columns_or_event_by_event_it_is_the_same(pieces: list[bytes], data: Any) -> None:
    reads: list[Read] = []
    while pieces:
        count = data.draw(st.integers(1, len(pieces)))
        reads.append(read(10 * len(reads) + 10, b"".join(pieces[:count]), data.draw(st.integers(0, 2))))
        pieces = pieces[count:]
    # With other line ends it means the same, and the fast path doesn't take it.
    careful = [(stamp, seen, hidden, body.replace(b"\n", b"\r\n")) for stamp, seen, hidden, body in reads]
    spaceless = [(stamp, seen, hidden, body.replace(b"data: ", b"data:")) for stamp, seen, hidden, body in reads]
    one, other, third = streamed(*reads), streamed(*careful), streamed(*spaceless)
    for name in Answer.__slots__:
        assert getattr(one, name) == getattr(other, name) == getattr(third, name), name


def test_a_space_more_is_no_content_in_a_stream_without_spaces() -> None:
    body = event(text="a").replace(b"data: ", b"data:") + event(text="b") + b"data:  [DONE]\n\n"
    seen: list[bytes] = []
    read_answer([read(1, body)], lambda: DecodingReader(seen.append), streamed=True)
    assert seen[1] == event(text="b").removeprefix(b"data: ").strip()
    assert seen[-1] == b" [DONE]"


class CarefulLines(Lines):
    """The same lines, which the fast path doesn't take."""


LINES = (b'{"text":"a"}\n', b'{"text":""}\n', b'{"n":1}\r\n', b"\n", b' {"text":"b"}\n', b'{"te')


@given(st.lists(st.sampled_from(LINES), min_size=1), st.data())
def test_lines_read_by_columns_or_one_by_one_are_the_same(pieces: list[bytes], data: Any) -> None:
    reads: list[Read] = []
    pieces = [b'{"n":0}\n', b'{"n":1}\n', *pieces]  # one line alone would be a whole answer
    while pieces:
        count = data.draw(st.integers(1, len(pieces)))
        reads.append(read(10 * len(reads) + 10, b"".join(pieces[:count]), data.draw(st.integers(0, 2))))
        pieces = pieces[count:]

    def text(event: bytes) -> Delta:
        return Delta(event.decode() if b"text" in event else "")

    one, other = (
        read_answer(reads, lambda: DecodingReader(text), streamed=True, framing=framing) for framing in (Lines, CarefulLines)
    )
    for name in Answer.__slots__:
        assert getattr(one, name) == getattr(other, name), name


def test_bytes_of_another_dialect_are_a_bad_response() -> None:
    answer = streamed(read(10, b"data: <html>\n\n"))
    assert isinstance(answer.error, BadResponse)
    assert answer.error.raw == b"<html>"


def test_an_unreadable_event_between_readable_ones_is_passed_over() -> None:
    answer = streamed(
        read(10, event(text="a")), read(20, b"data: <html>\n\n"), read(30, event(text="b")), read(40, b"data: {")
    )
    assert (answer.text, answer.stamps, answer.error) == ("ab", [10, 30], None)
    assert (answer.unreadable, answer.unreadable_ns) == (2, None)


def test_unreadable_events_before_the_first_content_bound_its_instant() -> None:
    bad = read(20, b'data: {"text": NaN}\n\n'), read(25, b"data: {\n\n")
    answer = streamed(read(10, event()), *bad, read(30, event(text="b")))
    assert (answer.stamps, answer.unreadable, answer.unreadable_ns) == ([30], 2, 20)


@pytest.mark.parametrize(
    ("sent", "unreadable"),
    [
        (b"data:\n\n", 0),
        (b"data:  \n\n", 0),
        (b"data: keep-alive\n\n", 0),
        (b"data: PING\n\n", 0),
        (b"event: ping\ndata: 2026-11-22 16:00:00\n\n", 0),
        (b"event: heartbeat\ndata:\n\n", 0),
        (b": keep-alive\n\n", 0),
        (b"data: pin\n\n", 1),
        (b"data: ping pong\n\n", 1),
        (b"event: message\ndata: 2026-11-22\n\n", 1),
        (b'event: ping\ndata: {"text": "c"}\n\n', None),  # content is content
    ],
)
def test_heartbeats_are_no_unreadable_events(sent: bytes, unreadable: int | None) -> None:
    answer = streamed(read(5, sent), read(10, event(text="a")), read(20, event(text="b")), read(30, DONE), read(40, sent))
    if unreadable is None:
        assert answer.text == "cabc"
        return
    assert (answer.text, answer.stamps, answer.error) == ("ab", [10, 20], None)
    assert (answer.unreadable, answer.unreadable_ns) == (2 * unreadable, 5 if unreadable else None)
    assert (answer.end_marker, answer.first_event_ns) == (not unreadable, 5 if unreadable else 10)


@pytest.mark.parametrize("streamed", [True, False])
def test_a_decoder_that_returns_another_type_is_an_error(streamed: bool) -> None:
    decode: Any = lambda event: "Hi"  # noqa: E731
    answer = read_answer([(5, 5, 0, b"data: {}\n\ndata: {}\n\n")], partial(DecodingReader, decode), streamed=streamed)
    assert answer.error is not None and answer.error.kind == "EndpointError"
    assert answer.error.message == "the endpoint can't read the answer: decode returned str, not Delta"
