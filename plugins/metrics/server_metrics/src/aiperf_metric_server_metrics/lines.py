"""Lines of an exposition: which family they belong to, and the text before and behind the value."""

from __future__ import annotations

import re

_LABELS = r'\{(?:[^"}]++|"(?:[^"\\]++|\\.)*+")*+\}'
_SAMPLE = re.compile(rf'[ \t]*([^\s{{"]*)[ \t]*({_LABELS})?[ \t]*', re.DOTALL)
_ABOUT = re.compile(r'#[ \t]*(HELP|TYPE|UNIT)[ \t]+("(?:[^"\\]++|\\.)*+"|\S+)')
_QUOTED = re.compile(r'\{[ \t]*"((?:[^"\\]++|\\.)*+)"[ \t]*[,}]')
_SUFFIXES = frozenset(("", "_total", "_created", "_sum", "_count", "_bucket", "_gcount", "_gsum", "_info"))


class LineError(ValueError):
    """A line is no sample."""


def head_of(line: str) -> str:
    """The text before the value, the space behind it included.

    Raises:
        LineError: There is none.
    """
    found = _SAMPLE.match(line)
    if found is None or not (found[1] or found[2]) or found.end() == len(line) or line[found.end() - 1] not in " \t}":
        raise LineError(f"the line {shortened(line)} is no sample")
    return found[0]


def name_of(head: str) -> str:
    """The name before the labels, or the quoted one among them."""
    found = _SAMPLE.match(head)
    assert found is not None
    quoted = None if found[1] else _QUOTED.match(found[2])
    return found[1] if quoted is None else _unescaped(quoted[1])


def number(text: str) -> float:
    """A number as prometheus-client reads it.

    Raises:
        ValueError: It is none.
    """
    if "_" in text:  # Python takes it
        raise LineError(f"{text!r} is no number")
    return float(text)


def value_of(rest: str, *, openmetrics: bool) -> tuple[float, int | None]:
    """The value behind the head, and its time in ns since 1970 where it has one.

    Raises:
        ValueError: There is none.
    """
    try:
        return number(rest), None
    except ValueError:
        words = rest.partition(" # ")[0].split() if openmetrics else rest.split()
        if not 1 <= len(words) <= 2 or rest.startswith("#"):
            raise
        return number(words[0]), None if len(words) == 1 else _time_ns(words[1], 1_000_000_000 if openmetrics else 1_000_000)


def _time_ns(text: str, unit_ns: int) -> int:
    whole, _, part = text.partition(".")
    if not text.isascii() or not whole.lstrip("-").isdecimal() or not (part or "0").isdecimal():
        return round(number(text) * unit_ns)
    share = int(part or "0") * unit_ns // int("1" + "0" * len(part))  # in whole numbers: a float has no room for ns
    return int(whole) * unit_ns + (-share if whole.startswith("-") else share)


def split(lines: list[str]) -> list[tuple[str, int, int]]:
    """The blocks of lines that belong to one family: its name, and its first line and the one behind its last."""
    blocks: list[tuple[str, int, int]] = []
    name, first = "", 0
    for number, line in enumerate(lines):
        if line.startswith("#"):
            about = _ABOUT.match(line)
            if about is None:
                continue
            found = _unescaped(about[2][1:-1]) if about[2].startswith('"') else about[2]
            begins = found != name
        elif not line.strip():
            continue
        else:
            sample = _SAMPLE.match(line)
            found = line if sample is None else sample[1] or name_of(line)
            begins = not (found.startswith(name) and found[len(name) :] in _SUFFIXES) if name else True
        if begins:
            if name:
                blocks.append((name, first, number))
            name, first = found, number
    if name:
        blocks.append((name, first, len(lines)))
    return blocks


def shortened(line: str) -> str:
    """A line for a sentence."""
    return repr(line if len(line) <= 80 else f"{line[:77]}...")


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else str(found[1]), text)
