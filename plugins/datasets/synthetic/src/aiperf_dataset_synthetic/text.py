"""Generated texts of exactly as many tokens as asked for, and what stands before a conversation."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset, DatasetContext, Tokenizer
from msgspec import Struct

from aiperf_dataset_synthetic.corpus import Corpus, Ids, Window, open_corpus
from aiperf_dataset_synthetic.exact import fitted

log = logging.getLogger(__name__)

_OTHER_WINDOWS = 8
_WORD = 8
"""Tokens that a corpus' first word is within."""


class Text(Struct, frozen=True):
    """*tokens* is its real length."""

    text: str
    tokens: int


class Writer:
    """Texts from a corpus, each a function of the seed, its stream and its number."""

    def __init__(self, tokenizer: Tokenizer, corpus: str, seed: int) -> None:
        self._tokenizer = tokenizer
        self._corpus: Corpus = open_corpus(corpus, tokenizer, seed)
        self._texts = self._missed = self._farthest = 0

    def text(self, stream: str, number: int, length: int, prefix: Text | None = None) -> Text:
        """Text *number* of a stream, *length* tokens long, after a prefix where there is one."""
        text, off = "", length
        # Where the space between costs a token that isn't there, the prompt follows at once.
        for between in (" ", "") if prefix is not None else ("",):
            head, head_tokens = (prefix.text + between, prefix.tokens) if prefix is not None else ("", 0)
            text, off = fitted(self._tokenizer, self._windows(stream, number), length, head, head_tokens)
            if off == 0:
                break
        self.missed(off)
        return Text(head + text, head_tokens + length + off)

    def joinable(self, stream: str, number: int, length: int) -> str:
        """A text that is *length* tokens long by itself, and also behind a space and another text.  Not counted as missed."""
        first = list(self._windows(stream, number))
        alike = [window for window in first if self._begins_alike(window)]
        return fitted(self._tokenizer, alike or first, length, " ")[0]

    def beginning(self, text: str, length: int, *, alone: bool) -> str:
        """The first *length* tokens of a text; *alone*: it will not stand behind a space and another text."""
        return fitted(self._tokenizer, [Ids(self._tokenizer.encode(text))], length, "" if alone else " ")[0]

    def _begins_alike(self, window: Window) -> bool:
        """Whether its first word is as many tokens with a space before it as without."""
        words = self._tokenizer.decode(window.first(_WORD)).split(maxsplit=1)
        return bool(words) and self._tokenizer.count(words[0]) == self._tokenizer.count(f" {words[0]}")

    def missed(self, off: int) -> None:
        """Count a text that is *off* tokens too long or too short, or 0."""
        self._texts += 1
        self._missed += off != 0
        self._farthest = max(self._farthest, abs(off))

    def warn(self) -> None:
        """Say how far texts are from the length asked for, where any is."""
        if self._missed:
            log.warning(
                "%d of %d synthetic texts are not of the length asked for under the tokenizer %r: off by up to %d tokens",
                self._missed, self._texts, self._tokenizer.name, self._farthest,
            )  # fmt: skip

    def _windows(self, stream: str, number: int) -> Iterator[Window]:
        """The places of the corpus that a text may come from, best first: where the first won't do, others will."""
        yield self._corpus.window(f"synthetic.{stream}", number)
        for again in range(1, _OTHER_WINDOWS):
            yield self._corpus.window(f"synthetic.{stream}.{again}", number)


class Prelude:
    """What stands before the first turn of conversations: a system prompt for all, a context for each.

    Raises:
        BadDataset: The endpoint has no place for it, there is nothing to measure it with, or its file can't be read.
    """

    def __init__(self, options: Any, context: DatasetContext, writer: Writer | None) -> None:
        self._options, self._writer = options, writer
        self.system = self._made_system(context)
        if options.user_context_length is not None:
            if not context.capabilities.multi_turn:
                raise BadDataset(
                    "--user-context-prompt-length needs an endpoint type that sends a history, such as chat",
                    "of generated data, --num-prefix-prompts and --prefix-prompt-length lengthen the prompt itself",
                )
            self._need("--user-context-prompt-length")
        self.what = (
            "system prompt" if self.system is not None
            else "user context" if options.user_context_length is not None
            else ""
        )  # fmt: skip
        """What it is, in words; "" where there is nothing."""

    def context(self, number: int) -> str | None:
        """The context of conversation *number*, from 0; None where there is none."""
        length = self._options.user_context_length
        return None if length is None or self._writer is None else self._writer.text("context", number, length).text

    def _need(self, flag: str) -> Writer:
        if self._writer is None:
            raise BadDataset(f"{flag} is measured in tokens, and this endpoint type has no use for a tokenizer", f"drop {flag}")
        return self._writer

    def _made_system(self, context: DatasetContext) -> str | None:
        options = self._options
        flag = (
            "--system-prompt" if options.system_prompt is not None
            else "--system-prompt-file" if options.system_prompt_file is not None
            else "--shared-system-prompt-length" if options.shared_system_length is not None
            else None
        )  # fmt: skip
        if flag is None:
            return None
        if not context.capabilities.system_message:
            raise BadDataset(
                f"{flag} needs an endpoint type with a system message, such as chat",
                "of generated data, --num-prefix-prompts 1 and --prefix-prompt-length lengthen the prompt itself",
            )
        if options.system_prompt is not None:
            return str(options.system_prompt)
        if options.system_prompt_file is not None:
            return _read(Path(options.system_prompt_file))
        return self._need(flag).text("system", 0, options.shared_system_length).text


def conversation_id(context: DatasetContext, number: int) -> str:
    """Readable where the user gave the seed, else of a UUID's form."""
    if context.seeded:
        return f"session_{number:06d}"
    digits = hashlib.sha256(f"{context.seed}:session:{number}".encode()).hexdigest()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataset(f"the system prompt can't be read: {path}: {error}", "--system-prompt-file is UTF-8 text") from error
    if not text:
        raise BadDataset(f"the system prompt is empty: {path}", "write a prompt into it, or drop --system-prompt-file")
    return text
