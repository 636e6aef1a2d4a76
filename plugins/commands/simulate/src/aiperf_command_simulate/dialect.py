"""The contract of a dialect: it reads requests, and writes answers down.  The modules of ``dialects`` have the dialects."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import msgspec
from msgspec import Struct

from aiperf_command_simulate.faults import LINE_ENDS, Faults
from aiperf_command_simulate.grpc_frames import GrpcFrames
from aiperf_command_simulate.http1 import Request

if TYPE_CHECKING:
    from aiperf_command_simulate.jobs import Jobs
    from aiperf_command_simulate.server import Server
    from aiperf_command_simulate.truth import Record

MEDIA_BYTES = 1024
"""A picture, clip or film counts as 256 prompt tokens, whatever its size."""
MOST_CHOICES = 128

to_json = msgspec.json.Encoder().encode
Body = TypeVar("Body")


class AskError(Exception):
    """The request makes no sense; the message is a sentence for the client, who gets it with *status*.

    over: tokens that prompt and answer are more than the context, 0 where they fit.
    """

    def __init__(self, message: str, *, status: int = 400, over: int = 0) -> None:
        super().__init__(message)
        self.status, self.over = status, over


class Ask(Struct, frozen=True, kw_only=True):
    """What a request asks for.

    prompts: one or several, as the bytes whose quarter is the token count.  choices: answers to each.
    max_tokens: None leaves the length to the server.  chat: the answer joins the prefix cache as a message.
    prefill_only: the answer has no tokens (vectors, scores): one piece, as soon as the prompts are computed.
    tool: name of a tool of the request, which the fault ``call`` calls.  own: whatever the dialect's writer needs to know.
    """

    model: str
    prompts: tuple[bytes, ...]
    stream: bool = False
    include_usage: bool = True
    continuous_usage: bool = False
    max_tokens: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    choices: int = 1
    chat: bool = False
    prefill_only: bool = False
    tool: str | None = None
    own: Any = None


class Usage(Struct, frozen=True):
    """Token counts of an answer so far; *reasoning* is a part of *completion*, *cached* one of *prompt*.

    drafts, timing: at its end, the accounts of its speculative decoding and of its times, for the dialects that have a place
    for them.
    """

    prompt: int
    completion: int
    cached: int = 0
    reasoning: int = 0
    drafts: dict[str, Any] | None = None
    timing: dict[str, float] | None = None

    def written(self) -> dict[str, Any]:
        """The form that OpenAI's older APIs write."""
        usage: dict[str, Any] = {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }
        if self.reasoning:
            usage["completion_tokens_details"] = {"reasoning_tokens": self.reasoning}
        return usage


class Piece(Struct, frozen=True):
    """A piece of one choice's answer, or all of it.  finish: the reason of its end, None if it goes on.

    call: a piece of the JSON arguments of a tool call, where the answer is one (the fault ``call``).
    made: tokens of the choice up to the end of the piece.
    """

    index: int
    text: str
    reasoning: str = ""
    finish: str | None = None
    call: str = ""
    made: int = 0


class EventWriter(Protocol):
    """Makes the events of a stream of JSON, as bytes."""

    def __call__(self, data: bytes, name: bytes = b"") -> bytes: ...

    def keep_alive(self) -> bytes:
        """Bytes that are no event; none without the fault ``comments``."""
        ...


class ServerSentEvents:
    """``data:`` lines, with the event's *name* before where it has one; line ends, names and comments as the faults say."""

    content_type = "text/event-stream; charset=utf-8"

    def __init__(self, lines: str, faults: Faults) -> None:
        self._ends = LINE_ENDS[lines]
        self._names, self._comments = faults.names, faults.comments
        self._events = 0

    def __call__(self, data: bytes, name: bytes = b"") -> bytes:
        before = self.keep_alive() if self._comments else b""
        line_end, blank_end = self._ends[self._events % len(self._ends)]
        self._events += 1
        named = b"event: %b%b" % (name, line_end) if name and self._names else b""
        return b"%b%bdata: %b%b%b" % (before, named, data, line_end, blank_end)

    def keep_alive(self) -> bytes:
        line_end, blank_end = self._ends[self._events % len(self._ends)]
        return b": keep-alive%b%b" % (line_end, blank_end) if self._comments else b""


class Lines:
    """NDJSON: a line for each event, whatever its name; an empty line keeps it alive."""

    content_type = "application/x-ndjson"

    def __init__(self, lines: str, faults: Faults) -> None:
        self._end = b"\r\n" if lines == "crlf" else b"\n"
        self._comments = faults.comments

    def __call__(self, data: bytes, name: bytes = b"") -> bytes:
        return self.keep_alive() + data + self._end

    def keep_alive(self) -> bytes:
        return self._end if self._comments else b""


class RawBytes:
    """No events: the bytes as they are, of whatever type the writer says."""

    content_type = "application/octet-stream"

    def __init__(self, lines: str, faults: Faults) -> None:
        pass

    def __call__(self, data: bytes, name: bytes = b"") -> bytes:
        return data

    def keep_alive(self) -> bytes:
        return b""


class Opened(Struct, frozen=True):
    """What a writer is told of the answer that it writes.

    number: of the request, from 1.  call: name of the tool that the answer calls, None writes text alone.
    frame: makes events of a stream.  record: the request's row of the truth.  jobs: of the server.
    """

    number: int
    created_s: int
    model: str
    ask: Ask
    faults: Faults
    frame: EventWriter
    record: Record
    jobs: Jobs
    call: str | None = None


