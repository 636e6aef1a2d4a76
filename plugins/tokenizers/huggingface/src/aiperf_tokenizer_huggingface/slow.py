"""Tokenizers that need ``transformers``: older files, and code that comes with a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiperf import BadTokenizer

from aiperf_tokenizer_huggingface.absence import NotThere
from aiperf_tokenizer_huggingface.fast import without_surrogates


class Slow:
    """A tokenizer that ``transformers`` made."""

    def __init__(self, name: str, tokenizer: Any) -> None:
        self.name, self._tokenizer = name, tokenizer

    @property
    def size(self) -> int:
        return int(self._tokenizer.vocab_size)

    def encode(self, text: str) -> list[int]:
        try:
            return self._ids(text)
        except (TypeError, UnicodeEncodeError):
            return self._ids(without_surrogates(text))

    def _ids(self, text: str) -> list[int]:
        # verbose=False: no remark about texts longer than the model takes.
        return list(self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True, verbose=False))

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def count(self, text: str) -> int:
        return len(self.encode(text))


def loaded(name: str, why: str, *, revision: str | None, trust: bool, network: bool) -> Slow:
    """The tokenizer *name*, a directory or a hub id.  *why* says what ``transformers`` is needed for.

    Raises:
        NotThere: ``transformers`` can't open it.
        BadTokenizer: ``transformers`` isn't installed.
    """
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise BadTokenizer(
            f"the tokenizer {name!r} needs the package transformers: {why}",
            "pip install 'aiperf-tokenizer-huggingface[transformers]'",
            "'--tokenizer builtin' needs nothing else",
        ) from error
    try:
        made = AutoTokenizer.from_pretrained(
            name, revision=revision or "main", trust_remote_code=trust, local_files_only=not network
        )
    except Exception as error:  # a stranger's code, perhaps a model's own
        said = str(error).strip().splitlines()
        raise NotThere(
            f"the tokenizer {name!r} can't be had: {type(error).__name__}: {said[0] if said else 'no reason given'}",
            *_remote_code_hint(str(error)),
            "'--tokenizer builtin' needs no download",
        ) from error
    return Slow(name, made)


def _remote_code_hint(said: str) -> list[str]:
    return ["it comes with code of its own: --tokenizer-trust-remote-code runs it"] if "trust_remote_code" in said else []
