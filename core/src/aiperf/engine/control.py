"""The control channel between the parent and its workers and reducers.

It carries phase barriers, stops, journal positions and live counters, a few messages a second; never anything per request.
ZeroMQ, on a socket in a private directory or on a TCP port of loopback.
"""

from __future__ import annotations

import os
from typing import TypeAlias

import msgspec
import zmq
from msgspec import Struct

from aiperf.plan import Secrets


class Hello(Struct, frozen=True, tag=True):
    """A child is up.  role: ``worker`` or ``reducer``."""

    role: str
    index: int
    pid: int


class Load(Struct, frozen=True, tag=True):
    """The plan is in *journal*; be ready to run it."""

    journal: str
    secrets: Secrets | None = None


class Ready(Struct, frozen=True, tag=True):
    """Loaded; *trouble* says why not."""

    role: str
    index: int
    trouble: str | None = None


class Begin(Struct, frozen=True, tag=True):
    """Start phase *phase* at the monotonic instant *start_ns*.

    *resumed*: it began then, with a worker that died; go on where that one stood.
    """

    phase: int
    start_ns: int
    resumed: bool = False


class Stop(Struct, frozen=True, tag=True):
    """Send nothing more; what is in flight may finish for *drain_ns*, then it is aborted."""

    drain_ns: int


class Counters(Struct, frozen=True, tag=True):
    """Where a worker stands in its phase; *segment* and *offset* say how far its journal is written."""

    index: int
    phase: int
    sent: int
    completed: int
    errors: int
    in_flight: int
    segment: int
    offset: int


class SendingComplete(Struct, frozen=True, tag=True):
    index: int
    phase: int


class PhaseEnded(Struct, frozen=True, tag=True):
    """Everything this worker sent in the phase has returned or was given up."""

    index: int
    phase: int
    last_answer_ns: int


class Trouble(Struct, frozen=True, tag=True):
    """Something that ends the run early (a full disk), in a sentence."""

    role: str
    index: int
    message: str


class Notice(Struct, frozen=True, tag=True):
    """Something that doesn't end the run but belongs into its report."""

    role: str
    index: int
    message: str


class Advance(Struct, frozen=True, tag=True):
    """The journal of *shard* has grown."""

    shard: int
    segment: int
    offset: int


class Live(Struct, frozen=True, tag=True):
    """What a reducer has seen so far: requests reduced, mean TTFT and ITL in ms."""

    index: int
    done: int
    ttft_ms: float | None
    itl_ms: float | None


class Finish(Struct, frozen=True, tag=True):
    """Workers have ended: reduce what is left and fold it."""


class Finished(Struct, frozen=True, tag=True):
    index: int
    trouble: str | None = None


class Summarize(Struct, frozen=True, tag=True):
    """All folds are there: make the summary (reducer 0)."""

    cancelled: bool
    incomplete_reason: str | None
    warnings: tuple[str, ...]


class Exit(Struct, frozen=True, tag=True):
    pass


Message: TypeAlias = (
    Hello
    | Load
    | Ready
    | Begin
    | Stop
    | Counters
    | SendingComplete
    | PhaseEnded
    | Trouble
    | Notice
    | Advance
    | Live
    | Finish
    | Finished
    | Summarize
    | Exit
)

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Message).decode


class Line:
    """A child's end of the channel; sends never block, receives return None when there is nothing."""

    def __init__(self, address: str, identity: str) -> None:
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.IDENTITY, identity.encode())
        self._socket.setsockopt(zmq.LINGER, 2000)
        self._socket.connect(address)

    @property
    def fd(self) -> int:
        """Readable on news; edge-triggered: read until None after each wake-up and after each send."""
        return int(self._socket.getsockopt(zmq.FD))

    def send(self, message: Message) -> None:
        try:
            self._socket.send(encode(message), zmq.DONTWAIT)
        except zmq.Again:  # the parent is gone or swamped; counters are not worth waiting for
            return

    def receive(self, wait_ms: int = 0) -> Message | None:
        if wait_ms and not self._socket.poll(wait_ms):
            return None
        try:
            message: Message = decode(self._socket.recv(zmq.DONTWAIT))
        except zmq.Again:
            return None
        return message

    def close(self) -> None:
        self._socket.close()
        self._context.term()


class Switchboard:
    """The parent's end: one socket, children told apart by identity (``worker-0``).

    Raises:
        OSError: The address can't be used.
    """

    def __init__(self, address: str) -> None:
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 1000)
        try:
            self._socket.bind(address)
        except zmq.ZMQError as error:
            self.close()
            raise OSError(error.errno, os.strerror(error.errno or 0)) from error
        self.address = self._socket.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")

    def send(self, to: str, message: Message) -> None:
        self._socket.send_multipart([to.encode(), encode(message)])

    def receive(self, wait_ms: int) -> tuple[str, Message] | None:
        if not self._socket.poll(wait_ms):
            return None
        identity, data = self._socket.recv_multipart(zmq.DONTWAIT)
        return identity.decode(), decode(data)

    def close(self) -> None:
        self._socket.close()
        self._context.term()
