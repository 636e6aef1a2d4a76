"""bailian_trace: recorded chats of a serving cluster, with times in seconds and ids of shared prompt blocks."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from aiperf import Conversation, Dataset, DatasetContext, Turn
from aiperf.sdk.dataset import Promise
from aiperf.sdk.trace import Trace, TraceRow
from aiperf_dataset_mooncake_trace.synthesis import Row
from aiperf_dataset_mooncake_trace.synthesis_options import synthesized
from aiperf_dataset_single_turn.dataset import Rows, grouped, in_order, noted, places, shown, typed
from aiperf_dataset_synthetic.blocks import PrefixHits, Prompts
from aiperf_dataset_synthetic.file import FileDefaults
from aiperf_rows.row_files import MOST_TIME

from aiperf_dataset_bailian_trace.options import BLOCK_TOKENS, BailianTraceOptions

_REQUIRED = ("chat_id", "timestamp", "input_length", "output_length")
_NO_PARENT = -1
"""``parent_chat_id`` of the first request of a conversation."""
_PREFIX = "\0prefix"
"""Key under which a row has its number of blocks and of hits."""
_KNOWN = (*_REQUIRED, "parent_chat_id", "turn", "type", "hash_ids", _PREFIX)


class BailianTrace(Dataset[BailianTraceOptions]):
    """Rows of a trace; rows with the same root are one conversation, in the order of ``turn``."""

    trace = True

    def __init__(self, options: BailianTraceOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._defaults = FileDefaults(options, context)
        self._chats: Chats | None = None

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return isinstance(first_row, dict) and all(key in first_row for key in _REQUIRED)

    @classmethod
    def recorded(cls, path: Path) -> Trace:
        return Trace(_recorded(Rows(path)), BLOCK_TOKENS)

    def promise(self) -> Promise | None:
        scaling = self.options.scaling
        if scaling is not None and scaling.max_isl is not None:  # it decides which rows there are
            return None
        self._chats = chats = Chats(Rows(self._defaults.path))
        time = float if scaling is None else scaling.time
        turn_times = (lambda number, turn: time(chats.second(number, turn)) * 1000.0) if self.context.replay else None
        return Promise(len(chats.sizes), chats.sizes.__getitem__, turn_timestamp_ms=turn_times)

    def __iter__(self) -> Iterator[Conversation]:
        reader, (writer, tokenizer) = Rows(self._defaults.path), self._defaults.measured()
        prompts = Prompts(writer, tokenizer, reader.path, self.options.block_size)
        chats, hits = self._chats or Chats(reader), PrefixHits()
        for number, session in self._sessions(reader, chats, hits):
            session.sort(key=lambda at: _whole(reader, at[1], "turn", at[0], 1))
            by_chat = {row["chat_id"]: row for _, row in session}
            parents = [by_chat.get(chats.parents[row["chat_id"]]) for _, row in session]
            alone = all(self._continues(reader, parents[at], row, line) for at, (line, row) in enumerate(session))
            turns = tuple(self._turn(reader, prompts, row, line, f"{number}.{at}") for at, (line, row) in enumerate(session))
            identity = chats.root(session[0][1], session[0][0])
            yield self._defaults.conversation(number, identity, turns, alone=alone and len(turns) > 1)
        writer.warn()

    def _sessions(self, reader: Rows, chats: Chats, hits: PrefixHits) -> Iterator[tuple[int, list[Row]]]:
        """Numbers and rows of the conversations, rows as the options scale them and with the hits of their prefixes."""
        size, checked = self.options.block_size, partial(_checked, reader)
        read = synthesized(self.options, self.context, checked, chats.root, size, reader.wrong) or partial(typed, reader.path)

        def note(row: dict[str, Any], line: int) -> None:
            row[_PREFIX] = hits.of(reader.hash_ids(row, line))

        if self.options.max_isl is not None:  # it leaves out rows
            yield from ((number, rows) for number, (_, rows) in enumerate(grouped(reader.path, chats.root, read, note)))
            return
        yield from in_order(noted(read(), note), chats.place, chats.sizes)

    def _continues(self, reader: Rows, parent: dict[str, Any] | None, row: dict[str, Any], line: int) -> bool:
        """Whether the row's prompt begins with the whole prompt of its parent; a partial last block may have another id."""
        if parent is None:
            return True
        ids, before = reader.hash_ids(row, line), reader.hash_ids(parent, line)
        whole = _length(reader, parent, "input_length", line) // self.options.block_size
        longer = _length(reader, row, "input_length", line) >= _length(reader, parent, "input_length", line)
        return bool(ids and before) and longer and ids[:whole] == before[:whole]

    def _turn(self, reader: Rows, prompts: Prompts, row: dict[str, Any], line: int, own: str) -> Turn:
        reader.tell_unknown(row, _KNOWN, line, "")
        timestamp = _timestamp_ms(reader, row, line)
        reader.string(row, "type", line)
        length = _length(reader, row, "input_length", line)
        prompt = prompts.prompt(length, reader.hash_ids(row, line), own, lambda why: reader.wrong(line, why))
        tokens = _length(reader, row, "output_length", line)
        blocks, hits = row[_PREFIX]
        return Turn(
            texts=(prompt.text,), max_tokens=tokens, timestamp_ms=timestamp, input_tokens=prompt.tokens,
            prefix_blocks=blocks, prefix_hits=hits,
        )  # fmt: skip


