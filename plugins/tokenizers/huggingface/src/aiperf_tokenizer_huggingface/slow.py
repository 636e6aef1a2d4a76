"""Tokenizers that need ``transformers``: older file formats, and models with their own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aiperf import BadTokenizer

from aiperf_tokenizer_huggingface.absence import NotThere
from aiperf_tokenizer_huggingface.fast import without_surrogates

if TYPE_CHECKING:
    from aiperf_tokenizer_huggingface.chat import Template


class Slow:
    """A tokenizer of ``transformers``."""

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
        # verbose=False suppresses warnings about texts longer than the model's limit.
        return list(self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True, verbose=False))

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def count(self, text: str) -> int:
        return len(self.encode(text))

    @cached_property
    def chat_template(self) -> Template | None:
        from aiperf_tokenizer_huggingface.chat import Template

        if self._tokenizer.chat_template is None:
            return None
        return Template(self.name, self._rendered, self._with_special_tokens)

    def _rendered(self, messages: Sequence[Mapping[str, Any]], asks: bool) -> str:
        return str(self._tokenizer.apply_chat_template([*messages], tokenize=False, add_generation_prompt=asks))

    @property
    def end_id(self) -> int | None:
        known = self._tokenizer.eos_token_id
        return known if isinstance(known, int) else None

    def _with_special_tokens(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(without_surrogates(text), add_special_tokens=False, verbose=False))


def loaded(name: str, why: str, *, revision: str | None, trust: bool, network: bool) -> Slow:
    """The tokenizer *name*, a directory or a hub id.  *why*: the reason for ``transformers``, for the message.

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
            "or use --tokenizer builtin, which needs no further package",
        ) from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            name, revision=revision or "main", trust_remote_code=trust, local_files_only=not network
        )
    except Exception as error:  # third-party code, perhaps of the model
        reason = next(iter(str(error).strip().splitlines()), "no reason given")
        raise NotThere(
            f"the tokenizer {name!r} is unavailable: {type(error).__name__}: {reason}",
            *_remote_code_hint(str(error)),
            "use --tokenizer builtin, which needs no download",
        ) from error
    return Slow(name, tokenizer)


def _remote_code_hint(message: str) -> list[str]:
    return ["--tokenizer-trust-remote-code runs the model's own code"] if "trust_remote_code" in message else []
