"""The data that flows through a run: conversations and turns, requests, and pieces of answers.

All types are frozen msgspec structures and cheap to import, because workers use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

LENGTH_FIELDS = frozenset(("ignore_eos", "min_tokens"))
"""Body fields with which some servers hold an answer to the requested length."""


class Media(Struct, frozen=True, omit_defaults=True):
    """One image, audio clip or video.

    *kind* is ``image``, ``audio`` or ``video``; *value* a URL, a ``data:`` URI, or for audio ``format,base64``.
    """

    kind: str
    value: str
    uuid: str | None = None


class Message(Struct, frozen=True, omit_defaults=True):
    """One message of a chat."""

    role: str
    texts: tuple[str, ...] = ()
    media: tuple[Media, ...] = ()

    @property
    def text(self) -> str:
        """The text parts joined without a separator."""
        return self.texts[0] if len(self.texts) == 1 else "".join(self.texts)


class Turn(Struct, frozen=True, omit_defaults=True):
    """The content of one request.

    A data set writes the content; the kernel fills *model*, *stream*, *per_chunk_usage* and *history* before the endpoint
    encodes the turn.

    texts: text parts (several for batched embeddings).
    max_tokens: requested output length; None leaves it to the model.
    per_chunk_usage: each piece of a stream shall carry the token counts so far.
    delay_ms: think time after the previous answer; None is no delay.
    timestamp_ms: send time in a recorded trace; None outside traces.
    input_tokens: length of the texts in the run's tokenizer, where the data set knows it; None lets the kernel count.
    extra: fields merged over the top level of the request's body.
    payload: the whole body of the request; None lets the endpoint make it.
    expected: expected answer for the grader; None is not graded.  task: group of the turn, for results by task.
    history: earlier messages: system prompt, context, earlier turns and their live answers.
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
    payload: dict[str, Any] | None = None
    expected: str | None = None
    task: str | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole chat, this turn last."""
        return (*self.history, Message(self.role, self.texts, self.media))

    @property
    def text(self) -> str:
        return self.texts[0] if len(self.texts) == 1 else "".join(self.texts)


class Conversation(Struct, frozen=True, omit_defaults=True):
    """A data set's entry: an ordered list of turns, reusable any number of times.

    *system* and *context* become messages before the first turn; None adds none.  *alone*: each turn is sent without earlier
    turns and their answers.
    """

    id: str
    turns: tuple[Turn, ...]
    system: str | None = None
    context: str | None = None
    alone: bool = False

    @property
    def prelude(self) -> tuple[Message, ...]:
        """The messages before the first turn."""
        return tuple(
            Message(role, (text,)) for role, text in (("system", self.system), ("user", self.context)) if text is not None
        )


class HttpRequest(Struct, frozen=True):
    """A request: a path below the base URL, a body and the headers that the endpoint adds."""

    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    method: str = "POST"


class Delta(Struct, frozen=True, gc=False):
    """The decoded content of one event, or of a whole answer without streaming.

    text, reasoning, tool: new text, reasoning text, and tool call (name and arguments joined); "" is none.
    usage: the server's token counts, as sent.
    finish: reason for the end of generation, where the event has one.
    items: number of vectors, rankings, images or videos in this piece.
    extra: further numbers of the server for metrics (for example ``inference_time_s``).
    """

    text: str = ""
    reasoning: str = ""
    tool: str = ""
    usage: dict[str, Any] | None = None
    finish: str | None = None
    items: int = 0
    extra: dict[str, float] | None = None

    @property
    def content(self) -> bool:
        """Whether the piece has visible content: role-only, empty and usage-only pieces have none."""
        return bool(self.text or self.reasoning or self.tool or self.items)


class ErrorDetails(Struct, frozen=True, omit_defaults=True):
    """Why a request failed, in the shape of the exported files."""

    message: str
    type: str | None = None
    code: int | None = None
    cause: str | None = None


def join_url(base: str, path: str) -> str:
    """The URL of a request: *path* appended to *base*, without repeating its end.

    A base with the full path stays as it is, ``/v1`` is not doubled, and the base keeps its query.
    """
    head, mark, query = base.partition("?")
    head = head.rstrip("/")
    if path and not head.endswith(path):
        head += path[3:] if head.endswith("/v1") and path.startswith("/v1/") else path
    return head + mark + query


def names(words: Sequence[str]) -> str:
    """``a, b and c``, for messages."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "nothing"


__all__ = [
    "LENGTH_FIELDS", "Conversation", "Delta", "ErrorDetails", "HttpRequest", "Media", "Message", "Turn", "join_url",
    "names",
]  # fmt: skip
