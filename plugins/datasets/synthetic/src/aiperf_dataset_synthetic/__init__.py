"""Synthetic conversations: every entry is a function of the seed and its number, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from aiperf import BadDataset, Conversation, Dataset, DatasetContext, Turn
from aiperf.draws import uniform

from aiperf_dataset_synthetic.lengths import delay_ms, drawn_pair, pairs, positive_normal
from aiperf_dataset_synthetic.text import Prelude, Text, Writer, conversation_id

_PREFIXES_KEPT = 256


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
        self._pairs = pairs(options.seq_dist) if options.seq_dist is not None else None
        self._writer = Writer(context.tokenizer, options.prompt_corpus, context.seed)
        self._prefix = lru_cache(_PREFIXES_KEPT)(self._made_prefix)
        self._prelude = Prelude(options, context, self._writer)

    def __iter__(self) -> Iterator[Conversation]:
        for number in range(self.context.entries):
            yield self.entry(number)
        self._writer.warn()

    def entry(self, number: int) -> Conversation:
        """Conversation *number*, from 0."""
        options, seed = self.options, self.context.seed
        system, context = self._prelude.system, self._prelude.context(number)
        count = positive_normal(options.turns_mean, options.turns_stddev, seed, "synthetic.turns", number)
        turns = tuple(self._turn(number, index, alone=system is None and context is None) for index in range(count))
        return Conversation(conversation_id(self.context, number), turns, system, context)

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
            texts.append(self._writer.text(f"prompt.{index}", number * batch + part, length, prefix))
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

    def _made_prefix(self, number: int) -> Text:
        return self._writer.text("prefixes", number, self.options.prefix_length)
