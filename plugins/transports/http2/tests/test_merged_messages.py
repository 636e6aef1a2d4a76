"""Messages of several streams that one read completes: all but the last may have come before its stamp."""

from __future__ import annotations

from typing import Any

import aiperf_transport_http2
import pytest
from aiperf.sdk.transport import HIDDEN_BITS, LAST_HIDDEN, NO_STAMP
from aiperf_http2 import HeaderSet
from aiperf_http2.grpc import framed
from aiperf_transport_http2.merged import MOST_AGE_NS, merged_segments
from aiperf_transport_sockets.poller import chosen_reader

HEAD = HeaderSet([(":status", "200"), ("content-type", "application/grpc")])
EVENTS = HeaderSet([(":status", "200"), ("content-type", "text/event-stream")])
END = HeaderSet([("grpc-status", "0")])
TRIES = 50
"""The thread that reads may be between two segments now and then."""


@pytest.fixture
def read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled reader, too, takes all that waits in one read, as where the system has put the segments together."""
    monkeypatch.setattr(aiperf_transport_http2, "chosen_reader", lambda shared: chosen_reader())


def segments(head: HeaderSet, pieces: list[bytes]) -> Any:
    """A server that waits for as many requests as there are pieces, and sends each of them one in a segment of its own."""

    async def script(peer: Any) -> None:
        while True:
            streams = [(await peer.request())[0] for _ in pieces]
            for stream in streams:
                peer.http.head(stream, head)
            peer.flush()
            for stream, piece in zip(streams, pieces, strict=True):
                peer.http.send(stream, piece)
                peer.flush()  # the socket takes it at once
            for stream in streams:
                if head is HEAD:
                    peer.http.finish(stream, END)
                else:
                    peer.http.send(stream, b"", end=True)
            peer.flush()

    return script


async def one_read(scene: Any, count: int, **how: Any) -> list[tuple[bytes, int, int, int]]:
    """The rows of requests whose pieces came in one read, in their order."""
    for _ in range(TRIES):
        exchanges = await scene.together(count, **how)
        rows = [row for each in exchanges for row in scene.ear.chunks[each.request]]
        if len(rows) == count and len({row[2] for row in rows}) == 1:
            return rows
    raise AssertionError("the pieces never came in one read")


@pytest.mark.usefixtures("read_together")
def test_messages_before_the_last_of_a_read_have_bounds(play: Any) -> None:
    async def scene(scene: Any) -> None:
        await scene.together(3)  # the connection
        *earlier, last = await one_read(scene, 3)
        (link,) = scene.transport.links
        hidden = {~row[3] for row in earlier}
        assert len(hidden) == 1, "they are of one read"
        (found,) = hidden
        assert 1 <= found & (LAST_HIDDEN - 1) < 10 and not found & LAST_HIDDEN, "the kernel adds that bit to messages"
        assert 0 < found >> HIDDEN_BITS < last[2] - link.wire.connected_ns
        assert scene.transport.statistics["coalesced_reads"] > 0
        assert last[3] <= -1
        ends = [row for row in (*earlier, last) if row[3] == -1]
        assert ends in ([last], []), "exact, unless the ends of the calls came in the same read"

    play(segments(HEAD, [framed(b"one"), framed(b"two"), framed(b"three")]), scene)


@pytest.mark.usefixtures("read_together")
def test_events_of_another_stream_hide_when_the_last_one_came(play: Any) -> None:
    async def scene(scene: Any) -> None:
        await scene.together(2, kind="application/json")
        first, second = await one_read(scene, 2, kind="application/json")
        assert first[3] & LAST_HIDDEN and first[3] & (LAST_HIDDEN - 1)
        assert second[3] >> HIDDEN_BITS == first[3] >> HIDDEN_BITS > 0

    play(segments(EVENTS, [b"data: 1\n\n", b"data: 2\n\n"]), scene, scheme="http")


def test_messages_that_wait_together_have_their_own_stamps(play: Any, reader: str) -> None:
    if reader == "python":
        pytest.skip("it takes all that waits in one read")

    async def scene(scene: Any) -> None:
        stamps, hidden = [0], {0}
        while hidden != {-1} or stamps != sorted(set(stamps)):  # the system may put some together
            exchanges = await scene.together(3)
            rows = [row for each in exchanges for row in scene.ear.chunks[each.request]]
            stamps, hidden = [row[1] for row in rows], {row[3] for row in rows}

    play(segments(HEAD, [framed(b"one"), framed(b"two"), framed(b"three")]), scene)


def test_messages_of_one_segment_have_its_stamp(play: Any) -> None:
    async def script(peer: Any) -> None:
        while True:
            streams = [(await peer.request())[0] for _ in range(2)]
            for stream in streams:
                peer.http.head(stream, HEAD)
                peer.http.send(stream, framed(b"yes"))
                peer.http.finish(stream, END)
            peer.flush()

    async def scene(scene: Any) -> None:
        for _ in range(5):
            exchanges = await scene.together(2)
            rows = [row for each in exchanges for row in scene.ear.chunks[each.request]]
            assert {row[3] for row in rows} == {-1}
            assert all(row[1] for row in rows) or exchanges[0].flags & NO_STAMP

    play(script, scene)


def test_a_time_too_long_for_the_journal_is_left_out(play: Any) -> None:
    async def scene(scene: Any) -> None:
        await scene.together(2)
        (link,) = scene.transport.links
        link.wire.before, link.wire.connected_ns = (0, 0), -MOST_AGE_NS
        link.wire.hidden = 3
        hidden = merged_segments(link.wire, 1)
        assert hidden in (0, 3), "the count alone"

    play(segments(HEAD, [framed(b"one"), framed(b"two")]), scene)
