"""multi_turn: a file of conversations, whose later turns follow the server's answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import Conversation, Turn
from aiperf.sdk.dataset import Promise
from aiperf_dataset_single_turn import Row, RowFile, Rows, shown
from msgspec.structs import replace

from aiperf_dataset_multi_turn.options import MultiTurnOptions


class MultiTurn(RowFile[MultiTurnOptions]):
    """Rows of ``turns``; rows with the same ``session_id`` are one conversation."""

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        turns = first_row.get("turns") if isinstance(first_row, dict) else None
        return isinstance(turns, list) and bool(turns) and all(isinstance(turn, dict) for turn in turns)

    def promise(self) -> Promise | None:
        counted = self.counted()
        return None if counted is None else replace(counted.promise(times=False), turns=None)

    def conversation(self, number: int, identity: str | None, session: list[Row]) -> Conversation:
        turns = tuple(turn for line, row in session for turn in _turns(self.reader, row, line))
        system = None
        if self.context.capabilities.system_message and _is_system(turns):
            system, turns = turns[0].text, turns[1:]
        return self.defaults.conversation(number, identity, turns, system=system)


def _turns(reader: Rows, row: dict[str, Any], line: int) -> Iterator[Turn]:
    turns = row.get("turns")
    if not isinstance(turns, list) or not turns:
        raise reader.wrong(line, "turns must be a non-empty list")
    for index, turn in enumerate(turns):
        if not isinstance(turn, dict):
            raise reader.wrong(line, f"turn {index} is {shown(turn)}; it must be an object")
        yield reader.turn(turn, line, f"turn {index}")


def _is_system(turns: tuple[Turn, ...]) -> bool:
    """Whether the first turn is only a system prompt: plain text with role ``system``, before a turn of another role."""
    first = turns[0]
    plain = Turn(texts=first.texts, role="system")
    return first == plain and len(turns) > 1 and turns[1].role != "system"


__all__ = ["MultiTurn"]