def _recorded(reader: Rows) -> Iterator[TraceRow]:
    """The rows of the file, in its order; a chat's session is its root."""
    chats = Chats(reader)
    for line, row in typed(reader.path):
        yield TraceRow(
            input_tokens=_length(reader, row, "input_length", line),
            output_tokens=_length(reader, row, "output_length", line),
            blocks=reader.hash_ids(row, line),
            timestamp_ms=_timestamp_ms(reader, row, line),
            session=chats.root(row, line),
        )


def _checked(reader: Rows) -> Iterator[Row]:
    for line, row in typed(reader.path):
        _length(reader, row, "input_length", line)
        _length(reader, row, "output_length", line)
        reader.hash_ids(row, line)
        _timestamp_ms(reader, row, line)
        yield line, row


def _timestamp_ms(reader: Rows, row: dict[str, Any], line: int) -> float:
    return _seconds(reader, row, line) * 1000.0


def _seconds(reader: Rows, row: dict[str, Any], line: int) -> float:
    seconds = row.get("timestamp")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= MOST_TIME:
        raise reader.wrong(line, f"timestamp is {shown(seconds)}; it must be a number of seconds, 0 or more")
    return seconds


class Chats:
    """What one pass over the rows tells of each.

    parents: the parent's id of each chat, in the order of the rows.  place, sizes: by row its conversation, and by conversation
    its number of rows.

    Raises:
        BadDataset: A row has no such ids, no time, or the id of another row.
    """

    def __init__(self, reader: Rows) -> None:
        self.parents: dict[int, int] = {}
        self._roots: dict[int, int] = {}
        self._seconds, self._turns = array("d"), list[int]()
        self._order: list[int] = []
        for line, row in typed(reader.path):
            chat, parent = _whole(reader, row, "chat_id", line), _whole(reader, row, "parent_chat_id", line, _NO_PARENT)
            if chat in self.parents:
                raise reader.wrong(line, f"chat_id is {chat}, which an earlier row has; each row has its own")
            self.parents[chat] = parent
            self._seconds.append(_seconds(reader, row, line))
            self._turns.append(_whole(reader, row, "turn", line, 1))
        self.place, self.sizes = places(_root(chat, self.parents, self._roots) for chat in self.parents)

    def root(self, row: dict[str, Any], _: int) -> str:
        """The id of the conversation that has the row."""
        return str(_root(row["chat_id"], self.parents, self._roots))

    def second(self, number: int, turn: int) -> float:
        """When a turn of conversation *number* was recorded."""
        if not self._order:
            self._order = sorted(range(len(self.place)), key=lambda row: (self.place[row], self._turns[row]))
            self._ends = array("q", accumulate(self.sizes))
        return self._seconds[self._order[self._ends[number] - self.sizes[number] + turn]]


def _root(chat: int, parents: dict[int, int], roots: dict[int, int]) -> int:
    """The first chat on the way from child to parent: its parent is unknown, or the way comes back to where it was.

    *roots*: those that are known, which the new ones join.
    """
    way: dict[int, None] = {}
    while chat not in roots and chat not in way:
        way[chat] = None
        if parents[chat] not in parents:
            break
        chat = parents[chat]
    # Every way into a cycle has the same root.
    cycle = list(way)[list(way).index(chat) :] if chat in way else []
    root = min(cycle) if cycle else roots[chat]
    roots.update(dict.fromkeys(way, root))
    return root


def _whole(reader: Rows, row: dict[str, Any], key: str, line: int, default: int | None = None) -> int:
    number = row.get(key, default)
    if isinstance(number, bool) or not isinstance(number, int):
        raise reader.wrong(line, f"{key} is {shown(number)}; it must be a whole number")
    return number


def _length(reader: Rows, row: dict[str, Any], key: str, line: int) -> int:
    length = reader.whole(row, key, line)
    if length is None:
        raise reader.wrong(line, f"the row has no {key}; it must be a number of tokens")
    return length


__all__ = ["BailianTrace"]
