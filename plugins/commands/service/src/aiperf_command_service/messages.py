"""What the service asks the processes that check files and become runs, and their answers."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct


class Ask(Struct):
    """content: of the file.  data: the folder of files that may be named, resolved; None where none may.  urls: prefixes; none
    allows all.  trusted: whether the file is the operator's own, who may name anything.
    """

    results: str
    data: str | None = None
    urls: list[str] = []
    trusted: bool = False
    content: bytes = b""


class Fault(Struct, omit_defaults=True):
    """A fault of a file.  path: of the key, "" where no key is at fault.  line: from 1; 0 where none is."""

    sentence: str
    path: str = ""
    line: int = 0
    hints: tuple[str, ...] = ()


class Found(Struct, omit_defaults=True):
    """faults: all of them; without one the rest is said.  secrets: texts that stand in the file and may stand in no other."""

    faults: list[Fault] = []
    label: str = ""
    runs: int = 1
    models: list[str] = []
    urls: list[str] = []
    endpoint: str = ""
    cells: list[str] = []
    secrets: list[str] = []


class Check(Struct, tag=True):
    """Answered by a line: a :class:`Found`, or nothing where the check was ended by its bounds."""

    ask: Ask


class Begin(Struct, tag=True):
    """Be the program of a run, with these words and this environment.  There is no answer."""

    words: list[str]
    variables: dict[str, str]


Order: TypeAlias = Check | Begin

__all__ = ["Ask", "Begin", "Check", "Fault", "Found", "Order"]
