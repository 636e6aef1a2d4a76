"""A stored conversation whose turns are read one by one: of a long one that takes a small part of the time."""

from __future__ import annotations

from msgspec import Raw, Struct
from msgspec.msgpack import Decoder

from aiperf.sdk.model import Answers, Conversation, Message, Turn
from aiperf.sdk.trees import Stream


class Outline(Struct, frozen=True):
    """The fields of a Conversation; *turns* as msgpack."""

    id: str
    turns: tuple[Raw, ...]
    system: str | None = None
    context: str | None = None
    alone: bool = False
    opening: tuple[Message, ...] = ()
    answers: Answers = Answers.LIVE
    streams: tuple[Stream, ...] = ()

    def turn(self, index: int) -> Turn:
        return _decode_turn(self.turns[index])

    def part(self, index: int) -> Conversation:
        """The conversation with one turn alone."""
        return self.of((self.turn(index),))

    def of(self, turns: tuple[Turn, ...]) -> Conversation:
        """The conversation with these turns alone, and no streams."""
        return Conversation(self.id, turns, self.system, self.context, self.alone, self.opening, self.answers)


decode_outline = Decoder(Outline).decode
_decode_turn = Decoder(Turn).decode
