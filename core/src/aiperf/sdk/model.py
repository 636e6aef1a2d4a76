"""The data that flows through a run: conversations and turns, requests, and pieces of answers.

All types are frozen msgspec structures and cheap to import, because workers use them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NoReturn

from msgspec import Struct, field, structs

from aiperf.redaction import scrubbed
from aiperf.sdk.trees import Stream, said_before

LENGTH_FIELDS = frozenset(("ignore_eos", "min_tokens"))
"""Body fields with which some servers hold an answer to the requested length."""


HIDDEN = "\0"
"""Reasoning of a ``Delta`` that the server keeps to itself: content at its instant, and no tokens."""


REFUSED = "refused"
"""A name in a ``Delta``'s ``extra``: its text is of a refusal, which the reasons of the request's end then name."""
REFUSAL = "refusal"
"""The reason that stands beside the server's where the answer is a refusal by its form alone."""


class _Empty(dict[str, Any]):
    """A dictionary that stays empty, so that all turns share one.  JSON and msgpack encoders take it for a dictionary."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this dictionary is shared by all turns and stays empty; make another one")

    __setitem__ = setdefault = update = __ior__ = _refuse


_EMPTY: Mapping[str, Any] = _Empty()
_SPOKEN = frozenset(("tools", "system", "instructions", "messages", "input", "inputs", "prompt", "query", "text_input"))
"""Fields of a body that count as its input."""
_IMAGE_PARTS = ("image_url", "input_image", "image")


class Media(Struct, frozen=True, omit_defaults=True):
    """One image, audio clip or video.

    *kind* is ``image``, ``audio`` or ``video``; *value* a URL, a ``data:`` URI, or for audio ``format,base64``.
    *seconds*: length of audio or video; None where the data set doesn't know it.
    """

    kind: str
    value: str
    uuid: str | None = None
    seconds: float | None = None


class Message(Struct, frozen=True, omit_defaults=True):
    """One message of a chat.

    item: the message as the API writes it (tool calls, ids, thinking blocks), which the endpoint sends as it is, in place of
    *texts* and *media*; None leaves the form to the endpoint.
    """

    role: str
    texts: tuple[str, ...] = ()
    media: tuple[Media, ...] = ()
    item: dict[str, Any] | None = None

    @classmethod
    def of(cls, item: dict[str, Any]) -> Message:
        """A message that is sent as it is: one of ``messages``, or an item of a Responses ``input``."""
        role = item.get("role")
        return cls(role if isinstance(role, str) else "", item=item)

    @property
    def text(self) -> str:
        """The text parts joined without a separator."""
        words = self.words
        return words[0] if len(words) == 1 else "".join(words)

    @property
    def words(self) -> tuple[str, ...]:
        """The text parts, those of *item* where there is one."""
        if self.item is None:
            return self.texts
        content = self.item.get("content")
        if isinstance(content, str):
            return (content,)
        texts = (part.get("text") for part in _parts(content))
        return tuple(text for text in texts if isinstance(text, str))

    @property
    def images(self) -> int:
        """Number of pictures, those of *item* where there is one."""
        if self.item is None:
            return sum(media.kind == "image" for media in self.media)
        return sum(part.get("type") in _IMAGE_PARTS for part in _parts(self.item.get("content")))


def _parts(content: Any) -> Iterable[dict[str, Any]]:
    return (part for part in content if isinstance(part, dict)) if isinstance(content, list | tuple) else ()


class Turn(Struct, frozen=True, omit_defaults=True):
    """The content of one request.

    A data set writes the content; the kernel fills *model*, *stream*, *per_chunk_usage*, *server_counts*, *history*, *state*,
    *run_extra*, *row_extra*, *path* (the typed ``--endpoint``, else None) and *scheme* before the endpoint encodes the turn.

    texts: text parts (several for batched embeddings).
    named: texts by the name of their field (``query``, ``passages``); they stand in *texts*, too, for endpoints without fields.
    items: the turn's messages, in place of the one made of *role*, *texts* and *media*; () adds none, None leaves that one.
    before: messages that join the history before this turn; the kernel puts those of silent turns here.
    tools: definitions of tools, as the API writes them; None keeps those of the turn before, () sends none.
    max_tokens: requested output length; None leaves it to the model.
    per_chunk_usage: each piece of a stream shall carry the token counts so far.
    server_counts: token counts are taken from the server's usage (``--use-server-token-count``).
    delay_ms: think time after the previous answer; None is no delay.
    timestamp_ms: send time in a recorded trace; None outside traces.
    recorded_ms: start and end of the request on the clock of its own trace, for the lanes of agentic replay; None where the
    data has none.
    source: where a record of the turn came from, by name (``source_trace_id``, ``source_outer_idx``, ``source_inner_idx``,
    ``source_kind``); None where nothing is told.
    input_tokens: length of the texts in the run's tokenizer, where the data set knows it; None lets the kernel count.
    extra: fields merged over the top level of the request's body.  When an endpoint encodes, *extra* has both the run's
    (``--extra-inputs`` over *settings*, alone in *run_extra*) and the data set's, which win (alone in *row_extra*).
    settings: fields of the body that yield to those of ``--extra-inputs``, by their names in chat completions (``temperature``,
    ``stop``, ``seed``); an endpoint's capability ``settings`` has its own names for them.
    payload: the whole body of the request, bytes or a JSON object, sent as it is; None lets the endpoint make it.
    blocks: hashes of the prompt's blocks, the first block first; equal hashes are equal text.
    prefix_blocks, prefix_hits: of a recorded prompt its number of blocks, and how many of them lead it and stood in an earlier
    one of the trace: what a cache without end would have; 0 blocks where none are recorded.
    silent: sends no request: its messages join the history of the next turn, and its *delay_ms* is added to that turn's.
    Behind a silent turn of role ``assistant`` see :class:`Answers`.
    reset: drops the turns and answers before this one from the history; opening messages stay.
    keeps: how many messages of the turns before this one stay in the history, from the first on, opening ones not counted; the
    others are dropped.  None keeps all.  Only where no live answers stand between them (``Conversation.answers``).
    expected: expected answer for the grader; None is not graded.  task: group of the turn, for results by task.
    ids, end_id: of endpoints that send token ids (``Capabilities.takes_ids``), the prompt's, made by the run's tokenizer in the
    build where the data set gives none, and that with which the model ends an answer, None where it isn't known.
    scheme: of the run's URLs, for endpoints with several (``Capabilities.schemes``); "" stands for the first of them.
    repeat: how often the same problem was asked before, by conversations of the same id; None where each is asked once.
    history: earlier messages: system prompt, context, earlier turns and their live answers.
    state: values of the answer before, from :meth:`aiperf.sdk.endpoint.Reader.state`; empty in a first turn, after a failure
    and in a conversation whose turns are sent alone.
    """

    texts: tuple[str, ...] = ()
    media: tuple[Media, ...] = ()
    role: str = "user"
    model: str = ""
    max_tokens: int | None = None
    stream: bool = False
    per_chunk_usage: bool = False
    delay_ms: float | None = None
    timestamp_ms: float | None = None
    input_tokens: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    history: tuple[Message, ...] = ()
    state: dict[str, Any] = field(default_factory=dict)
    payload: dict[str, Any] | bytes | None = None
    expected: str | None = None
    task: str | None = None
    named: Mapping[str, str | tuple[str, ...]] = _EMPTY
    items: tuple[Message, ...] | None = None
    before: tuple[Message, ...] = ()
    tools: tuple[dict[str, Any], ...] | None = None
    blocks: tuple[int, ...] = ()
    prefix_blocks: int = 0
    prefix_hits: int = 0
    silent: bool = False
    reset: bool = False
    run_extra: Mapping[str, Any] = _EMPTY
    row_extra: Mapping[str, Any] = _EMPTY
    server_counts: bool = False
    path: str | None = None
    settings: Mapping[str, Any] = _EMPTY
    repeat: int | None = None
    scheme: str = ""
    ids: tuple[int, ...] = ()
    end_id: int | None = None
    recorded_ms: tuple[float, float] | None = None
    source: dict[str, str | int] | None = None
    keeps: int | None = None

    @property
    def own(self) -> tuple[Message, ...]:
        """The messages of the turn itself."""
        return (Message(self.role, self.texts, self.media),) if self.items is None else self.items

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole chat, this turn last."""
        if self.items is None:  # own, without another call
            return (*self.history, Message(self.role, self.texts, self.media))
        return (*self.history, *self.items)

    @property
    def plain(self) -> bool:
        """Whether the chat's texts and media say everything: no tools, no verbatim message, no payload, no such extra field."""
        if self.tools is not None or self.payload is not None or self.items is not None or speaks(self.extra):
            return False
        for message in self.history:  # noqa: SIM110  # half the time of all()
            if message.item is not None:
                return False
        return True

    @property
    def text(self) -> str:
        return self.texts[0] if len(self.texts) == 1 else "".join(self.texts)

    def texts_of(self, *names: str) -> tuple[str, ...]:
        """The texts of the first of these fields that the turn has; () where it has none."""
        value = next((self.named[name] for name in names if name in self.named), ())
        return (value,) if isinstance(value, str) else tuple(value)


