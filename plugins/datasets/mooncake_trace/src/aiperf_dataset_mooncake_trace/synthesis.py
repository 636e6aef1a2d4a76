"""A trace from a trace: rows with other times, lengths and shared prefixes, for files and for runs.

The prefix of a row are its leading blocks that another row has, too; the rest is its own, and gets ids that no other row has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from aiperf import AiperfError
from aiperf.sdk.draws import uniform
from msgspec import Struct

Row = tuple[int, dict[str, Any]]
"""Line number, which is also what draws and new ids depend on, and a row with the keys of a Mooncake trace."""
_EXACT = 1 << 53
"""Numbers of JSON up to this are exact everywhere."""


class Scaling(Struct, frozen=True):
    """speedup: times are divided by it.  prefix_roots: number of trees of prefixes, of which each row goes to one.

    prefix_length, prompt_length, output_length: factors of shared prefixes, of the rest of prompts, and of answers.
    max_isl, max_osl: limits in tokens; None for none.
    """

    speedup: float = 1.0
    prefix_length: float = 1.0
    prefix_roots: int = 1
    prompt_length: float = 1.0
    output_length: float = 1.0
    max_isl: int | None = None
    max_osl: int | None = None

    @property
    def keeps_blocks(self) -> bool:
        return self.prefix_length == 1.0 and self.prompt_length == 1.0 and self.prefix_roots == 1

    def time(self, recorded: float) -> float:
        """The time or delay of a recorded one, in its unit: whole numbers as such, others to a millionth."""
        return recorded if self.speedup == 1.0 else _number(recorded / self.speedup)


class Synthesis:
    """Reads all rows once for what they share, where that matters; then gives each row's successor, in any order.

    read: the rows of the trace, each time from the first one.  session_of: what rows of one conversation have in common, None
    for a row of its own.  All rows of a session go to one tree, and a session ends before a row that is longer than max_isl.
    block_tokens: length of a block.  wrong: the error for a line.  dropped: how many rows are left out.  alone: how many rows
    with blocks have no session, where there are several trees.

    Raises:
        AiperfError: Of *read*; or no row is left.
    """

    def __init__(
        self, scaling: Scaling, read: Callable[[], Iterator[Row]], session_of: Callable[[dict[str, Any], int], str | None],
        block_tokens: int, seed: int, wrong: Callable[[int, str], AiperfError],
    ) -> None:  # fmt: skip
        self._scaling, self._read, self._session_of, self._size, self._seed = scaling, read, session_of, block_tokens, seed
        self._wrong, self.dropped, self.alone = wrong, 0, 0
        self._begins: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._shared: dict[int, int] = {}
        self._fresh = self._each = self._offset = 0
        if scaling.max_isl is not None or not scaling.keeps_blocks:
            self._survey()

    @property
    def torn(self) -> str | None:
        """A sentence on rows of which nothing says what belongs together; None where there are none."""
        if not self.alone:
            return None
        return (
            f"{self.alone:,} rows have no session_id: each goes to one of the {self._scaling.prefix_roots} trees by itself, so"
            " turns of one chat share less than in the trace; give the rows of a chat one session_id to keep them together"
        )

    def rows(self) -> Iterator[Row]:
        """The new rows, in the order of the old ones; those that are too long are left out."""
        for line, row in self._read():
            if self._kept(row, line):
                yield line, self.row(row, line)

    def row(self, row: dict[str, Any], line: int) -> dict[str, Any]:
        """The new row of one that is kept.  Its other keys stay as they are."""
        scaling = self._scaling
        new = dict(row)
        for key in ("timestamp", "delay"):
            if isinstance(row.get(key), int | float):
                new[key] = scaling.time(row[key])
        length = row.get("output_length")
        if length is not None:
            wanted = max(1, round(length * scaling.output_length)) if scaling.output_length != 1.0 else length
            new["output_length"] = wanted if scaling.max_osl is None else min(wanted, scaling.max_osl)
        if row.get("input_length") is not None:
            tokens, ids = self._prompt(row["input_length"], row.get("hash_ids") or [], row, line)
            limit = scaling.max_isl
            if limit is not None and tokens > limit:
                tokens, ids = limit, ids[: math.ceil(limit / self._size)]
            new["input_length"] = tokens
            if row.get("hash_ids") is not None:
                new["hash_ids"] = ids
        return new

    def _prompt(self, tokens: int, ids: list[int], row: dict[str, Any], line: int) -> tuple[int, list[int]]:
        """The new length and ids of a prompt."""
        scaling, size = self._scaling, self._size
        if scaling.keeps_blocks:
            return tokens, ids
        prefix = 0
        while prefix < len(ids) and ids[prefix] in self._shared:
            prefix += 1
        rest, cut = max(0, tokens - prefix * size), max(0, prefix * size - tokens)
        if cut >= size:
            why = f"input_length {tokens} is too short for {prefix} shared hash_ids of {size} tokens each"
            raise self._wrong(line, f"{why} (--block-size, in a run --isl-block-size, sets the number of tokens per id)")
        kept = self._stretched(ids[:prefix])
        own = int(rest * scaling.prompt_length)
        if not kept and not own:
            own = 1  # a prompt of nothing can't be sent
        length = len(kept) * size - (cut if kept else 0) + own
        if ids:
            first = self._fresh + line * self._each
            kept += range(first, first + math.ceil(own / size))
        tree = self._tree(row, line) * self._offset
        return length, [identity + tree for identity in kept] if tree else kept

    def _stretched(self, ids: list[int]) -> list[int]:
        """The new prefix: n blocks become n times the multiplier, rounded up where it is above 1, else down, to 1 at least.

        That holds for every beginning of the prefix, so that rows share what they shared, times the multiplier.  The first
        blocks alone would not do: of two chats behind one system prompt they may leave nothing but that.
        """
        factor = self._scaling.prefix_length
        copies = math.ceil(factor)
        stretched: list[int] = []
        for index, identity in enumerate(ids):
            until = math.ceil((index + 1) * factor) if factor > 1 else max(1, int((index + 1) * factor))
            first = self._shared[identity] * copies
            stretched += range(first, first + until - len(stretched))
        return stretched

    def _tree(self, row: dict[str, Any], line: int) -> int:
        roots, session = self._scaling.prefix_roots, self._session_of(row, line)
        key = line if session is None else self._begins[session]
        return min(int(uniform(self._seed, "synthesis.root", key) * roots), roots - 1)

    def _kept(self, row: dict[str, Any], line: int) -> bool:
        limit = self._scaling.max_isl
        if limit is None:
            return True
        session = self._session_of(row, line)
        if session is not None and self._ends.get(session, line + 1) <= line:
            return False
        return (row.get("input_length") or 0) <= limit

    def _survey(self) -> None:
        """What is shared, where sessions begin and end, and from where new ids are free."""
        seen: set[int] = set()
        shared: set[int] = set()
        longest = lines = 0
        limit = self._scaling.max_isl
        for line, row in self._read():
            session = self._session_of(row, line)
            tokens = row.get("input_length") or 0
            if session is not None:
                self._begins.setdefault(session, line)
                if limit is not None and tokens > limit:
                    self._ends.setdefault(session, line)
            if not self._kept(row, line):
                self.dropped += 1
                continue
            lines = max(lines, line)
            if self._scaling.keeps_blocks:
                continue
            ids = set(row.get("hash_ids") or ())
            self.alone += session is None and len(ids) > 0 and self._scaling.prefix_roots > 1
            shared |= ids & seen
            seen |= ids
            longest = max(longest, tokens)
        if self.dropped and not lines:
            raise self._wrong(self.dropped, f"no row is left: every prompt is longer than {limit} tokens")
        self._number(shared, longest, lines)

    def _number(self, shared: Iterable[int], longest: int, lines: int) -> None:
        """Ids stay as they are, unless multiplying makes them too great for JSON."""
        ordered = sorted(shared)
        copies, roots = math.ceil(self._scaling.prefix_length), self._scaling.prefix_roots
        self._each = math.ceil(max(1, longest * self._scaling.prompt_length) / self._size)
        fresh = (lines + 1) * self._each
        highest = (ordered[-1] + 1 if ordered else 0) * copies
        if (ordered and ordered[0] < 0) or (highest + fresh) * roots > _EXACT:
            self._shared = {identity: index for index, identity in enumerate(ordered)}
            highest = len(ordered) * copies
        else:
            self._shared = {identity: identity for identity in ordered}
        self._fresh, self._offset = highest, highest + fresh


def _number(value: float) -> float | int:
    """A whole number as such, others to a millionth."""
    rounded = round(value, 6)
    return int(rounded) if rounded == int(rounded) else rounded
