"""Long bodies, sent piece by piece as fast as the client takes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from aiperf_command_simulate.dialect import Reply
    from aiperf_command_simulate.http1 import Request, Responder
    from aiperf_command_simulate.truth import Record

_BURST_PIECES = 32
"""So many are sent before others are served."""


@runtime_checkable
class Spout(Protocol):
    """A connection that says when the client has taken what was written.  pouring: the body that waits for that, else None.

    blocked: more is written than the client has taken, or the connection is over.
    """

    pouring: Pouring | None

    @property
    def blocked(self) -> bool: ...

    def piece(self, data: bytes) -> None: ...


class Pouring:
    """A body on its way; *done* is called behind its last piece, unless the client leaves before."""

    def __init__(self, spout: Spout, pieces: Iterator[bytes], done: Callable[[], None]) -> None:
        self._spout, self._pieces, self._done = spout, pieces, done
        spout.pouring = self
        self.go_on()

    def go_on(self) -> None:
        """Send what the client takes; the loop serves others in between."""
        spout = self._spout
        for piece in islice(self._pieces, _BURST_PIECES):
            spout.piece(piece)
            if spout.blocked:
                return
        if (more := next(self._pieces, None)) is None:
            spout.pouring = None
            self._done()
        else:
            spout.piece(more)
            asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        if self._spout.pouring is self and not self._spout.blocked:
            self.go_on()


def pour(
    connection: Responder, request: Request, record: Record, reply: Reply, ended: Callable[[bool], None]
) -> None:
    """Send the pieces of *reply*, none to HEAD, and note their instants in *record*; *ended* is told whether they were all.

    A stream of HTTP/2 gets them at once, and has windows of its own.
    """
    if request.method == "HEAD":
        connection.end()
        ended(True)
        return
    sent = 0

    def counted() -> Iterator[bytes]:
        nonlocal sent
        for piece in reply.pieces or ():
            sent += len(piece)
            record.last_mono_ns, record.last_wall_ns = time.monotonic_ns(), time.time_ns()
            if record.first_mono_ns is None:
                record.first_mono_ns, record.first_wall_ns = record.last_mono_ns, record.last_wall_ns
            yield piece

    if isinstance(connection, Spout):
        Pouring(connection, counted(), lambda: ended(sent == reply.length))
        return
    for piece in counted():
        connection.piece(piece)
    if sent == reply.length:
        connection.end()
    ended(sent == reply.length)