def speaks(extra: Mapping[str, Any]) -> bool:
    """Whether one of these fields of a body counts as its input."""
    return not _SPOKEN.isdisjoint(extra)


class Answers(StrEnum):
    """What stands in the history for the assistant's answers.

    live: the server's answers.  authored: the silent turns of role ``assistant``, answers of the data set; the server's are
    left out.  none: neither.  With ``live`` and ``none`` silent turns of role ``assistant`` are left out.
    """

    LIVE = "live"
    AUTHORED = "authored"
    NONE = "none"


class Conversation(Struct, frozen=True, omit_defaults=True):
    """A data set's entry: an ordered list of turns, reusable any number of times.

    *system*, *opening* (few-shot examples, a chat so far) and *context* become messages before the first turn, in this order;
    None adds none.  *alone*: each turn is sent without earlier turns and their answers.
    *streams*: those of a tree, whose turns stand in *turns* one stream behind the other (:mod:`aiperf.sdk.trees`); () for a
    conversation that starts no others.
    """

    id: str
    turns: tuple[Turn, ...]
    system: str | None = None
    context: str | None = None
    alone: bool = False
    opening: tuple[Message, ...] = ()
    answers: Answers = Answers.LIVE
    streams: tuple[Stream, ...] = ()

    @property
    def prelude(self) -> tuple[Message, ...]:
        """The messages before the first turn."""
        system = () if self.system is None else (Message("system", (self.system,)),)
        context = () if self.context is None else (Message("user", (self.context,)),)
        return (*system, *self.opening, *context)

    def messages(self, index: int) -> tuple[Message, ...]:
        """The chat that turn *index* sends, without live answers."""
        turns: Sequence[Turn] = self.turns[index if self.alone else 0 : index + 1]
        if self.streams and not self.alone:
            turns = [self.turns[at] for at in (*said_before(self.streams, index), index)]
        said: list[Message] = []
        for turn in turns:
            if turn.reset or turn.keeps is not None:
                del said[0 if turn.reset else turn.keeps :]
            said += (*turn.before, *turn.own)
        return (*self.prelude, *said)


