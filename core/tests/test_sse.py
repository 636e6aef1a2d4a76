"""Event streams: the HTML standard's grammar, whole and cut anywhere."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest
from aiperf.sdk.sse import Event, Splitter
from hypothesis import given
from hypothesis import strategies as st


def split(*reads: bytes) -> list[Event]:
    splitter = Splitter()
    events = [event for read in reads for event in splitter.feed(read)]
    return events + splitter.close()


# One row per rule that a client has to keep.
STREAMS = {
    "a blank line ends an event": (b"data: a\n\ndata: b\n\n", [Event(b"a"), Event(b"b")]),
    "CRLF ends lines": (b"data: a\r\n\r\ndata: b\r\n\r\n", [Event(b"a"), Event(b"b")]),
    "CR alone ends lines": (b"data: a\r\rdata: b\r\r", [Event(b"a"), Event(b"b")]),
    "line ends may be mixed in one stream": (
        b"data: a\n\r\ndata: b\r\n\ndata: c\r\rdata: d\n\rdata: e\r\n\rdata: f\n\n",
        [Event(b"a"), Event(b"b"), Event(b"c"), Event(b"d"), Event(b"e"), Event(b"f")],
    ),
    "CR LF is one line end, not a blank line": (b"data: a\r\ndata: b\r\n\r\n", [Event(b"a\nb")]),
    "LF CR is two": (b"data: a\n\rdata: b\n\r", [Event(b"a"), Event(b"b")]),
    "a byte order mark at the start goes": (b"\xef\xbb\xbfdata: a\n\n", [Event(b"a")]),
    "a byte order mark later stays": (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [Event(b"a")]),
    "half a byte order mark is an unknown field": (b"\xef\xbbdata: a\n\ndata: b\n\n", [Event(b"b")]),
    "comments are ignored": (b": hello\n\n:\n\ndata: a\n: in between\ndata: b\n\n", [Event(b"a\nb")]),
    "comments keep a connection alive without an event": (b": ping\n\n: ping\n\n", []),
    "data lines are joined": (b"data: {\ndata: 1\ndata: }\n\n", [Event(b"{\n1\n}")]),
    "one space after the colon goes": (b"data:a\n\ndata:  b\n\ndata: \tc\n\n", [Event(b"a"), Event(b" b"), Event(b"\tc")]),
    "a colon in the value stays": (b"data: a: b:c\n\n", [Event(b"a: b:c")]),
    "a field without a colon is an empty value": (b"data\n\ndata\ndata\n\n", [Event(b""), Event(b"\n")]),
    "an empty data line is an event": (b"data: \n\n", [Event(b"")]),
    "the event field names the next event only": (
        b"event: error\ndata: a\n\ndata: b\n\n",
        [Event(b"a", b"error"), Event(b"b")],
    ),
    "an event without data is none": (b"event: ping\n\ndata: a\n\n", [Event(b"a")]),
    "an error without data is one": (b"event: error\n\ndata: a\n\n", [Event(b"", b"error"), Event(b"a")]),
    "unknown fields are ignored": (b"foo: 1\nDATA: 2\n data: 3\ndata: a\n\n", [Event(b"a")]),
    "JSON may hold other line separators": (
        'data: {"t":"a\u2028b\u2029c\u0085d\u000b\u000ce"}\n\n'.encode(),
        [Event('{"t":"a\u2028b\u2029c\u0085d\u000b\u000ce"}'.encode())],
    ),
    "the end marker is an event like any other": (b"data: a\n\ndata: [DONE]\n\n", [Event(b"a"), Event(b"[DONE]")]),
    "the last event needs no blank line": (b"data: a\n\ndata: b\n", [Event(b"a"), Event(b"b")]),
    "the last line needs no end": (b"data: a\n\ndata: b", [Event(b"a"), Event(b"b")]),
    "several blank lines end one event": (b"\n\ndata: a\n\n\n\n\ndata: b\n\n\n", [Event(b"a"), Event(b"b")]),
    "lines that only look like an event's end": (b"data: a\\n\\ndata: b\n\n", [Event(b"a\\n\\ndata: b")]),
    "fields beside data": (b"id: 1\nevent: x\nretry: 5\ndata: a\n\n", [Event(b"a", b"x")]),
    "not data, then two line ends": (b"data: a\n\nevent: x\n\ndata: b\n\n", [Event(b"a"), Event(b"b")]),
    "three line ends between two events": (b"data: a\n\n\ndata: b\n\n", [Event(b"a"), Event(b"b")]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize(("stream", "events"), STREAMS.values(), ids=STREAMS.keys())
def test_a_whole_stream_gives_its_events(stream: bytes, events: list[Event]) -> None:
    assert split(stream) == events


@pytest.mark.parametrize(("stream", "events"), STREAMS.values(), ids=STREAMS.keys())
def test_one_cut_anywhere_changes_nothing(stream: bytes, events: list[Event]) -> None:
    for at in range(len(stream) + 1):
        assert split(stream[:at], stream[at:]) == events, f"cut at {at}"


@pytest.mark.parametrize(("stream", "events"), STREAMS.values(), ids=STREAMS.keys())
def test_byte_by_byte_with_empty_reads_changes_nothing(stream: bytes, events: list[Event]) -> None:
    reads = [piece for i in range(len(stream)) for piece in (stream[i : i + 1], b"")]
    assert split(*reads) == events


_scraps = st.sampled_from(
    [b"data: ", b"data:", b"data", b"event: x", b"id: 7", b":c", b"\n", b"\n", b"\r", b"\r\n", b"\n\n", b"a", b" ", b"\xef"]  # noqa: RUF005
    + [b"\xef\xbb\xbf", b'data: {"a":1}\n\n', b"event: error"]
)


@given(st.lists(_scraps, max_size=24).map(b"".join), st.data())
def test_any_partition_gives_the_same_events(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    edges = [0, *cuts, len(stream)]
    reads = [stream[a:b] for a, b in pairwise(edges)]
    assert split(*reads) == by_the_book(stream)


def by_the_book(stream: bytes) -> list[Event]:
    """The standard's algorithm on a whole stream, as plainly as it can be written."""
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events: list[Event] = []
    data: list[bytes] = []
    name = b""
    for line in [*text.split(b"\n"), b""]:
        if line == b"":
            if data or name == b"error":
                events.append(Event(b"\n".join(data), name))
            data, name = [], b""
        elif b":" in line:
            field, value = line.split(b":", 1)
            value = value[1:] if value.startswith(b" ") else value
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value
        elif line == b"data":
            data.append(b"")
        elif line == b"event":
            name = b""
    return events


def test_an_event_is_out_as_soon_as_its_blank_line_is_in() -> None:
    splitter = Splitter()
    assert splitter.feed(b"data: a\r\n\r") == [Event(b"a")]
    assert splitter.feed(b"\ndata: b\n\n") == [Event(b"b")]


def test_a_long_line_in_many_reads_is_put_together_once() -> None:
    line = b"data: " + b"x" * 3_000_000 + b"\n\n"
    reads = [line[i : i + 1000] for i in range(0, len(line), 1000)]
    assert split(*reads) == [Event(b"x" * 3_000_000)]


def test_the_splitter_brings_nothing_but_the_standard_library() -> None:
    code = "import sys, aiperf; before = set(sys.modules); import aiperf.sdk.sse; print(*sorted(set(sys.modules) - before))"
    brought = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(brought) <= {"aiperf.sdk", "aiperf.sdk.sse", *sys.stdlib_module_names}
