"""Reads of connections that exchanges share: what the journal has of them, and since when their content may have been there."""

from __future__ import annotations

from array import array
from types import SimpleNamespace
from typing import Any

import pytest
from aiperf.rundir import journal
from aiperf.rundir.shard_reader import HIDDEN_MOST, JournalRequest, is_merged, last_is_hidden
from aiperf.sdk.transport import HIDDEN_BITS, LAST_HIDDEN, MESSAGES, STREAMED
from aiperf.worker.request_sink import RequestSink

STARTED, SENT, ACK = 100, 110, 200


def request(*reads: tuple[int, int, int, bytes]) -> JournalRequest:
    """A request with these reads: receive stamp, read stamp, hidden, body."""
    sent, done = [0] * len(journal.SENT_FIELDS), [0] * len(journal.DONE_FIELDS)
    sent[journal.SENT_FIELDS.index("started_ns")] = STARTED
    done[journal.DONE_FIELDS.index("sent_ns")], done[journal.DONE_FIELDS.index("ack_ns")] = SENT, ACK
    rows = [array("q", (stamp, read, hidden, len(body))).tobytes() for stamp, read, hidden, body in reads]
    return JournalRequest(
        array("q", sent).tobytes(), 0, array("q", done).tobytes(), read_rows=rows, pieces=[each[3] for each in reads]
    )  # fmt: skip


def of(segments: int, age_ns: int) -> int:
    """*hidden* of a message that came with others."""
    return ~(segments | LAST_HIDDEN | age_ns << HIDDEN_BITS)


@pytest.mark.parametrize(("rows", "empty"), [
    ([(300, 310, journal.MESSAGE, b"a")], [ACK]),
    ([(300, 310, of(2, 30), b"a")], [280]),
    ([(300, 310, of(2, 500), b"a")], [SENT]),  # not before the request
    ([(300, 310, of(2, 0), b"a")], [SENT]),  # the head's read may have left something
    ([(300, 320, of(2, 10), b"a")], [SENT]),  # a read that began later than the stamp
    ([(300, 310, journal.MESSAGE, b"a"), (400, 410, of(1, 60), b"b")], [ACK, 350]),
    ([(300, 310, journal.MESSAGE, b"a"), (400, 410, of(1, 200), b"b")], [ACK, 300]),  # messages of a stream keep their order
    ([(300, 310, of(1, 20), b"a"), (300, 310, of(1, 20), b"b")], [290, 300]),
])  # fmt: skip
def test_a_message_came_after_the_socket_was_seen_empty(rows: list[Any], empty: list[int]) -> None:
    made = request(*rows)
    assert made.empty_before(made.reads, 0) == empty


def test_a_read_of_a_message_says_what_is_hidden() -> None:
    made = request((300, 310, of(3, 30), b"a"), (400, 410, journal.MESSAGE, b"b"), (500, 510, 2 | 7 << HIDDEN_BITS, b"c"))
    hidden = [read[2] for read in made.reads]
    assert hidden == [~(3 | LAST_HIDDEN), journal.MESSAGE, 2]
    assert list(map(is_merged, hidden)) == [True, False, True]
    assert list(map(last_is_hidden, hidden)) == [True, False, False]
    assert LAST_HIDDEN <= HIDDEN_MOST


class Log:
    """A logbook that keeps the rows of reads."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def chunk(self, *row: Any) -> None:
        self.rows.append(row)


def test_a_worker_journals_messages_with_what_is_hidden() -> None:
    log, nothing = Log(), SimpleNamespace(head=None, trailers=None, error=None, written=None)
    sink = RequestSink(*[nothing] * 3, log, nothing, streaming=True, loop=None)  # type: ignore[arg-type]
    exchange: Any = SimpleNamespace(request=7, flags=0, owner=SimpleNamespace(listen=None))
    sink.message(exchange, b"a", 1, 2)
    sink.message(exchange, b"b", 1, 2, 3 | 40 << HIDDEN_BITS)
    assert [row[4] for row in log.rows] == [journal.MESSAGE, of(3, 40)]
    assert exchange.flags == MESSAGES | STREAMED
    array("q", [of(HIDDEN_MOST, (1 << 42) - 1), HIDDEN_MOST | (1 << 42) - 1 << HIDDEN_BITS])  # the journal has room


