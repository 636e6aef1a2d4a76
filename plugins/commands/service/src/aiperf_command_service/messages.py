"""What the service asks the process that checks a file, and its answer."""

from __future__ import annotations

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


__all__ = ["Ask", "Fault", "Found"]
