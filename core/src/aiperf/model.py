"""What flows through a run: what is asked, the bytes out, and the pieces back.

Everything here is a frozen msgspec structure and cheap to import: workers use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

LENGTH_FIELDS = frozenset(("ignore_eos", "min_tokens"))
"""Fields of a body by which servers that know them keep an answer to the length that was asked for."""


class Media(Struct, frozen=True, omit_defaults=True):
    """One image, audio clip or video.

    *kind* is ``image``, ``audio`` or ``video``; *value* a URL, a ``data:`` URI, or for audio ``format,base64``.
    """

    kind: str
    value: str
    uuid: str | None = None


class Message(Struct, frozen=True, omit_defaults=True):
    """One message of a chat: what a role said."""

    role: str
    texts: tuple[str, ...] = ()
    media: tuple[Media, ...] = ()

    @property
    def text(self) -> str:
        """The message as one string, parts joined by nothing."""
        return self.texts[0] if len(self.texts) == 1 else "".join(self.texts)


class Turn(Struct, frozen=True, omit_defaults=True):
    """What one request asks.

    A dataset writes the turn's own content; the kernel fills *model*, *stream*, *per_chunk_usage* and *history* before the
    endpoint encodes it.

    texts: the turn's text parts (several for batched embeddings).
    max_tokens: asked output length; None leaves it to the model.
    per_chunk_usage: a stream's pieces shall each come with the token counts so far.
    delay_ms: think time after the previous answer; None is none.
    timestamp_ms: when a recorded trace sent it; None outside traces.
    input_tokens: length of the texts in the run's tokenizer, if the dataset knows it; else the kernel counts.
    extra: merged over the top level of the request's body.
    payload: the request's whole body as it is, instead of what the endpoint would make of the turn.
    expected: what a grader compares the answer with; None where there is nothing to grade.  task: what it belongs to, for
    results task by task.
    history: what stands before: system prompt, context, earlier turns and their live answers.
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

    *system* and *context* become messages before the first turn; None is none.  *alone*: each turn is sent by itself, without
    those before it and their answers.
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
    """Bytes out: a path below the base URL, a body and what headers only the endpoint knows."""

    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    method: str = "POST"


class Delta(Struct, frozen=True, gc=False):
    """What an endpoint makes of one event, or of a whole answer that does not stream.

    text, reasoning, tool: what was said, thought, or called (name and arguments joined); "" is nothing.
    usage: the server's own token counts, as sent.
    finish: why generation ended, where this event says so.
    items: vectors, rankings, images or videos in this piece, for endpoints that produce those.
    extra: numbers the server gave that a metric may want (``inference_time_s`` and the like).
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
        """Whether a person would see anything: role-only, empty and usage-only pieces are not content."""
        return bool(self.text or self.reasoning or self.tool or self.items)


class ErrorDetails(Struct, frozen=True, omit_defaults=True):
    """Why a request failed, in the shape of the exported files."""

    message: str
    type: str | None = None
    code: int | None = None
    cause: str | None = None


def join_url(base: str, path: str) -> str:
    """The URL a request goes to: *path* appended to *base* without repeating what *base* already ends with.

    A base with the full path is left alone, ``/v1`` is not doubled, and the base's query survives.
    """
    head, mark, query = base.partition("?")
    head = head.rstrip("/")
    if path and not head.endswith(path):
        head += path[3:] if head.endswith("/v1") and path.startswith("/v1/") else path
    return head + mark + query


def names(words: Sequence[str]) -> str:
    """``a, b and c``, for messages."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "nothing"