class Part(Struct, frozen=True):
    """One message of a request that sends several.

    after_s: wait before it, in seconds, behind the one before; the first waits behind the request's head.
    """

    data: bytes
    after_s: float = 0.0


class HttpRequest(Struct, frozen=True):
    """A request: a path below the base URL, a body and the headers that the endpoint adds.

    drain: the bytes of a good answer (2xx) are counted and stamped, and neither held in memory nor journaled, for answers that
    are long and that nobody reads, such as films; ``Endpoint.drained`` says what they were.
    parts: messages that are sent one after the other, while the answer is read, for transports that can (``sends_parts``);
    *body* is then b"" or all of them joined, and nothing but them is sent.
    """

    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    method: str = "POST"
    drain: bool = False
    parts: tuple[Part, ...] = ()


class ToolCall(Struct, frozen=True, omit_defaults=True):
    """A call of a tool in an answer.

    id: "" where the server gives none.  arguments: their text as the server sent it, JSON as a rule; of an answer that was cut
    it may have no end.  Of a server that sends an object it is the object's JSON.
    """

    id: str = ""
    name: str = ""
    arguments: str = ""


class Delta(Struct, frozen=True, gc=False):
    """The decoded content of one event, or of a whole answer without streaming.

    text, reasoning, tool: new text, reasoning text, and tool call (name and arguments joined, for counting); "" is none.  The
    calls apart come from :meth:`aiperf.sdk.endpoint.Reader.tool_calls`.
    usage: the server's token counts, as sent; what can't be read as counts is counted, and not used.
    finish: reason for the end of generation, where the event has one, as sent.
    items: number of vectors, rankings, images or videos in this piece.
    extra: further numbers and texts of the answer, by name, for metrics: those that the endpoint's ``numbers`` and ``texts``
    declare, and REFUSED.
    """

    text: str = ""
    reasoning: str = ""
    tool: str = ""
    usage: dict[str, Any] | None = None
    finish: str | None = None
    items: int = 0
    extra: dict[str, Any] | None = None

    @property
    def content(self) -> bool:
        """Whether the piece has visible content: role-only, empty and usage-only pieces have none."""
        return bool(self.text or self.reasoning or self.tool or self.items)


