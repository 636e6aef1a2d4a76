"""A session under way: one execution of a conversation."""

from __future__ import annotations

from aiperf.model import Message


class Session:
    """Where one session stands.  All its turns share entry, model, URL and id.

    *history* grows by what was asked and answered; *collect* takes the answer's bytes while a later turn needs them.
    """

    __slots__ = ("collect", "entry", "history", "id", "model", "number", "phase", "turn", "turns", "url")

    def __init__(self, phase: int, number: int, entry: int, turns: int, model: int, url: int, identity: str) -> None:
        self.phase = phase
        self.number = number
        self.entry = entry
        self.turns = turns
        self.model = model
        self.url = url
        self.id = identity
        self.turn = 0
        self.history: list[Message] = []
        self.collect: list[bytes] | None = [] if turns > 1 else None

    @property
    def last(self) -> bool:
        return self.turn + 1 >= self.turns
