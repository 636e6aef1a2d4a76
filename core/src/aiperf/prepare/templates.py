"""Requests of plain texts: the endpoint encodes one, and the others' texts take its place in the bytes.

Only for endpoints that promise it (``Endpoint.splices_text``).  The promise is checked for the first text of each kind, and for
more and more seldom ones of the others.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from aiperf.errors import PluginError
from aiperf.sdk.model import Conversation, HttpRequest, Turn

_KINDS = 4096
"""Templates that are kept at once."""
_LESSONS = 64
"""Templates may be made that many times more often than used: where every turn is of another kind, they only cost."""
_NO_TURN = Turn()
_OTHER_TEXT = 'another text: "\u00e9\\\n'
_encode = msgspec.json.Encoder().encode


class BodyTemplate(Struct):
    """kind: a conversation of one turn, without id and text.  requests: by model, each with the bytes before and behind the
    text.  uses: how often it was used.  row: of its turn in the store; () where its conversations are stored one by one."""

    kind: Conversation
    requests: list[tuple[HttpRequest, bytes, bytes]]
    uses: int = 0
    row: tuple[int, ...] = ()

    def bodies(self, text: str) -> list[bytes]:
        """The bodies with this text."""
        self.uses += 1
        written = _encode(text)
        return [before + written + behind for _, before, behind in self.requests]

    def filled(self, text: str) -> list[HttpRequest]:
        """The requests with this text."""
        return [
            HttpRequest(like.path, body, like.headers, like.content_type, like.method, like.drain)
            for (like, _, _), body in zip(self.requests, self.bodies(text), strict=True)
        ]


class Templates:
    """Templates by kind of conversation; *author* is the endpoint, for messages."""

    def __init__(self, author: object) -> None:
        self._author = author
        self._by_length: dict[int | None, BodyTemplate] = {}
        self._learned = self._uses = 0

    def of(self, conversation: Conversation) -> tuple[Conversation | None, BodyTemplate | None]:
        """The kind of a conversation of one turn with one text, None for others; and its template where there is one."""
        turn = conversation.turns[0] if len(conversation.turns) == 1 else _NO_TURN
        plain = len(turn.texts) == 1 and turn.texts[0] and turn.payload is None and not turn.media
        if not plain or self._learned > _LESSONS + self._uses:
            return None, None
        kind = replace(conversation, id="", turns=(replace(turn, texts=("",), input_tokens=None),))
        template = self._by_length.get(turn.max_tokens)
        if template is None or template.kind != kind:
            return kind, None
        self._uses += 1
        return kind, template

    @staticmethod
    def other(conversation: Conversation) -> Conversation:
        """The conversation with another text."""
        return replace(conversation, turns=(replace(conversation.turns[0], texts=(_OTHER_TEXT,)),))

    def learn(
        self, kind: Conversation, text: str, requests: list[HttpRequest], others: list[HttpRequest]
    ) -> BodyTemplate | None:  # fmt: skip
        """Keep a template made of the requests with *text*, where one can be.  *others*: those with another text."""
        self._learned += 1
        written, pieces = _encode(text), []
        for request in requests:
            before, found, behind = request.body.partition(written)
            if not found or written in behind:
                return None
            pieces.append((request, before, behind))
        template = BodyTemplate(kind, pieces)
        if template.filled(_OTHER_TEXT) != others:  # the text stands elsewhere, too, or is a word of the envelope
            return None
        if len(self._by_length) == _KINDS:
            self._by_length.clear()
        self._by_length[kind.turns[0].max_tokens] = template
        return template

    def check(self, filled: list[HttpRequest], encoded: list[HttpRequest]) -> None:
        """
        Raises:
            PluginError: The endpoint breaks its promise.
        """
        if filled != encoded:
            raise PluginError(f"{self._author} promises splices_text, and encodes a text otherwise than in another's place")
