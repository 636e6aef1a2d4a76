"""The tokenizer contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from aiperf.errors import BadTokenizer


class ChatTemplate(Protocol):
    """The chat template of a tokenizer's model: messages to the text that a server makes of them."""

    def count(self, messages: Sequence[Mapping[str, Any]], *, asks: bool = True) -> int:
        """Tokens of the messages in the template, with its special tokens.

        *messages*: as transformers takes them: ``role``, ``content`` (a text), and where there are any ``tool_calls``, whose
        ``arguments`` are objects, ``tool_call_id`` and ``name``.  *asks*: with what opens the answer behind them.

        Raises:
            BadTokenizer: The template refuses the messages, or fails.
        """

    # ids(messages, asks=True), which gives the tokens themselves, is optional: for endpoints that send ids.


class Tokenizer(Protocol):
    """Text to token ids and back.  Special tokens are neither added nor recognised in text."""

    name: str

    @property
    def size(self) -> int:
        """Number of ordinary token ids; ids are 0 to size - 1."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids; a cut character at either end becomes U+FFFD."""

    def count(self, text: str) -> int:
        """``len(encode(text))``, possibly cheaper."""

    # chat_template, a ChatTemplate or None, is optional: the template that comes with the tokenizer, for --apply-chat-template.
    # Reading it may raise BadTokenizer.

    # end_id, an int or None, is optional: the id with which the model ends an answer.

    # counts_add_up, a bool, is optional, and promises where it is true: a text that is cut before a space, behind a character
    # that is neither whitespace nor U+2581 (a space to SentencePiece), has as many tokens as both parts.  The turns of a
    # conversation are then counted once.  count_behind(text), optional with it, counts the second part, where it has other
    # tokens than as a text of its own.

    # files() is optional, with open_from of its source: the files, by their names in one directory, with which another machine
    # opens the same tokenizer.  Sites then need none of it.


def blank(character: str) -> bool:
    """Whether no text is cut behind the character."""
    return character.isspace() or character == "\u2581"


def adds_up(tokenizer: Tokenizer) -> bool:
    """Whether the tokenizer promises ``counts_add_up``."""
    return getattr(tokenizer, "counts_add_up", False) is True


def chat_template(tokenizer: Tokenizer) -> ChatTemplate:
    """The tokenizer's chat template.

    Raises:
        BadTokenizer: It has none, or the template can't be used.
    """
    template: ChatTemplate | None = getattr(tokenizer, "chat_template", None)
    if template is None:
        raise BadTokenizer(
            f"--apply-chat-template: the tokenizer {tokenizer.name!r} has no chat template",
            "name one that has with --tokenizer: that of a chat model, by its hub id or its directory",
            "or drop --apply-chat-template: prompts are then counted by their texts alone",
        )
    return template


def template_ids(tokenizer: Tokenizer) -> Callable[[Sequence[Mapping[str, Any]]], list[int]]:
    """Gives the ids of messages in the tokenizer's chat template, with what opens the answer.

    Raises:
        BadTokenizer: It has none, or one that counts and gives no ids.
    """
    ids: Callable[[Sequence[Mapping[str, Any]]], list[int]] | None = getattr(chat_template(tokenizer), "ids", None)
    if ids is None:
        raise BadTokenizer(f"the chat template of the tokenizer {tokenizer.name!r} gives no ids", "name another --tokenizer")
    return ids


def end_id(tokenizer: Tokenizer) -> int | None:
    """The id with which the model ends an answer; None where the tokenizer doesn't know it."""
    known: int | None = getattr(tokenizer, "end_id", None)
    return known


def count_behind(tokenizer: Tokenizer) -> Callable[[str], int]:
    """Counts a text that stands behind another one, from a cut on."""
    count: Callable[[str], int] = getattr(tokenizer, "count_behind", tokenizer.count)
    return count


def files(tokenizer: Tokenizer) -> dict[str, Path]:
    """The files, by their names in one directory, with which another machine opens the tokenizer; {} where it names none.

    Raises:
        BadTokenizer: A name is none of a file in a directory.
    """
    known: Callable[[], Mapping[str, Path]] | None = getattr(tokenizer, "files", None)
    named = {} if known is None else dict(known())
    if wrong := [name for name in named if name in ("", "..") or Path(name).name != name or "\0" in name]:
        raise BadTokenizer(
            f"the tokenizer {tokenizer.name!r} names files that are in no one directory: {', '.join(map(repr, wrong))}"
        )
    return named


class TokenizerSource(Protocol):
    """The plugin of a tokenizer package; it opens tokenizers by name.

    ``recognises`` must be cheap and use no network; ``open`` may raise BadTokenizer, whose hint names the next thing to do.
    """

    def __init__(self, options: object = None) -> None: ...

    def recognises(self, name: str) -> bool: ...

    def open(self, name: str) -> Tokenizer: ...

    # open_from(directory, name) is optional: opens the tokenizer whose files, as its files() names them, are in *directory*;
    # its name is *name*.  It uses no network, and may raise BadTokenizer.


__all__ = ["ChatTemplate", "Tokenizer", "TokenizerSource", "adds_up", "count_behind", "end_id", "files"]