LATER = "a later exchange"
"""The cause of a failure behind a good answer of the same request: of a poll, or of a file."""
STILL_COMING = "the answer was still coming"
"""The cause of a timeout that ended an answer between its bytes."""


class ErrorDetails(Struct, frozen=True, omit_defaults=True):
    """Why a request failed, in the shape of the exported files."""

    message: str
    type: str | None = None
    code: int | None = None
    cause: str | None = None

    def without(self, secrets: Sequence[str]) -> ErrorDetails:
        """The same without the exact *secrets*."""
        if not secrets:
            return self
        kind, cause = (text and scrubbed(text, secrets) for text in (self.type, self.cause))
        return ErrorDetails(scrubbed(self.message, secrets), kind, self.code, cause)


def joined(request: HttpRequest) -> HttpRequest:
    """The request, with the parts in its body where it has parts.

    Raises:
        ValueError: A wait before a part is negative or endless, or the body is something else.
    """
    if not request.parts:
        return request
    if any(not 0 <= part.after_s < math.inf for part in request.parts):
        raise ValueError("a part has an after_s below 0, or without end")
    body = b"".join(part.data for part in request.parts)
    if request.body not in (b"", body):
        raise ValueError("a request has parts, and a body that is not all of them joined")
    return structs.replace(request, body=body)


def join_url(base: str, path: str) -> str:
    """The URL of a request: *path* appended to *base*, without repeating its end.

    A base with the full path stays as it is, ``/v1`` is not doubled, and the base keeps its query.
    """
    head, mark, query = base.partition("?")
    head = head.rstrip("/")
    if path and not head.endswith(path):
        head += path[3:] if head.endswith("/v1") and path.startswith("/v1/") else path
    return head + mark + query


def http_urls(urls: Sequence[str]) -> tuple[str, ...]:
    """The URLs that are HTTP, also on a socket of this machine."""
    return tuple(url for url in urls if url.startswith(("http://", "https://", "unix://")))


def names(words: Sequence[str]) -> str:
    """``a, b and c``, for messages."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "nothing"


_PARAMETERS = ("sampling_params", "parameters")
"""Objects of a body that some dialects have for ``n`` and the like."""


def asks_several(body: object) -> bool:
    """Whether a body, or fields of one, asks for several answers: ``n``, also among its parameters, or a list of prompts."""
    if not isinstance(body, dict):
        return False
    prompts = body.get("prompt")
    if isinstance(prompts, list) and len(prompts) > 1 and not isinstance(prompts[0], int):  # numbers are tokens of one
        return True
    places = (body, *(inner for name in _PARAMETERS if isinstance(inner := body.get(name), dict)))
    return any(isinstance(choices := place.get("n"), int) and choices > 1 for place in places)


__all__ = [
    "HIDDEN", "LATER", "LENGTH_FIELDS", "REFUSAL", "REFUSED", "STILL_COMING", "Answers", "Conversation", "Delta",
    "ErrorDetails", "HttpRequest", "Media", "Message", "Part", "ToolCall", "Turn", "asks_several", "join_url", "names",
]  # fmt: skip
