"""HTML of texts, numbers and tables: whatever a run's files hold, it is shown as text, and without secrets."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from aiperf.sdk.redaction import redact
from msgspec import Struct

_MOST_CHARACTERS = 4000
"""Of a text on the page."""


_PORTRAIT, _BROKEN = 130, 20
"""Characters of a line on paper in small letters, and of a text in a cell of it."""
_MANY = 8
"""Rows of a wide table from which landscape pages are worth a break before and behind it."""
_LONG = 60
"""Characters of a text that gets a wide column."""


class Change(Struct, frozen=True):
    """A number of a run beside the same one of the baseline; None where one of them is unknown."""

    value: float | None
    base: float | None


Cell: TypeAlias = str | float | Change | None
"""What a table shows: a text, a number, one with its difference to the baseline, or nothing."""


def escaped(text: object) -> str:
    """*text* for HTML: characters that steer a terminal or turn the direction of text are blanks, secrets are redacted."""
    words = redact(_steady(str(text)))
    return html.escape(words if len(words) <= _MOST_CHARACTERS else f"{words[:_MOST_CHARACTERS]}…")


def _steady(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in "\n\t\u00a0\u3000" else " " for letter in text)


def number(value: float | None) -> str:
    """A number for people: whole ones whole, others with six digits, thousands apart; a dash for none."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    size = abs(value)
    if size >= 1e9 or size < 1e-4:
        return f"{value:.5e}"
    digits = max(0, 5 - math.floor(math.log10(size)))
    shown = f"{value:,.{digits}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def change(value: float | None, base: float | None) -> str:
    """The difference in percent of the baseline; "" where there is none to tell."""
    if value is None or base is None or not base or not (math.isfinite(value) and math.isfinite(base)):
        return ""
    percent = (value / base - 1) * 100 if base > 0 else (1 - value / base) * 100
    return f"{percent:+,.1f} %" if abs(percent) < 1e5 else f"× {value / base:,.0f}"


def cell(value: Cell) -> str:
    """A cell of a table."""
    if isinstance(value, str):
        return f'<td class="text{" long" if len(value) > _LONG else ""}">{escaped(value)}</td>'
    if isinstance(value, Change):
        told = change(value.value, value.base)
        return f"<td>{number(value.value)}{f' <small>{told}</small>' if told else ''}</td>"
    return f"<td>{number(value)}</td>"


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[Cell]], *, wide: bool = False) -> str:
    """A table; "" without rows.  The first column is text.

    *wide*: it has many columns: small letters where it is printed, and landscape pages of its own where it has many rows.
    """
    if not rows:
        return ""
    texts = [all(isinstance(row[at], str) or row[at] is None for row in rows) for at in range(len(head))]
    names = "".join(
        f'<th scope="col"{" class=text" if text else ""}>{escaped(name)}</th>' for name, text in zip(head, texts, strict=True)
    )
    lines = "\n".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    label = f'role="region" tabindex="0" aria-label="{escaped(caption)}, table"'
    landscape = len(rows) > _MANY or _characters(head, rows, texts) > _PORTRAIT
    kind = "scroll" if not wide else "scroll wide" if landscape else "scroll small"
    title = f"<caption>{escaped(caption)}</caption>"
    rows_of = f"<thead><tr>{names}</tr></thead><tbody>\n{lines}\n</tbody>"
    return f'<div class="{kind}" {label}><table>{title}{rows_of}</table></div>\n'


def _characters(head: Sequence[str], rows: Sequence[Sequence[Cell]], texts: Sequence[bool]) -> int:
    """How many characters wide a table is where texts are broken into lines."""
    numbers = (
        max(map(len, head[at].split()), default=0) if text else max(len(number(_plain(row[at]))) for row in rows)
        for at, text in enumerate(texts)
    )
    return sum(max(wide, _BROKEN) if text else wide + 1 for wide, text in zip(numbers, texts, strict=True))


def _plain(value: Cell) -> float | None:
    return None if isinstance(value, str) else value.value if isinstance(value, Change) else value


def listed(sentences: Sequence[str], kind: str = "") -> str:
    """A list of sentences; "" without any."""
    if not sentences:
        return ""
    items = "".join(f"<li>{escaped(sentence)}</li>" for sentence in sentences)
    return f"<ul{f' class={kind}' if kind else ''}>{items}</ul>\n"


def section(name: str, title: str, *parts: str) -> str:
    """A section of the page; "" where it has nothing."""
    body = "".join(parts)
    if not body:
        return ""
    heading = f'<h2 id="{name}-title">{title}</h2>'
    return f'<section class="panel" id="{name}" aria-labelledby="{name}-title">{heading}\n{body}</section>\n'


def flat(value: object, path: str = "") -> Iterator[tuple[str, Cell]]:
    """The leaves of a JSON value with their paths; short lists of plain values are one text."""
    if isinstance(value, dict) and value:
        for name, below in value.items():
            yield from flat(below, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value and any(isinstance(each, dict | list) for each in value):
        for place, below in enumerate(value):
            yield from flat(below, f"{path}.{place}")
    elif isinstance(value, list):
        yield path, ", ".join(map(str, itertools.islice(value, 200))) or "none"
    elif isinstance(value, bool):
        yield path, "yes" if value else "no"
    elif isinstance(value, int | float):
        yield path, value
    else:
        yield path, "none" if value in (None, {}) else str(value)


__all__ = ["Cell", "Change", "cell", "change", "escaped", "flat", "listed", "number", "section", "table"]
