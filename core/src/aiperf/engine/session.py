"""A session under way: one execution of a conversation."""

from __future__ import annotations

from collections.abc import Callable

from aiperf.model import Message


class Session:
    """Where one session stands.  All its turns share entry, model, URL and id.

    *turns*: how many it makes, at most its conversation's.  *history* grows by what was asked and answered.  *listen* gets the
    answer's bytes while somebody needs them; *collected* are those that a later turn needs.  *prefilling*: its request holds a
    right to wait for a first token.  *first* and *base_ns* are the sessions driver's: the number of its first arrival, and when
    its last turn was to leave.
    """

    __slots__ = (
        "base_ns", "collected", "entry", "first", "history", "id", "listen", "model", "number", "phase", "prefilling", "turn",
        "turns", "url",
    )  # fmt: skip

    def __init__(self, phase: int, number: int, entry: int, turns: int, model: int, url: int, identity: str) -> None:
        self.phase = phase
        self.number = number
        self.entry = entry
        self.turns = turns
        self.model = model
        self.url = url
        self.id = identity
        self.turn = self.first = self.base_ns = 0
        self.prefilling = False
        self.history: list[Message] = []
        self.collected: list[bytes] = []
        self.listen: Callable[[bytes], None] | None = None

    @property
    def last(self) -> bool:
        return self.turn + 1 >= self.turns
