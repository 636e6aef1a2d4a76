"""Synthetic conversations: every entry is a function of the seed and its number, and nothing else."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from aiperf import BadDataset, Conversation, Dataset, DatasetContext, Tokenizer, Turn
from aiperf.draws import uniform
from msgspec import Struct

from aiperf_dataset_synthetic.corpus import Corpus, Window, open_corpus
from aiperf_dataset_synthetic.exact import fitted
from aiperf_dataset_synthetic.lengths import delay_ms, drawn_pair, pairs, positive_normal

log = logging.getLogger(__name__)

_PREFIXES_KEPT = 256
_OTHER_WINDOWS = 8


class _Text(Struct, frozen=True):
    """*tokens* is its real length."""

    text: str
    tokens: int


class Synthetic(Dataset):
    """As many conversations as the run asks for.

    Raises:
        BadDataset: There is no tokenizer, the endpoint can't say what is asked, or the system prompt can't be read.
    """

    def __init__(self, options: Any, context: DatasetContext) -> None:
        super().__init__(options, context)
        if context.tokenizer is None:
            raise BadDataset(
                "synthetic prompts are measured in tokens, and this endpoint type has no use for a tokenizer",
                "choose an endpoint type whose input is text",
            )
        self._tokenizer: Tokenizer = context.tokenizer
        self._pairs = pairs(options.seq_dist) if options.seq_dist is not None else None
        self._corpus: Corpus = open_corpus(options.prompt_corpus, self._tokenizer, context.seed)
        self._prefix = lru_cache(_PREFIXES_KEPT)(self._made_prefix)
        self._texts = self._missed = self._farthest = 0
        self._system = self._made_system()
        if options.user_context_length is not None and not context.capabilities.multi_turn:
            raise BadDataset(
                "--user-context-prompt-length needs an endpoint type that sends a history, such as chat",
                "use --num-prefix-prompts and --prefix-prompt-length, which lengthen the prompt itself",
            )

    def __iter__(self) -> Iterator[Conversation]:
        for number in range(self.context.entries):
            yield self.entry(number)
        if self._missed:
            log.warning(
                "%d of %d synthetic texts are not of the length asked for under the tokenizer %r: off by up to %d tokens",
                self._missed, self._texts, self._tokenizer.name, self._farthest,
            )  # fmt: skip

    def entry(self, number: int) -> Conversation:
        """Conversation *number*, from 0."""
        options, seed = self.options, self.context.seed
        context = None
        if options.user_context_length is not None:
            context = self._generated("context", number, options.user_context_length).text
        count = positive_normal(options.turns_mean, options.turns_stddev, seed, "synthetic.turns", number)
        turns = tuple(self._turn(number, index, alone=self._system is None and context is None) for index in range(count))
        return Conversation(self._id(number), turns, self._system, context)

    def _turn(self, number: int, index: int, *, alone: bool) -> Turn:
        """Turn *index* of a conversation; *alone*: no message stands before its first turn."""
        options, seed = self.options, self.context.seed
        prefix = None
        if index == 0 and options.prefix_pool:
            prefix = self._prefix(int(uniform(seed, "synthetic.prefix", number) * options.prefix_pool))
        batch = options.prompt_batch_size
        texts, answer = [], None
        for part in range(batch):
            length, osl = self._lengths(number, index, part)
            answer = osl if part == 0 else answer
            texts.append(self._generated(f"prompt.{index}", number * batch + part, length, prefix))
        return Turn(
            texts=tuple(one.text for one in texts),
            max_tokens=answer,
            delay_ms=self._delay_ms(number, index),
            # Of several texts the kernel counts what they are together; a later turn has a history before it.
            input_tokens=texts[0].tokens if alone and index == 0 and batch == 1 else None,
        )

    def _lengths(self, number: int, index: int, part: int) -> tuple[int, int | None]:
        """Tokens of a text and of the answer to ask for; each text of a batch has a length of its own."""
        options, seed = self.options, self.context.seed
        stream = f"{index}.{part}" if part else f"{index}"
        if self._pairs is not None:
            return drawn_pair(self._pairs, seed, f"synthetic.pair.{stream}", number)
        isl = positive_normal(options.isl, options.isl_stddev, seed, f"synthetic.isl.{stream}", number)
        if options.osl is None:
            return isl, None
        return isl, positive_normal(options.osl, options.osl_stddev, seed, f"synthetic.osl.{stream}", number)

    def _delay_ms(self, number: int, index: int) -> float | None:
        if index == 0:
            return None
        options = self.options
        stream = f"synthetic.delay.{index}"
        return delay_ms(options.turn_delay_mean_ms, options.turn_delay_stddev_ms, self.context.seed, stream, number)

    def _generated(self, stream: str, number: int, length: int, prefix: _Text | None = None) -> _Text:
        """Text *number* of a stream, *length* tokens long, after a prefix where there is one."""
        text, off = "", length
        # Where the space between costs a token that isn't there, the prompt follows at once.
        for between in (" ", "") if prefix is not None else ("",):
            head, head_tokens = (prefix.text + between, prefix.tokens) if prefix is not None else ("", 0)
            text, off = fitted(self._tokenizer, self._windows(stream, number), length, head, head_tokens)
            if off == 0:
                break
        self._texts += 1
        if off:
            self._missed += 1
            self._farthest = max(self._farthest, abs(off))
        return _Text(head + text, head_tokens + length + off)

    def _windows(self, stream: str, number: int) -> Iterator[Window]:
        """The places of the corpus that a text may come from, best first: where the first won't do, others will."""
        yield self._corpus.window(f"synthetic.{stream}", number)
        for again in range(1, _OTHER_WINDOWS):
            yield self._corpus.window(f"synthetic.{stream}.{again}", number)

    def _made_prefix(self, number: int) -> _Text:
        return self._generated("prefixes", number, self.options.prefix_length)

    def _made_system(self) -> str | None:
        options = self.options
        flag = (
            "--system-prompt" if options.system_prompt is not None
            else "--system-prompt-file" if options.system_prompt_file is not None
            else "--shared-system-prompt-length" if options.shared_system_length is not None
            else None
        )  # fmt: skip
        if flag is None:
            return None
        if not self.context.capabilities.system_message:
            raise BadDataset(
                f"{flag} needs an endpoint type with a system message, such as chat",
                "use --num-prefix-prompts 1 and --prefix-prompt-length, which lengthen the prompt itself",
            )
        if options.system_prompt is not None:
            return str(options.system_prompt)
        if options.system_prompt_file is not None:
            return _read(Path(options.system_prompt_file))
        return self._generated("system", 0, options.shared_system_length).text

    def _id(self, number: int) -> str:
        """Readable where the user gave the seed, else of a UUID's form."""
        if self.context.seeded:
            return f"session_{number:06d}"
        digits = hashlib.sha256(f"{self.context.seed}:session:{number}".encode()).hexdigest()
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
