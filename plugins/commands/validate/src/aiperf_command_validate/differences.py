"""Where two files differ that should have the same content."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf_rows.row_files import opened

_ABSENT = "nothing"
_SHOWN = 60
"""Characters of a value that a difference shows."""
_BOX = str.maketrans(dict.fromkeys("─━│┃┄┆┈┊┌┐└┘├┤┬┴┼┏┓┗┛┡┩╇╞╪╡╭╮╰╯═║╔╗╚╝╠╣╦╩╬", " "))

Difference = tuple[int | None, str]
"""A line, from 1 (None: the whole file), and what is different."""


def documents(ours: Any, expected: Any, path: str = "") -> Iterator[str]:
    """``path is X, not Y`` for each place where two JSON documents differ."""
    if isinstance(ours, dict) and isinstance(expected, dict):
        for key in [*expected, *(key for key in ours if key not in expected)]:
            yield from documents(ours.get(key, _ABSENT), expected.get(key, _ABSENT), f"{path}.{key}" if path else str(key))
    elif isinstance(ours, list) and isinstance(expected, list):
        if len(ours) != len(expected):
            yield f"{path or 'it'} has {len(ours):,} entries, not {len(expected):,}"
        for number, (one, other) in enumerate(zip(ours, expected, strict=False)):
            yield from documents(one, other, f"{path}[{number}]")
    elif not _same(ours, expected):
        yield f"{path or 'it'} is {_shown(ours)}, not {_shown(expected)}"


def _same(one: Any, other: Any) -> bool:
    if type(one) is float and type(other) in (int, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _shown(value: Any) -> str:
    text = value if value is _ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def lines(ours: Path, expected: Path) -> Iterator[Difference]:
    """Lines of JSON that differ, each with the first difference."""
    with opened(ours) as file, opened(expected) as other:
        for number, (line, wanted) in enumerate(itertools.zip_longest(file, other), 1):
            if line == wanted:
                continue
            if line is None or wanted is None:
                yield number, "is missing" if line is None else "is one too many"
                return
            try:
                difference = next(documents(json.loads(line), json.loads(wanted)), None)
            except ValueError:
                continue  # said before
            if difference is not None:
                yield number, difference


def tables(ours: Path, expected: Path) -> Iterator[Difference]:
    """Rows of CSV that differ."""
    with ours.open(newline="", errors="replace") as file, expected.open(newline="") as other:
        for number, (row, wanted) in enumerate(itertools.zip_longest(csv.reader(file), csv.reader(other)), 1):
            if row != wanted:
                yield number, f"is {_shown(row)}, not {_shown(wanted)}" if row is not None else "is missing"


def texts(ours: Path, expected: Path) -> Iterator[Difference]:
    """The first word that differs: lines are as wide as the terminal, which may be another."""
    words, wanted = (path.read_text(errors="replace").translate(_BOX).split() for path in (ours, expected))
    for number, (word, other) in enumerate(itertools.zip_longest(words, wanted, fillvalue=_ABSENT)):
        if word != other:
            before = " ".join(words[max(0, number - 3) : number])
            yield None, f"has {word!r} behind {before!r}, not {other!r}"
            return
