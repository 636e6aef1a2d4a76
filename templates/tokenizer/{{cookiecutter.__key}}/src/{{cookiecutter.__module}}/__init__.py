"""The {{ cookiecutter.name }} tokenizer: a token a byte of UTF-8."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import BadTokenizer, Tokenizer

_NAME = "{{ cookiecutter.__key }}"


class {{ cookiecutter.__class }}:
    """Opens ``{{ cookiecutter.__key }}``, and nothing else."""

    def __init__(self, options: object = None) -> None:
        """It has no options of its own."""

    def recognises(self, name: str) -> bool:
        return name.strip().lower().replace("-", "_") == _NAME

    def open(self, name: str) -> Tokenizer:
        """The tokenizer.

        Raises:
            BadTokenizer: *name* is another's.
        """
        if not self.recognises(name):
            raise BadTokenizer(f"the tokenizer is called {_NAME!r}, not {name!r}", f"use --tokenizer {_NAME}")
        return _Bytes()


class _Bytes:
    name = _NAME
    size = 256

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(ids).decode(errors="replace")

    def count(self, text: str) -> int:
        return len(text.encode())
