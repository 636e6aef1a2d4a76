"""The control channel between the parent and its workers and reducers.

It carries phase barriers, stops and live counters, a few messages a second; of requests nothing but the lines of a log at debug
or trace level.
ZeroMQ, on a socket in a private directory or on a TCP port of loopback.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec
import zmq
from msgspec import Struct

from aiperf.sdk.plan import Secrets
from aiperf.sdk.reducer import Ended, Live
from aiperf.sdk.snapshot import Snapshot, VerdictSoFar


class Hello(Struct, frozen=True, tag=True):
    """A child is up.  role: ``worker`` or ``reducer``."""

    role: str
    index: int


class Prepare(Struct, frozen=True, tag=True):
    """A plan comes next; until its data set is made, it stands in *journal* without it.

    log: the file that standard output and error go to from now on; "" leaves them.
    """

    journal: str
    log: str = ""


class Load(Struct, frozen=True, tag=True):
    """The plan is whole; be ready to run it.  watched, lines_s: as of :class:`aiperf.sdk.reducer.ReducerJob`.  looked: somebody
    looks at live numbers twice a second; else they are told when TellFigures asks."""

    secrets: Secrets
    watched: bool = False
    looked: bool = False
    lines_s: dict[int, float] = {}


class Ready(Struct, frozen=True, tag=True):
    """Loaded; *trouble* says why not."""

    role: str
    index: int
    trouble: str | None = None


class Refused(Struct, frozen=True, tag=True):
    """The plan can't be reduced, as far as it is known before the load: lines for the user, and the exit code."""

    lines: list[str]
    code: int


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
    """Where a worker stands in its phase.

    refused: why its latest connection could not be opened, None once one could.  refusals: requests of the phase that found
    no connection to the server; reached: those that ended on one.  on_way: a request is on one now.  waiting_s: how long the
    oldest request waits for one while none is; 0 where none does.  received_bytes: of the journal so far, nearly all of it
    answers; None where the worker can't say.
    """

    index: int
    phase: int
    sent: int
    completed: int
    errors: int
    in_flight: int
    refused: str | None = None
    refusals: int = 0
    reached: int = 0
    on_way: bool = False
    waiting_s: float = 0.0
    received_bytes: int | None = None


class PhaseEnded(Struct, frozen=True, tag=True):
    """Everything this worker sent in the phase has returned or was given up, at the monotonic instant *at_ns*."""

    index: int
    phase: int
    last_answer_ns: int
    at_ns: int


class Trouble(Struct, frozen=True, tag=True):
    """Something that ends the run early (a full disk), in a sentence."""

    message: str


class Notice(Struct, frozen=True, tag=True):
    """Something that doesn't end the run but belongs into its report."""

    message: str


class LogLines(Struct, frozen=True, tag=True):
    """Lines for the log of the run, at a level of ``logging``.  once: each is logged once, whoever says it again."""

    level: int
    lines: list[str]
    once: bool = False


class Unwritten(Struct, frozen=True, tag=True):
    """Bytes that belong behind the end of a worker's last segment, for which the disk had no room.  A worker at a site says so
    behind its last phase."""

    segment: str
    data: bytes


class LiveFigures(Struct, frozen=True, tag=True):
    """What a reducer has seen so far; ended: requests since the message before."""

    index: int
    live: Live
    ended: list[Ended] = []


class TakeParts(Struct, frozen=True, tag=True):
    """To the first reducer: what others have, as :attr:`aiperf.sdk.reducer.Live.part`.  No figures are made of some of them."""

    parts: list[bytes]


class TellFigures(Struct, frozen=True, tag=True):
    """To a reducer: tell the live numbers once."""


class Judge(Struct, frozen=True, tag=True):
    """To the first reducer: what is to be said of the run so far?"""

    snapshot: Snapshot


class Judged(Struct, frozen=True, tag=True):
    """The answer to Judge; None where no verdict can say."""

    verdict: VerdictSoFar | None


class Finish(Struct, frozen=True, tag=True):
    """Workers have ended: reduce what is left and fold it."""


class Reduced(Struct, frozen=True, tag=True):
    """The answer to Finish; *trouble* says why the reducer could not.  *rows_wait*: until WriteRows."""

    index: int
    trouble: str | None = None
    rows_wait: bool = False


class PrepareSummary(Struct, frozen=True, tag=True):
    """All folds are there: do what the summary needs, but for the samples of telemetry (reducer 0)."""


class Summarize(Struct, frozen=True, tag=True):
    """All folds are there, and ``run.json`` has the end of the run: make the summary (reducer 0)."""


