"""Calls of gRPC, each a stream of HTTP/2: messages in, messages and a status out."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import msgspec
from aiperf_http2 import HeaderSet, Http2Stream
from aiperf_http2.grpc import CONTENT_TYPE, MessageError, MessageReader, encoded_message, timeout_ns

from aiperf_command_simulate.http1 import Request
from aiperf_command_simulate.talks import Talk, TalkRun
from aiperf_command_simulate.truth import CLIENT_GONE, EXPIRED

if TYPE_CHECKING:
    from aiperf_command_simulate.http2 import Multiplex

STATUSES = {
    400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 408: 4, 409: 10, 413: 8, 422: 3, 429: 8, 499: 1, 501: 12, 502: 14, 503: 14,
    504: 4,
}  # fmt: skip
"""Values of ``grpc-status`` that say what an HTTP status says; INTERNAL says the others."""
DEADLINE_EXCEEDED, UNIMPLEMENTED, INTERNAL = 4, 12, 13
"""Values of ``grpc-status``."""
OK = HeaderSet([("grpc-status", "0")])
_HEAD = HeaderSet([(":status", "200"), ("content-type", CONTENT_TYPE)])


class Call:
    """One call.  Its route decides when an answer begins: at each message, or when the client has sent all.

    Bodies of answers are framed messages.  A deadline of the client's ends the call on this side, too.
    """

    def __init__(self, session: Multiplex, stream: Http2Stream, request: Request) -> None:
        self.number = session.number
        self._session, self._stream, self._request = session, stream, request
        route = session.site.route_of(request.path)
        self._each = route is not None and route.each
        self._talk: TalkRun | None = TalkRun(self, route, request, session.site) if isinstance(route, Talk) else None
        self._reader = MessageReader()
        self._messages: deque[bytes] = deque()
        self._answering = self._begun = self._closed = self._over = False
        self._status: HeaderSet | None = OK
        self._timer: asyncio.TimerHandle | None = None
        if left_ns := timeout_ns(request.headers.get("grpc-timeout", "")):
            self._timer = asyncio.get_running_loop().call_later(left_ns / 1e9, self._expire)

    # What the session calls.

    def data(self, data: bytes, *, end: bool) -> None:
        try:
            messages = self._reader.feed(data) if data else []
        except MessageError as error:
            self.fail(INTERNAL, str(error))
            return
        self._closed = self._closed or end
        if self._talk is not None:
            for message in messages:
                self._talk.message(message, self._session.read_ns, self._session.read_wall_ns)
            if end:
                self._talk.half_close(self._session.read_ns, self._session.read_wall_ns)
            return
        self._messages += messages
        self._next()

    def lost(self, outcome: str = CLIENT_GONE) -> None:
        if self._over:
            return
        self._finish()
        if self._talk is not None:
            self._talk.lost(outcome)
        elif self._answering:
            self._answering = False
            self._session.site.lost(self, outcome)

    def _next(self) -> None:
        """Answer the next message, or all of them where the route takes them together."""
        while not self._answering and not self._over and (self._messages if self._each else self._closed):
            messages = (self._messages.popleft(),) if self._each else tuple(self._messages)
            self._answering = True
            self._session.site.answer(self, self._asked(messages))
        if self._each and self._closed and not self._answering and not self._over:
            self.close()

    def _asked(self, messages: tuple[bytes, ...]) -> Request:
        session = self._session
        return self._request.whole(messages[0] if messages else b"", session.read_ns, session.read_wall_ns, messages)

    # What the site calls.

    def respond(self, status: int, body: bytes, headers: dict[str, str] | None = None, kind: str = "application/json") -> None:
        kind = (headers or {}).get("Content-Type", kind)
        if kind.startswith("text/"):  # of something that speaks no gRPC
            self._plain(status, kind, body)
        elif status >= 400:
            self.fail(*_refusal(status, body))
        else:
            self.begin(status, headers or {})
            self.end(body)

    def begin(self, status: int, headers: dict[str, str], *, length: int | None = None, until_eof: bool = False) -> None:
        kind = headers.get("Content-Type", CONTENT_TYPE)
        if kind.startswith("text/"):
            self._status = None
        else:
            kind = CONTENT_TYPE  # a dialect has the type of its answers over HTTP
        encoding = headers.get("grpc-encoding")
        if encoding is not None or kind.startswith("text/"):
            fields = [(":status", "200"), ("content-type", kind)]
            self._open(HeaderSet(fields if encoding is None else [*fields, ("grpc-encoding", encoding)]))
        else:
            self._open()
        self._session.flush()

    def piece(self, data: bytes) -> None:
        self._session.http.send(self._stream, data)
        self._session.flush()

    def end(self, data: bytes = b"") -> None:
        if self._each and self._status is not None:
            self.piece(data)
            return
        if self._status is None:
            self._finish()
            self._session.http.send(self._stream, data, end=True)
        else:
            self._session.http.send(self._stream, data)
            self.close()
        self._session.flush()

    def release(self) -> None:
        self._answering = False
        if not self._over:
            self._next()

    def cut(self, *, reset: bool = False) -> None:
        self._answering = False
        self._finish()
        self._session.cut(self._stream, reset=reset)

    def omit_status(self) -> None:
        """End the call without ``grpc-status``."""
        self._status = None

    def close(self) -> None:
        """End the call with its good status."""
        self._open()
        self._finish()
        if self._status is None:
            self._session.http.send(self._stream, b"", end=True)
        else:
            self._session.http.finish(self._stream, self._status)
        self._session.flush()

    def fail(self, status: int, message: str) -> None:
        """End the call with a bad status; before anything else was sent it stands alone."""
        if self._over:
            return
        self._finish()
        fields = [("grpc-status", str(status)), ("grpc-message", encoded_message(message))]
        if self._begun:
            self._session.http.finish(self._stream, HeaderSet(fields))
        else:
            head = [(":status", "200"), ("content-type", CONTENT_TYPE), *fields]
            self._session.http.head(self._stream, HeaderSet(head), end=True)
        self._session.flush()

    def _open(self, fields: HeaderSet = _HEAD) -> None:
        if not self._begun:
            self._begun = True
            self._session.http.head(self._stream, fields)

    def _plain(self, status: int, kind: str, body: bytes) -> None:
        self._finish()
        self._session.http.head(self._stream, HeaderSet([(":status", str(status)), ("content-type", kind)]))
        self._session.http.send(self._stream, body, end=True)
        self._session.flush()

    def _finish(self) -> None:
        self._over = True
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        if self._over:
            return
        if self._talk is not None:
            self._talk.lost(EXPIRED)
        elif self._answering:
            self._answering = False
            self._session.site.lost(self, EXPIRED)
        self.fail(DEADLINE_EXCEEDED, "Deadline Exceeded")


def _refusal(status: int, body: bytes) -> tuple[int, str]:
    """The status and the message of a refusal; of a path that nobody serves, which is told in JSON, UNIMPLEMENTED."""
    if not body.startswith(b"{"):
        return STATUSES.get(status, INTERNAL), body.decode("utf-8", "replace")
    message = msgspec.json.decode(body)["error"]["message"]
    return UNIMPLEMENTED if status in (404, 405) else STATUSES.get(status, INTERNAL), str(message)
