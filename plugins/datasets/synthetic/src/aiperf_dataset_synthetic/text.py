"""Generated texts of exact lengths, and the system prompt and context before a conversation."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from aiperf import BadDataset, DatasetContext, Tokenizer
from msgspec import Struct

from aiperf_dataset_synthetic.corpus import Corpus, CorpusWindow, Ids, open_corpus
from aiperf_dataset_synthetic.exact import fitted, measured
from aiperf_dataset_synthetic.options import CommonOptions

log = logging.getLogger(__name__)

_OTHER_WINDOWS = 8
"""Places of the corpus that are tried for a text of the exact length, the preferred one among them."""
_WORD = 8
"""Upper bound of the tokens in the first word of a corpus."""


class Text(Struct, frozen=True):
    """A text.  *tokens*: its real length."""

    text: str
    tokens: int


class Writer:
    """Writes texts from a corpus; each is a function of the seed, its stream and its number.

    in_order: the tokens of a text from the corpus ``random`` follow one another in the vocabulary.
    """

    def __init__(self, tokenizer: Tokenizer, corpus: str, seed: int, *, in_order: bool = False) -> None:
        self._tokenizer = tokenizer
        self._corpus: Corpus = open_corpus(corpus, tokenizer, seed, in_order=in_order)
        self._texts = self._missed = self._farthest = 0

    def text(
        self, stream: str, number: int, length: int, prefix: Text | None = None, tokenizer: Tokenizer | None = None
    ) -> Text:  # fmt: skip
        """Text *number* of a stream, *length* tokens long, after *prefix* if given.

        *tokenizer*: counts it, in place of that of the corpus.  A length below 1 is missed by a text of one token.
        """
        tokenizer, asked, length = tokenizer or self._tokenizer, length, max(1, length)
        if prefix is None and length == asked:  # nearly all texts are exact at the first cut
            text, tokens = measured(tokenizer, self._corpus.window(f"synthetic.{stream}", number), length)
            if tokens == length:
                self._texts += 1
                return Text(text, length)
        text, off = "", length
        # Where the space between both adds a token, the prompt follows without it.
        for between in (" ", "") if prefix is not None else ("",):
            head, head_tokens = (prefix.text + between, prefix.tokens) if prefix is not None else ("", 0)
            text, off = fitted(tokenizer, self._windows(stream, number), length, head, head_tokens)
            if off == 0:
                break
        self.missed(off + length - asked)
        return Text(head + text, head_tokens + length + off)

    def texts(self, stream: str, numbers: Sequence[int], lengths: Sequence[int]) -> Iterator[Text]:
        """Several texts of a stream, at least one, as :meth:`text` gives them."""
        cuts = self._corpus.cuts(self._tokenizer, f"synthetic.{stream}", numbers, lengths)
        for number, length, cut in zip(numbers, lengths, cuts, strict=True):
            if cut is not None and cut[1] == length:
                self._texts += 1
                yield Text(cut[0], length)
            else:
                yield self.text(stream, number, length)

    def joinable(self, stream: str, number: int, length: int) -> str:
        """A text of *length* tokens, alone and after another text with a space.  Not counted as missed."""
        windows = list(self._windows(stream, number))
        invariant = [window for window in windows if self._begins_invariant(window)]
        return fitted(self._tokenizer, invariant or windows, length, " ")[0]

    def beginning(self, text: str, length: int, *, alone: bool) -> str:
        """The first *length* tokens of a text; *alone*: no other text precedes it."""
        return fitted(self._tokenizer, [Ids(self._tokenizer.encode(text))], length, "" if alone else " ")[0]

    def _begins_invariant(self, window: CorpusWindow) -> bool:
        """Whether the first word has the same number of tokens with and without a space before it."""
        words = self._tokenizer.decode(window.first(_WORD)).split(maxsplit=1)
        return bool(words) and self._tokenizer.count(words[0]) == self._tokenizer.count(f" {words[0]}")

    def missed(self, off: int) -> None:
        """Count a text with an error of *off* tokens; 0 is exact."""
        self._texts += 1
        self._missed += off != 0
        self._farthest = max(self._farthest, abs(off))

    def warn(self) -> None:
        """Log the number and the largest error of texts with a wrong length."""
        if self._missed:
            log.warning(
                "%d of %d synthetic texts miss the requested length under the tokenizer %r by up to %d tokens",
                self._missed, self._texts, self._tokenizer.name, self._farthest,
            )  # fmt: skip

    def _windows(self, stream: str, number: int) -> Iterator[CorpusWindow]:
        """The windows of the corpus for a text, the preferred one first."""
        yield self._corpus.window(f"synthetic.{stream}", number)
        for again in range(1, _OTHER_WINDOWS):
            yield self._corpus.window(f"synthetic.{stream}.{again}", number)


class Prelude:
    """Messages before the first turn: one system prompt for all conversations, a context for each.

    Raises:
        BadDataset: The endpoint can't take them, has no tokenizer to measure them, or the file can't be read.
    """

    def __init__(self, options: CommonOptions, context: DatasetContext, writer: Writer | None) -> None:
        self._options, self._writer = options, writer
        self.system = self._made_system(context)
        if options.user_context_length is not None:
            if not context.capabilities.multi_turn:
                raise BadDataset(
                    "--user-context-prompt-length needs an endpoint type that sends a history, such as chat",
                    "for generated data, use --num-prefix-prompts and --prefix-prompt-length",
                )
            self._need("--user-context-prompt-length")
        self.what = (
            "system prompt" if self.system is not None
            else "user context" if options.user_context_length is not None
            else ""
        )  # fmt: skip
        """Name of the messages; "" where the options give none."""

    def context(self, number: int) -> str | None:
        """The context of conversation *number*, from 0; None without the option."""
        length = self._options.user_context_length
        return None if length is None or self._writer is None else self._writer.text("context", number, length).text

    def _need(self, flag: str) -> Writer:
        if self._writer is None:
            why = f"{flag} is measured in tokens, and this endpoint type has no use for a tokenizer"
            raise BadDataset(why, f"remove {flag}")
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
                "for generated data, use --num-prefix-prompts 1 and --prefix-prompt-length",
            )
        if options.system_prompt is not None:
            return options.system_prompt
        if options.system_prompt_file is not None:
            return _read(options.system_prompt_file)
        return self._need(flag).text("system", 0, options.shared_system_length or 0).text


def conversation_id(context: DatasetContext, number: int) -> str:
    """A readable id where the user gave the seed, else one in the form of a UUID."""
    if context.seeded:
        return f"session_{number:06d}"
    digits = hashlib.sha256(f"{context.seed}:session:{number}".encode()).hexdigest()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataset(f"the system prompt can't be read: {path}: {error}", "--system-prompt-file needs UTF-8") from error
    if not text:
        raise BadDataset(f"the system prompt is empty: {path}", "write a prompt into it, or remove --system-prompt-file")
    return text