class Hurry(Struct, frozen=True, tag=True):
    """A signal has come since Summarize: leave out what takes long."""


class Working(Struct, frozen=True, tag=True):
    """A long part of Summarize: what it is, how much is done of how much, and the unit."""

    what: str
    done: int
    of: int
    unit: str


class Summarized(Struct, frozen=True, tag=True):
    """The answer to Summarize; *trouble* says why there is no summary."""

    trouble: str | None = None


class WriteRows(Struct, frozen=True, tag=True):
    """The summary is printed: write the rows of per-request files that wait."""


class RowsWritten(Struct, frozen=True, tag=True):
    """The answer to WriteRows, with a sentence on each failure."""

    index: int
    failures: list[str]


class Exit(Struct, frozen=True, tag=True):
    pass


class Release(Struct, frozen=True, tag=True):
    """The plan is over: drop all that is of it, and wait for the next one."""


class Released(Struct, frozen=True, tag=True):
    """The answer to Release, when files and connections are closed."""

    role: str
    index: int


Message: TypeAlias = (
    Hello | Prepare | Load | Ready | Refused | Begin | Stop | Counters | PhaseEnded | Trouble | Notice | LogLines | Unwritten
    | LiveFigures | TakeParts | TellFigures | Judge | Judged | Finish | Reduced | PrepareSummary | Summarize | Hurry | Working
    | Summarized | WriteRows | RowsWritten | Exit | Release | Released
)  # fmt: skip

encode = msgspec.msgpack.Encoder().encode
decode: Callable[[bytes], Message] = msgspec.msgpack.Decoder(Message).decode


class _End:
    """A socket with its context."""

    def __init__(self, kind: int, linger_ms: int) -> None:
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(kind)
        self._socket.setsockopt(zmq.LINGER, linger_ms)

    def wake(self, poller: zmq.Poller) -> None:
        """Let the poller wake up for messages."""
        poller.register(self._socket, zmq.POLLIN)

    def close(self) -> None:
        self._socket.close()
        self._context.term()


class Line(_End):
    """A child's end of the channel; sends never block, receives return None when there is nothing."""

    def __init__(self, address: str, identity: str) -> None:
        super().__init__(zmq.DEALER, 2000)
        self._socket.setsockopt(zmq.IDENTITY, identity.encode())
        self._socket.connect(address)

    @property
    def fd(self) -> int:
        """Readable on news; edge-triggered: read until None after each wake-up and after each send."""
        return int(self._socket.getsockopt(zmq.FD))

    def send(self, message: Message) -> None:
        with contextlib.suppress(zmq.Again):  # the parent is gone or swamped; counters are not worth waiting for
            self._socket.send(encode(message), zmq.DONTWAIT)

    def receive(self, wait_ms: int = 0) -> Message | None:
        if wait_ms and not self._socket.poll(wait_ms):
            return None
        with contextlib.suppress(zmq.Again):
            return decode(self._socket.recv(zmq.DONTWAIT))
        return None

    def parent_gone(self) -> None:
        """Nobody will read what is still to be sent: closing does not wait for it."""
        self._socket.setsockopt(zmq.LINGER, 0)

    def next_plan(self) -> Prepare | None:
        """Wait for the next plan, and send output where it belongs; None once the run needs this process no more."""
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(0, zmq.POLLIN)
        while (message := self.receive()) is None:
            if 0 in dict(poller.poll()) and not os.read(0, 4096):
                self.parent_gone()
                return None
        if not isinstance(message, Prepare):
            return None
        if message.log:
            sys.stderr.flush()
            with Path(message.log).open("ab") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
        return message


class Switchboard(_End):
    """The parent's end: one socket, children told apart by identity (``worker-0``).

    Raises:
        OSError: The address can't be used.
    """

    def __init__(self, address: str) -> None:
        super().__init__(zmq.ROUTER, 1000)
        # A process that takes the place of another may come before that one has gone.
        self._socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
        try:
            self._socket.bind(address)
        except zmq.ZMQError as error:
            self.close()
            raise OSError(error.errno, os.strerror(error.errno or 0)) from error
        self.address = self._socket.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")

    def send(self, to: str, message: Message) -> None:
        self._socket.send_multipart([to.encode(), encode(message)])

    def receive(self, wait_ms: int) -> Message | None:
        """The next message of any child; None if none comes within *wait_ms*."""
        return decode(self._socket.recv_multipart(zmq.DONTWAIT)[1]) if self._socket.poll(wait_ms) else None
