"""Rows of a benchmark's files, and the problems that are made of them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from aiperf import BadDataset
from msgspec import Struct

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SHOWN = 60
"""Characters of a wrong value in a message."""


class ProblemRow(Struct, frozen=True):
    """A row with its place (path and line, or path and number), for messages."""

    place: str
    values: dict[str, Any]

    def has(self, column: str) -> bool:
        """Whether the row has a value there."""
        return self.values.get(column) is not None

    def text(self, column: str, *, empty: bool = False) -> str:
        """A text; a whole number is one, too.  *empty*: it may be missing or "".

        Raises:
            BadDataset: It is none; the message has the place.
        """
        value = self.values.get(column)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and (value or empty):
            return value
        if value is None and empty:
            return ""
        raise self.wrong(column, "must be a text")

    def texts(self, column: str, least: int, most: int | None = None) -> list[str]:
        """A list of *least* to *most* texts (None: exactly *least*), or its JSON, as in a cell of CSV.

        Raises:
            BadDataset: It is none; the message has the place.
        """
        value, most = self.values.get(column), least if most is None else most
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                value = None
        if isinstance(value, list) and least <= len(value) <= most and all(isinstance(each, str) for each in value):
            return value
        many = f"{least}" if least == most else f"{least} to {most}"
        raise self.wrong(column, f"must be a list of {many} texts")

    def choice(self, column: str, count: int) -> int:
        """The index of one of *count* choices, from its letter or its index.

        Raises:
            BadDataset: It is neither; the message has the place.
        """
        value = self.values.get(column)
        if isinstance(value, str) and len(value.strip()) == 1 and value.strip() in LETTERS[:count]:
            return LETTERS.index(value.strip())
        if isinstance(value, str) and value.strip().isdigit():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count:
            return value
        raise self.wrong(column, f"must be an index, 0 to {count - 1}, or a letter, A to {LETTERS[count - 1]}")

    def wrong(self, column: str, rule: str) -> BadDataset:
        """The error of a column that breaks a rule."""
        if column not in self.values:
            held = ", ".join(self.values) or "none"
            return BadDataset(f"{self.place} has no column {column!r}, which {rule}", f"its columns: {held}")
        shown = repr(self.values[column])
        return BadDataset(f"{self.place}: {column} is {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}; it {rule}")


class Problem(Struct, frozen=True):
    """A problem that is asked.  number: of its row, from 0, among those of its split."""

    identity: str
    task: str
    number: int


def identified(name: str, problems: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Identity and task of problems, from task and content.  One has the same identity in every file and order.

    name: of the benchmark.  The second of two with one content has ``.2`` behind its identity.
    """
    seen: Counter[str] = Counter()
    for task, content in problems:
        digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        identity = f"{name}/{digest}" if task == name else f"{name}/{task}/{digest}"
        seen[identity] += 1
        yield (identity if seen[identity] == 1 else f"{identity}.{seen[identity]}"), task


def drawn(problems: Sequence[Problem], limit: int, seed: int) -> list[Problem]:
    """*limit* of the problems in their order, or all where there are no more.

    Tasks give the same number of problems, as far as they have them; the seed decides which problems, and which tasks give one
    more.
    """
    waiting: dict[str, list[Problem]] = {}
    for problem in problems:
        waiting.setdefault(problem.task, []).append(problem)
    order = _order(seed)
    for task in waiting:
        waiting[task].sort(key=lambda problem: order(problem.identity), reverse=True)
    tasks, taken = sorted(waiting, key=order), list[Problem]()
    while len(taken) < limit and tasks:
        for task in tasks[: limit - len(taken)]:
            taken.append(waiting[task].pop())
        tasks = [task for task in tasks if waiting[task]]
    return sorted(taken, key=lambda problem: problem.number)


def _order(seed: int) -> Callable[[str], bytes]:
    """A drawn place in an order, by name."""
    return lambda name: hashlib.sha256(f"{seed}|{name}".encode()).digest()
