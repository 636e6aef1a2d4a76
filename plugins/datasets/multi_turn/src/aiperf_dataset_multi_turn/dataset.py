"""multi_turn: a file of conversations, whose later turns follow the server's answers."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from aiperf import Conversation, Turn
from aiperf.sdk.dataset import Promise
from aiperf_dataset_single_turn.dataset import CountedRows, Row, RowFile, Rows, shown, typed
from aiperf_rows.row_files import is_table, lines, row_of
from msgspec.structs import replace

from aiperf_dataset_multi_turn.options import MultiTurnOptions

_KNOWN = ("turns", "session_id", "type")
_HINT = ": fields of the body stand below the 'extra' of a turn"


class MultiTurn(RowFile[MultiTurnOptions]):
    """Rows of ``turns``; rows with the same ``session_id`` are one conversation."""

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        turns = first_row.get("turns") if isinstance(first_row, dict) else None
        return isinstance(turns, list) and bool(turns) and all(isinstance(turn, dict) for turn in turns)

    def promise(self) -> Promise | None:
        counted = self.counted()
        if counted is None:
            return None
        turns = array("q")

        def turns_of(number: int) -> int:
            if not turns:  # most runs don't ask
                turns.extend(self._turn_counts(counted))
            return turns[number]

        return replace(counted.promise(times=False), turns=turns_of)

    def _turn_counts(self, counted: CountedRows) -> array[int]:
        """By conversation, its turns without a system prompt before them.

        Raises:
            BadDataset: A row has no turns; the message gives path and line.
        """
        counts, system = array("q", bytes(8 * counted.count)), set[int]()
        for number, (roles, plain) in zip(counted.by_row(), _shapes(self.reader), strict=False):
            if counts[number] == 0 and plain and self.context.capabilities.system_message:
                system.add(number)
                following = roles[1:]
            else:
                following = roles
            if number in system and following:
                system.remove(number)
                counts[number] -= following[0] != "system"
            counts[number] += len(roles)
        return counts

    def conversation(self, number: int, identity: str | None, session: list[Row]) -> Conversation:
        turns = tuple(turn for line, row in session for turn in _turns(self.reader, row, line))
        system = None
        if self.context.capabilities.system_message and _is_system(turns):
            system, turns = turns[0].text, turns[1:]
        return self.defaults.conversation(number, identity, turns, system=system)


class _Said(msgspec.Struct):
    role: str | None = None


class _Shape(msgspec.Struct):
    turns: list[_Said]


_decode = msgspec.json.Decoder(_Shape).decode


def _shapes(reader: Rows) -> Iterator[tuple[list[str], bool]]:
    """By row, the roles of its turns, and whether the first is only a system prompt, whatever follows."""
    path = reader.path
    if is_table(path):
        yield from (_shape(reader, row, line) for line, row in typed(path))
        return
    for number, line in lines(path):
        try:
            roles = [turn.role or "user" for turn in _decode(line).turns]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            roles = []
        yield (roles, False) if roles and roles[0] != "system" else _shape(reader, row_of(path, number, line), number)


def _shape(reader: Rows, row: dict[str, Any], line: int) -> tuple[list[str], bool]:
    turns = tuple(_turns(reader, row, line))
    return [turn.role for turn in turns], turns[0] == _prompt(turns[0])


def _turns(reader: Rows, row: dict[str, Any], line: int) -> Iterator[Turn]:
    reader.tell_unknown(row, _KNOWN, line, _HINT)
    turns = row.get("turns")
    if not isinstance(turns, list) or not turns:
        raise reader.wrong(line, "turns must be a non-empty list")
    for index, turn in enumerate(turns):
        if not isinstance(turn, dict):
            raise reader.wrong(line, f"turn {index} is {shown(turn)}; it must be an object")
        yield reader.turn(turn, line, f"turn {index}")


def _is_system(turns: tuple[Turn, ...]) -> bool:
    """Whether the first turn is only a system prompt: plain text with role ``system``, before a turn of another role."""
    return turns[0] == _prompt(turns[0]) and len(turns) > 1 and turns[1].role != "system"


def _prompt(turn: Turn) -> Turn:
    return Turn(texts=turn.texts, role="system")


__all__ = ["MultiTurn"]
