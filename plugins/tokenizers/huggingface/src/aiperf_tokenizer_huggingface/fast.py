"""Tokenizers of the ``tokenizers`` package, from a tokenizer.json."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import tokenizers
from aiperf import BadTokenizer

from aiperf_tokenizer_huggingface.parts import counts_add_up

if TYPE_CHECKING:
    from aiperf_tokenizer_huggingface.chat import Template

_WORD = "a"
_FILE, _BESIDE = "tokenizer.json", ("tokenizer_config.json", "chat_template.jinja")


class Fast:
    """A tokenizer.json.  Padding and truncation are switched off, so that a count covers the whole text."""

    def __init__(self, name: str, path: Path, beside: Callable[[str], Path | None] | None = None) -> None:
        """*beside*: gives files beside *path* by name, None for missing ones; without it, those of its directory.

        Raises:
            BadTokenizer: The file can't be read, or isn't a tokenizer.
        """
        self.name = name
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the package raises bare Exception
            raise BadTokenizer(
                f"the tokenizer {name!r} can't be read: {path}: {error}", "use --tokenizer builtin, which needs no file"
            ) from error
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True  # "<s>" in a prompt is text
        self._tokenizer, self._path, self._beside = tokenizer, path, beside or self._in_directory

    @cached_property
    def counts_add_up(self) -> bool:
        return counts_add_up(self._path)

    @cached_property
    def chat_template(self) -> Template | None:
        """
        Raises:
            BadTokenizer: It can't be read or used.
        """
        from aiperf_tokenizer_huggingface.chat import chat_template  # jinja2, only where it is asked for

        return chat_template(self.name, self._beside, self._with_special_tokens)

    def files(self) -> dict[str, Path]:
        """The tokenizer.json, and what the chat template and the end of an answer are read from.  What the hub has and doesn't
        give is left out: a run that needs it has been refused.
        """
        found = {_FILE: self._path}
        with contextlib.suppress(BadTokenizer):
            found |= {name: path for name in _BESIDE if (path := self._beside(name)) is not None}
        return found

    def _in_directory(self, name: str) -> Path | None:
        file = self._path.parent / name
        return file if file.is_file() else None

    @cached_property
    def end_id(self) -> int | None:
        from aiperf_tokenizer_huggingface.chat import end_token

        token = end_token(self._beside)
        known = None if token is None else self._tokenizer.token_to_id(token)
        return None if known is None else int(known)

    def _with_special_tokens(self, text: str) -> list[int]:
        self._tokenizer.encode_special_tokens = False
        try:
            return self.encode(text)
        finally:
            self._tokenizer.encode_special_tokens = True

    def count_behind(self, text: str) -> int:
        """Tokens that the text adds to another one, from a place on where texts may be cut.  Older files put a mark before each
        text, which stands before the word here.
        """
        return self.count(f"{_WORD}{text}") - self._word

    @cached_property
    def _word(self) -> int:
        return self.count(_WORD)

    @property
    def size(self) -> int:
        return int(self._tokenizer.get_vocab_size(with_added_tokens=False))

    def encode(self, text: str) -> list[int]:
        return list(self._encoded(text).ids)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids)))

    def count(self, text: str) -> int:
        return len(self._encoded(text))

    def _encoded(self, text: str) -> tokenizers.Encoding:
        try:
            return self._tokenizer.encode(text, add_special_tokens=False)
        except (TypeError, UnicodeEncodeError):  # a lone surrogate from a server's broken JSON
            return self._tokenizer.encode(without_surrogates(text), add_special_tokens=False)


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for each lone surrogate."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