class Writer:
    """Writes one answer down: a stream (all methods but ``whole``, which return framed events), or a whole answer.

    content_type: of a stream, None is that of its framing.  whole_type: of a whole answer.
    """

    content_type: str | None = None
    whole_type = "application/json"

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.frame = opened.frame

    def begin(self, prompt_tokens: int) -> bytes:
        """What a stream has right behind its headers, before anything was computed."""
        return b""

    def opening(self, index: int) -> bytes:
        """What stands before the first piece of a choice."""
        return b""

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        """A piece of a choice; *usage* where the request asked for it with every piece."""
        raise NotImplementedError

    def closing(self, usage: Usage | None) -> bytes:
        """What stands behind the last piece; *usage* is None where the request didn't ask for it."""
        return b""

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        """The answer without streaming: a piece for each choice, of each prompt where nothing is generated."""
        raise NotImplementedError


class Dialect:
    """One API, at one path or several.  A subclass sets the class's attributes and defines ``read`` and ``writer``.

    paths: ``{name}`` in one stands for any segment, in ``Request.variables``.  reasons: answers may begin with reasoning.
    done: data behind the last event, None for none.  framing: of streams.
    each: a call is answered message by message.  said_in_stream: kinds of errors that a call says in its stream, as ``error``
    has them, and not by its status.  in_band: answers that aren't streamed may say an error with a good status.
    """

    paths: ClassVar[tuple[str, ...]]
    reasons: ClassVar[bool] = False
    done: ClassVar[bytes | None] = b"[DONE]"
    framing: ClassVar[type[ServerSentEvents] | type[Lines] | type[GrpcFrames] | type[RawBytes]] = ServerSentEvents
    each: ClassVar[bool] = False
    said_in_stream: ClassVar[frozenset[str]] = frozenset()
    in_band: ClassVar[bool] = True

    def claims(self, request: Request) -> bool:
        """Whether the request is of this dialect, where several share a path.  Those that override it are asked first."""
        return True

    def read(self, request: Request) -> Ask:
        """What the request asks for.

        Raises:
            AskError: It can't be read, or asks for something impossible.
        """
        raise NotImplementedError

    def writer(self, opened: Opened) -> Writer:
        raise NotImplementedError

    def refusal(self, message: str, kind: str, status: int) -> bytes:
        """The body of a refusal; of a call its message."""
        return self.error(message, kind, status)

    def error(self, message: str, kind: str, status: int) -> bytes:
        """An error as JSON, for a body and for an event."""
        return to_json({"error": {"message": message, "type": kind, "code": status}})


class Reply(Struct, frozen=True):
    """The answer of a page.

    pieces: of a long body of *length* bytes, in place of *body*; where they are fewer, the connection is closed behind them.
    """

    status: int = 200
    body: bytes = b"{}"
    content_type: str = "application/json"
    pieces: Iterator[bytes] | None = None
    length: int = 0


class Page:
    """Anything but an inference: an answer at once, without the engine.  recorded: it is a row of the truth."""

    method: ClassVar[str] = "GET"
    paths: ClassVar[tuple[str, ...]]
    recorded: ClassVar[bool] = False
    each: ClassVar[bool] = False

    def answer(self, request: Request, server: Server) -> Reply:
        raise NotImplementedError


# What dialects share.


def decoded(read: msgspec.json.Decoder[Body], request: Request, what: str) -> Body:
    """The body of the request.

    Raises:
        AskError: It is none; *what* names what it should be.
    """
    try:
        return read.decode(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise AskError(f"the body is no {what}: {exc}") from exc


def part_bytes(part: Mapping[str, Any]) -> bytes:
    """A part of a message as prompt bytes; equal media are equal bytes."""
    text = part.get("text")
    if isinstance(text, str):
        return text.encode()
    digest = hashlib.blake2b(to_json(part)).digest()
    return digest * (MEDIA_BYTES // len(digest))


def content_bytes(content: str | Sequence[Mapping[str, Any]] | None) -> bytes:
    """The content of a message as prompt bytes."""
    return content.encode() if isinstance(content, str) else b"".join(map(part_bytes, content or ()))


def chat_line(role: str, content: bytes) -> bytes:
    """One message as prompt bytes, as a chat template would write it."""
    return b"%b\n%b\n" % (role.encode(), content)


def id_bytes(ids: Sequence[int]) -> bytes:
    """Token ids as prompt bytes, four each, so that one id counts as one token."""
    try:
        return b"".join(one.to_bytes(4, "little") for one in ids)
    except (OverflowError, AttributeError) as exc:
        raise AskError("prompt holds a number that is no token id") from exc


def check_lengths(ask: Ask) -> Ask:
    """The same.

    Raises:
        AskError: Its lengths or its number of answers are impossible.
    """
    if ask.max_tokens is not None and ask.max_tokens < 1:
        raise AskError(f"max_tokens is {ask.max_tokens}; at least 1 token can be made")
    if not 1 <= ask.choices * len(ask.prompts) <= MOST_CHOICES:
        counts = f"{ask.choices} answers to each of {len(ask.prompts)} prompts"
        raise AskError(f"{counts}; 1 to {MOST_CHOICES} in all can be made")
    if ask.max_tokens is not None and ask.min_tokens > ask.max_tokens:
        raise AskError(f"min_tokens is {ask.min_tokens}, which is more than max_tokens, {ask.max_tokens}")
    return ask
