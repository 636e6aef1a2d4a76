"""One request and its answer on a stream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import MOST_INTERIM, NO_STAMP, STREAMED, Exchange
from aiperf_http2 import Fields, HeaderList, HeadersReceived, Http2Stream
from aiperf_http2.grpc import (
    CONTENT_TYPE,
    PREFIX_BYTES,
    MessageError,
    MessageReader,
    decoded_message,
    framed,
    http_code,
    status_name,
    status_of_http,
)
from aiperf_transport_sockets.connection import PHRASES

if TYPE_CHECKING:
    from aiperf_transport_http2 import Http2Transport
    from aiperf_transport_http2.link import Link
    from aiperf_transport_http2.requests import Http2Head

_NOT_GRPC = ErrorDetails("the answer is not of gRPC, by its content type", type="InvalidGrpcAnswer")
_TAIL_BYTES = 64
"""The end of a stream that is kept, to see its end marker."""


class Call:
    """An exchange on its way.

    link, stream: what carries it, None while nothing does.  start: bytes written to the wire before its first.
    begun: a byte of its answer has come.  resent: it went to a second stream already.
    pieces: bytes of the answer in the current read.  tail: the last bytes of an event stream, as of *read_ns*.
    waiting: the timer of the next part, until *due_ns*.  part: number of parts written.
    """

    __slots__ = (
        "_expected", "_framed", "_interim", "_messages", "_whole", "begun", "due_ns", "exchange", "head", "link", "over",
        "part", "pieces", "read_ns", "resent", "sent_bytes", "start", "stream", "tail", "waiting",
    )  # fmt: skip

    def __init__(self, exchange: Exchange, head: Http2Head) -> None:
        self.exchange, self.head = exchange, head
        self.resent = self.over = False
        self.rewind()

    def rewind(self) -> None:
        """Begin from the first byte: no stream carries it."""
        self.link: Link | None = None
        self.stream: Http2Stream | None = None
        self.waiting: asyncio.TimerHandle | None = None
        self.begun = self._whole = self._framed = False
        self.start = self.part = self.due_ns = self.sent_bytes = self.read_ns = self._interim = 0
        self.pieces: list[bytes] = []
        self.tail = b""
        self._messages: MessageReader | None = None
        self._expected: int | None = None

    def next_part(self) -> tuple[bytes, bool]:
        """The next part of the body as it stands in DATA frames, and whether it is the last."""
        parts = self.head.parts
        size = parts[self.part][0]
        data = bytes(memoryview(self.exchange.body)[self.sent_bytes : self.sent_bytes + size])
        self.part += 1
        self.sent_bytes += size
        return framed(data) if self.head.grpc else data, self.part == len(parts)

    # Answers

    def headed(self, event: HeadersReceived, transport: Http2Transport, read_ns: int) -> ErrorDetails | None:
        """A head, or trailers; an error ends the exchange."""
        exchange, fields = self.exchange, event.fields
        self.begun = True
        if event.trailers:
            return self.trailed(fields, transport)
        status = int(fields[0][1])  # the first, as the connection has checked
        if status < 200:
            self._interim += 1
            too_many = self._interim > MOST_INTERIM
            return _not_http(f"more than {MOST_INTERIM} interim answers (1xx) before the one that counts") if too_many else None
        exchange.status, exchange.ack_ns = status, read_ns
        facts = fields.memo
        if not isinstance(facts, _Facts):
            facts = fields.memo = _Facts(fields)
        kind, encoded, self._expected = facts.kind, facts.encoded, facts.length
        calls = self._framed = self.head.grpc and kind.startswith(CONTENT_TYPE)
        if not calls and kind.startswith("text/event-stream"):
            exchange.flags |= STREAMED
        odd = not calls and (encoded or not (exchange.flags & STREAMED or "json" in kind))
        if odd or status >= 300 or transport.settings.keep_heads:
            reason = PHRASES.get(status, f"HTTP {status}")
            transport.sink.head(exchange, status, reason, [field for field in fields if field[0][0] != ":"])
        if event.end and self.head.grpc and (calls or status < 300):
            return self.trailed(HeaderList(fields[1:]), transport)  # trailers alone: they stand in the head
        return None

    def data(
        self, data: bytes, transport: Http2Transport, kernel_ns: int, read_ns: int, hidden: int
    ) -> ErrorDetails | None:  # fmt: skip
        """A piece of the body; an error ends the exchange.  *hidden*: of a message that it completes."""
        exchange, size = self.exchange, len(data)
        exchange.bytes_received += size
        if not kernel_ns and transport.stamping.on and not self.head.origin.base:
            exchange.flags |= NO_STAMP
        if self._framed:
            most = transport.most_message_bytes
            # As nearly all servers send them: a frame for each message.
            single = self._messages is None and PREFIX_BYTES <= size <= most and not data[0]
            if single and int.from_bytes(data[1:5], "big") == size - PREFIX_BYTES:
                transport.sink.message(exchange, data[5:], kernel_ns, read_ns, hidden)
            elif (error := self._divided(data, transport, (kernel_ns, read_ns, hidden))) is not None:
                return error
        elif data:
            self.pieces.append(data)
        if exchange.bytes_received > transport.settings.most_bytes and not exchange.shape.drains(exchange.status):
            return ErrorDetails(f"the answer is longer than {transport.settings.most_bytes:,} bytes", type="AnswerTooLong")
        return None

    def _divided(self, data: bytes, transport: Http2Transport, stamps: tuple[int, int, int]) -> ErrorDetails | None:
        """Hand on the messages that a piece completes."""
        if self._messages is None:
            self._messages = MessageReader(transport.most_message_bytes)
        try:
            for message in self._messages.feed(data):
                transport.sink.message(self.exchange, message, *stamps)
        except MessageError as error:
            return ErrorDetails(str(error), type="BadMessage")
        return None

    def flush(self, transport: Http2Transport, kernel_ns: int, read_ns: int, hidden: int) -> None:
        """Hand on what the current read has of the body: one chunk for one read."""
        pieces = self.pieces
        if pieces:
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces.clear()
            if self.exchange.flags & STREAMED:
                self.tail, self.read_ns = (self.tail + body)[-_TAIL_BYTES:], read_ns
            transport.sink.chunk(self.exchange, body, kernel_ns, read_ns, hidden)

    def trailed(self, fields: HeaderList, transport: Http2Transport) -> ErrorDetails | None:
        """Trailers; for gRPC the status of the call."""
        self._whole = True
        if not self.head.grpc:
            if fields:
                transport.sink.trailers(self.exchange, list(fields))
            return None
        status = fields.memo
        if not isinstance(status, _Status):
            status = fields.memo = _Status(fields)
        if status.fields:
            transport.sink.trailers(self.exchange, status.fields)
        if status.error is None and self._messages is not None and self._messages.cut:
            return ErrorDetails("the answer ends inside a message", type="BadMessage")
        if status.error is None and not self._framed and self.exchange.bytes_received and self.exchange.status < 300:
            return _NOT_GRPC
        return status.error

    def ended(self) -> ErrorDetails | None:
        """The stream has ended: what is wrong with the answer as a whole, apart from what its trailers say."""
        exchange = self.exchange
        if not self.head.grpc:
            expected = self._expected
            if expected is None or self.head.method == "HEAD" or expected == exchange.bytes_received:
                return None
            message = f"the answer has {exchange.bytes_received:,} bytes, and its Content-Length says {expected:,}"
            return ErrorDetails(message, type="InvalidHttpResponse")
        if self._whole or exchange.status >= 300:
            return None  # the status of HTTP says what is wrong
        if not self._framed:
            return _NOT_GRPC
        return _no_status("")


class _Facts:
    """Fields of an answer's head that count.  length: None where it isn't given."""

    __slots__ = ("encoded", "kind", "length")

    def __init__(self, fields: Fields) -> None:
        self.kind, self.encoded = "", False
        self.length: int | None = None
        for name, value in fields:
            if name == "content-type":
                self.kind = value.lower()
            elif name == "content-length" and value.isdigit():
                self.length = int(value)
            elif name == "content-encoding":
                self.encoded = True


class _Status:
    """Trailers of a call, and the error that they say."""

    __slots__ = ("error", "fields")

    def __init__(self, fields: Fields) -> None:
        self.fields = [(name, decoded_message(value) if name == "grpc-message" else value) for name, value in fields]
        trailers = dict(self.fields)
        text = trailers.get("grpc-status", "")
        self.error: ErrorDetails | None = None
        if not text.isascii() or not text.isdigit():
            self.error = _no_status(text)
        elif status := int(text):
            name = status_name(status)
            self.error = ErrorDetails(trailers.get("grpc-message") or name, type=name, code=http_code(status))


def _no_status(text: str) -> ErrorDetails:
    said = f"has the grpc-status {text!r}" if text else "ends without grpc-status"
    return ErrorDetails(f"the answer {said}", type="InvalidGrpcAnswer", code=http_code(status_of_http(200)))


def _not_http(reason: str) -> ErrorDetails:
    return ErrorDetails(f"not HTTP: {reason}", type="InvalidHttpResponse")
