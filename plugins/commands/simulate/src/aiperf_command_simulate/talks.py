"""Calls that are answered at once, without the engine: a row of the truth for each call, however many messages it has."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from aiperf_command_simulate.faults import FaultError, Faults
from aiperf_command_simulate.grpc_frames import GrpcFrames
from aiperf_command_simulate.http1 import Request, Site
from aiperf_command_simulate.truth import COMPLETED, CUT, ERROR_SAID, FAILED, IN_FLIGHT, REFUSED, RESET, Record

if TYPE_CHECKING:
    from aiperf_command_simulate.calls import Call


class Talk:
    """A method of a service.  A subclass defines what it answers."""

    paths: ClassVar[tuple[str, ...]]
    each: ClassVar[bool] = True

    def message(self, message: bytes) -> Sequence[bytes]:
        """Answers to a message, as soon as it is here.

        Raises:
            ValueError: The message can't be read; the text is for the client.
        """
        return ()

    def end(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """Answers when the client has sent all *messages*.

        Raises:
            ValueError: As ``message``.
        """
        return ()


class TalkRun:
    """One call of a Talk.  Faults that count chunks count answers."""

    def __init__(self, call: Call, talk: Talk, request: Request, server: Site) -> None:
        self._call, self._talk, self._request, self._server = call, talk, request, server
        self._messages: list[bytes] = []
        self._record: Record | None = None
        self._faults = Faults()
        self._frame = GrpcFrames("", Faults())
        self._waiting: list[bytes] = []
        self._late = self._closed = False

    @property
    def over(self) -> bool:
        return self._record is not None and self._record.outcome != IN_FLIGHT

    def message(self, message: bytes, read_ns: int, wall_ns: int) -> None:
        self._begin(read_ns, wall_ns)
        self._messages.append(message)
        self._answer(lambda: self._talk.message(message))

    def half_close(self, read_ns: int, wall_ns: int) -> None:
        self._begin(read_ns, wall_ns)
        self._closed = True
        self._answer(lambda: self._talk.end(self._messages))

    def lost(self, outcome: str) -> None:
        if self._record is not None and not self.over:
            self._end(outcome)

    def _begin(self, read_ns: int, wall_ns: int) -> None:
        """A row of the truth for the call, at its first message."""
        if self._record is not None:
            return
        request, server = self._request, self._server
        names = request.headers.get("x-request-id"), request.headers.get("x-correlation-id")
        record = self._record = server.truth.begin(self._call.number, request.path, read_ns, wall_ns, *names)
        record.stream = True
        try:
            faults = self._faults = server.faults_of(request, record)
        except FaultError as error:
            self._fail(400, str(error))
            return
        self._frame = GrpcFrames("", faults)
        if faults.slow_first_ns:
            self._late = True
            asyncio.get_running_loop().call_later(faults.slow_first_ns / 1e9, self._wake)
        elif faults.status is not None:
            self._fail(faults.status, faults.refusal)
        if not faults.done:
            self._call.omit_status()

    def _wake(self) -> None:
        self._late = False
        if self.over:
            return
        if self._faults.status is not None:
            self._fail(self._faults.status, self._faults.refusal)
            return
        waiting, self._waiting = self._waiting, []
        self._say(waiting)

    def _answer(self, answers: Callable[[], Sequence[bytes]]) -> None:
        if self.over or self._faults.silent:
            return
        try:
            made = [*answers()]
        except ValueError as error:
            self._fail(400, str(error))
            return
        if self._late:
            self._waiting += made
        else:
            self._say(made)

    def _say(self, answers: list[bytes]) -> None:
        record, faults = self._record, self._faults
        assert record is not None
        for answer in answers:
            now = time.monotonic_ns()
            record.status = 200
            record.chunks += 1
            record.last_mono_ns, record.last_wall_ns = now, time.time_ns()
            if record.first_mono_ns is None:
                record.first_mono_ns, record.first_wall_ns = now, record.last_wall_ns
                headers = {} if faults.compressed is None else {"grpc-encoding": faults.compressed}
                self._call.begin(200, headers)
            self._call.piece(self._frame(answer))
            if record.chunks in (faults.cut, faults.reset):
                self._end(CUT if record.chunks == faults.cut else RESET)
                self._call.cut(reset=record.chunks != faults.cut)
                return
            if record.chunks in (faults.error, faults.error_event):
                self._end(ERROR_SAID)
                self._call.fail(13, "the simulator was told to fail here")
                return
        if self._closed:
            self._end(COMPLETED)
            self._call.close()

    def _fail(self, status: int, message: str) -> None:
        assert self._record is not None
        self._record.status = status
        self._end(REFUSED if status < 500 else FAILED)
        self._call.respond(status, message.encode())

    def _end(self, outcome: str) -> None:
        assert self._record is not None
        self._server.truth.end(self._record, outcome, time.monotonic_ns())
