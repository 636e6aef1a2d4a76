"""The answer of ``aiperf plugins``, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from aiperf.sdk.exporter import visible


class Report:
    """*lines* for people, *plain* for programs (JSON), the exit *code*, and *notes* for standard error."""

    def __init__(self, lines: Iterable[str], plain: Any, code: int = 0, notes: Sequence[str] = ()) -> None:
        self.text = "\n".join(lines)
        self.plain = plain
        self.code = code
        self.notes = notes

    def json(self) -> str:
        return visible(msgspec.json.format(msgspec.json.encode(self.plain), indent=2)).decode()


def counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
