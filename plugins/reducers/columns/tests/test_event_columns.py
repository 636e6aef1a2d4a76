"""Events by columns are those that the framing finds, read by read."""

from __future__ import annotations

from typing import Any

import pytest
from aiperf.sdk.framing import Framing, Lines, ServerSentEvents
from aiperf_reducer_columns.reduce.event_columns import events_by_column

LONG = b'{"text":"%b"}' % (b"word " * 200)


def named(name: bytes, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name, data)


def plain(data: bytes, head: bytes = b"data: ") -> bytes:
    return b"%b%b\n\n" % (head, data)


DELTAS = [named(b"delta", b'{"n":%d}' % number) for number in range(20)]
TEXTS = [plain(LONG[:-2] + b'%d"}' % number) for number in range(20)]


def expected(bodies: list[bytes], framing: type[Framing]) -> list[tuple[bytes, str | None, int]]:
    """Data, name and instant of each event, one read after the other."""
    splitter, found = framing(), []
    for at, body in enumerate(bodies, 1):
        found += [(event.data, event.name, 10 * at) for event in splitter.feed(body)]
    return found


@pytest.mark.parametrize("bodies", [
    DELTAS, TEXTS, DELTAS[:1], TEXTS[:1],
    [named(b"created", b"{}") + named(b"progress", b"{}"), *DELTAS, named(b"done", b'{"a":1}') + named(b"end", b"{}")],
    [*DELTAS[:9], DELTAS[9] + DELTAS[10], *DELTAS[11:]],
    [*TEXTS[:9], TEXTS[9] + TEXTS[10] + plain(b"[DONE]")],
    [plain(b"{}") + TEXTS[0], *TEXTS[1:]],
    [*DELTAS, b"data: [DONE]\n\n"], [*TEXTS, *DELTAS[:3]],
    [plain(text, b"data:") for text in (LONG, LONG, LONG)],
    [b"".join(DELTAS[:12]), *DELTAS[12:]], [b"".join(pair) for pair in zip(DELTAS[::2], DELTAS[1::2], strict=True)],
    [named(b"a", b"1"), named(b"b", b"2"), named(b"a", b"3"), named(b"b", b"4")] * 5,
], ids=range(14))  # fmt: skip
def test_events_are_those_of_the_framing(bodies: list[bytes]) -> None:
    reads = [(10 * at, 10 * at + 1, 0, body) for at, body in enumerate(bodies, 1)]
    found = events_by_column(reads, ServerSentEvents)
    assert found is not None
    data, names, instants, lengths = found
    assert list(zip(data, names, instants, strict=True)) == expected(bodies, ServerSentEvents)
    assert not lengths


def test_lengths_are_given_where_reads_were_merged() -> None:
    bodies = [DELTAS[0] + DELTAS[1], *DELTAS[2:9], DELTAS[9] + DELTAS[10] + DELTAS[11]]
    reads = [(10 * at, 10 * at + 1, int(at == 1), body) for at, body in enumerate(bodies, 1)]
    found = events_by_column(reads, ServerSentEvents)
    assert found is not None
    assert list(found[3]) == [2, *[1] * 7, 3]


@pytest.mark.parametrize("bodies", [
    [*DELTAS, b": comment\n\n"], [*DELTAS, named(b"error", b"{}")], [named(b"error", b"{}")] * 3,
    [*TEXTS, b"data: a\ndata: b\n\n"], [*DELTAS, b"event: delta\ndata: a\n"], [b"data: a\r\n\r\n"] * 3,
    [*DELTAS[:5], b"event: delta\ndata: a\ndata: b\n\n", *DELTAS[5:]], [plain(b" a", b"data:")] * 2,
], ids=range(8))  # fmt: skip
def test_unusual_streams_are_read_as_the_framing_reads_them(bodies: list[bytes]) -> None:
    reads: list[Any] = [(10 * at, 10 * at + 1, 0, body) for at, body in enumerate(bodies, 1)]
    found = events_by_column(reads, ServerSentEvents)
    events = expected(bodies, ServerSentEvents)
    if any(name == "error" for _, name, _ in events):
        assert found is None
    else:
        assert found is not None
        assert list(zip(*found[:3], strict=True))[: len(events)] == events


def test_lines_have_no_names() -> None:
    found = events_by_column([(1, 2, 0, b'{"a":1}\n'), (3, 4, 0, b'{"a":2}\n{"a":3}\n')], Lines)
    assert found is not None
    assert [*zip(*found[:3], strict=True)] == [(b'{"a":1}', None, 1), (b'{"a":2}', None, 3), (b'{"a":3}', None, 3)]
