"""Synthetic conversations: each entry is a function of the seed and its number alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from aiperf import BadDataset, Conversation, Dataset, DatasetContext, Turn
from aiperf.sdk.dataset import Promise
from aiperf.sdk.draws import uniform

from aiperf_dataset_synthetic.chat import Wrapped
from aiperf_dataset_synthetic.draws import positive_normal
from aiperf_dataset_synthetic.lengths import drawn_pair, pairs
from aiperf_dataset_synthetic.media import MediaDrawer
from aiperf_dataset_synthetic.options import FLAGS_OF_PROMPTS, FLAGS_OF_RANKINGS, SyntheticOptions
from aiperf_dataset_synthetic.ranges import window, within
from aiperf_dataset_synthetic.rankings import check_fields, ranking
from aiperf_dataset_synthetic.text import Prelude, Text, Writer, conversation_id

_CACHED_PREFIXES = 256
"""Prefixes that are remembered."""
_AT_ONCE = 64
"""Conversations that are made together, at most."""
_OTHER = "choose an endpoint type whose input is text"


def fixed(mean: float | None, stddev: float) -> int | None:
    """The only number that :func:`positive_normal` draws; None where it draws several, or *mean* is None."""
    return None if mean is None or stddev > 0 else max(1, round(mean))


class Synthetic(Dataset[SyntheticOptions]):
    """Generates the requested number of conversations.

    Raises:
        BadDataset: The endpoint has no tokenizer and no media are asked for, it can't express the options, an extra isn't
            installed, or the system prompt or the pictures can't be read.
    """

    def __init__(self, options: SyntheticOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._media = MediaDrawer(options, context)
        self._ranks = "passages" in context.capabilities.named
        check_fields(context.name, ranks=self._ranks)
        unused, where = (
            (FLAGS_OF_PROMPTS, "has a query and passages") if self._ranks else (FLAGS_OF_RANKINGS, "has no query and passages")
        )
        for field, flag in unused.items():
            if field in options.fields_set:
                use = f"shape them with {', '.join(FLAGS_OF_RANKINGS.values())}" if self._ranks else f"remove {flag}"
                raise BadDataset(f"{flag} has no use: a request of this endpoint type {where}", use)
        self._pairs = pairs(options.seq_dist) if options.seq_dist is not None else None
        # A tokenizer may be there for the answers alone.
        tokenizer = None if context.capabilities.tokens_streamed else context.tokenizer
        if tokenizer is None:
            self._check_without_text()
        self._writer = None
        if tokenizer is not None:
            in_order = options.corpus_style is not None
            self._writer = Writer(tokenizer, options.prompt_corpus, context.seed, in_order=in_order)
        self._parts = range(options.prompt_batch_size if options.has_text and self._writer is not None else 0)
        self._prefix = lru_cache(_CACHED_PREFIXES)(self._made_prefix)
        self._prelude = Prelude(options, context, self._writer)
        # The run's marker (--cache-bust) takes the place of so many tokens of the first turn.
        self._marker = 0 if context.marker_in_system and self._prelude.system is not None else context.marker_tokens
        self._turns = fixed(options.turns_mean, options.turns_stddev)
        self._isl, self._osl = fixed(options.isl, options.isl_stddev), fixed(options.osl, options.osl_stddev)
        self._prompts, self._answers = options.prompts, options.answers
        self._wrapped = self._made_wrapped() if options.has_text else None
        self._windows: tuple[tuple[int, int], tuple[int, int]] | None = None
        ratios = options.ratios
        if ratios is not None and options.osl is not None:
            isl, osl = window(options.isl, ratios.input, options.style), window(options.osl, ratios.output, options.style)
            self._windows = isl, osl
        plain = options.user_context_length is None and self._prelude.system is None and not (self._media or self._ranks)
        self._alone = plain and self._turns == len(self._parts) == 1 and not options.prefix_pool and self._wrapped is None

    def promise(self) -> Promise:
        turns = 1 if self._ranks and self._writer is not None else self._turns or self._drawn_turns
        return Promise(self.context.entries, turns, any_order=True)

    def __iter__(self) -> Iterator[Conversation]:
        return self.chosen(range(self.context.entries))

    def chosen(self, numbers: Iterable[int]) -> Iterator[Conversation]:
        yield from self._single_texts(iter(numbers)) if self._alone else map(self.entry, numbers)
        if self._writer is not None:
            self._writer.warn()

    def _single_texts(self, numbers: Iterator[int]) -> Iterator[Conversation]:
        """Conversations of one text each, several at once.  The first ones are few, so that they are there soon."""
        assert self._writer is not None
        many = 1
        while some := list(islice(numbers, many)):
            texts = self._writer.texts("prompt.0", some, [self._length(number, 0, 0) for number in some])
            for number, text in zip(some, texts, strict=True):
                turn = Turn(texts=(text.text,), max_tokens=self._answer(number, 0), input_tokens=text.tokens)
                yield Conversation(conversation_id(self.context, number), (turn,))
            many = min(2 * many, _AT_ONCE)

    def entry(self, number: int) -> Conversation:
        """Conversation *number*, from 0."""
        options, seed = self.options, self.context.seed
        if self._ranks and self._writer is not None:
            return Conversation(conversation_id(self.context, number), (ranking(options, self._writer, seed, number),))
        system, context = self._prelude.system, self._prelude.context(number)
        prefix = None
        if options.prefix_pool:
            prefix = self._prefix(int(uniform(seed, "synthetic.prefix", number) * options.prefix_pool))
        turns = []
        for index in range(self._turns or self._drawn_turns(number)):
            texts = [self._text(number, index, part, None if index else prefix) for part in self._parts]
            answer, delay_ms = self._answer(number, index), None
            if index and options.turn_delay_mean_ms > 0:
                mean, stddev = options.turn_delay_mean_ms, options.turn_delay_stddev_ms
                delay_ms = positive_normal(mean, stddev, seed, f"synthetic.delay.{index}", number)
            # The kernel counts several texts together, and later turns have a history.
            known = index == 0 and len(texts) == 1 and system is None and context is None and self._wrapped is None
            turns.append(
                Turn(
                    texts=tuple(text.text for text in texts),
                    media=self._media.of(number, index) if self._media else (),
                    max_tokens=answer,
                    delay_ms=delay_ms,
                    input_tokens=texts[0].tokens if known else None,
                )
            )
        return Conversation(conversation_id(self.context, number), tuple(turns), system, context)

    def _drawn_turns(self, number: int) -> int:
        options = self.options
        return positive_normal(options.turns_mean, options.turns_stddev, self.context.seed, "synthetic.turns", number)

    def _answer(self, number: int, index: int) -> int | None:
        """The answer length of turn *index*, in tokens; None where the model decides."""
        options, seed = self.options, self.context.seed
        if self._pairs is not None:
            stream = f"synthetic.pair.{index}"
            pair = drawn_pair(self._pairs, seed, stream, number)
            return positive_normal(pair.osl, pair.osl_stddev, seed, f"{stream}.osl", number)
        if self._windows is not None:
            return within(self._windows[1], seed, f"synthetic.range.{index}.osl", number)
        if self._answers is not None:
            return self._answers.length(seed, f"synthetic.osl.{index}", number)
        if options.osl is None or self._osl is not None:
            return self._osl
        return positive_normal(options.osl, options.osl_stddev, seed, f"synthetic.osl.{index}", number)

    def _length(self, number: int, index: int, part: int) -> int:
        """The length of text *part* of turn *index*, in tokens; each text of a batch has its own."""
        options, seed = self.options, self.context.seed
        stream = f"{index}.{part}" if part else f"{index}"
        if self._windows is not None:
            length = within(self._windows[0], seed, f"synthetic.range.{stream}.isl", number)
        elif self._prompts is not None:
            length = self._prompts.length(seed, f"synthetic.isl.{stream}", number)
        elif self._pairs is None and self._isl is not None:
            length = self._isl
        elif self._pairs is not None:
            pair = drawn_pair(self._pairs, seed, f"synthetic.pair.{stream}", number)
            length = positive_normal(pair.isl, pair.isl_stddev, seed, f"synthetic.pair.{stream}.isl", number)
        else:
            length = positive_normal(options.isl, options.isl_stddev, seed, f"synthetic.isl.{stream}", number)
        return max(1, length - self._marker) if self._marker and not index and not part else length

    def _text(self, number: int, index: int, part: int, prefix: Text | None) -> Text:
        options, length = self.options, self._length(number, index, part)
        stream, number = f"prompt.{index}", number * options.prompt_batch_size + part
        if self._wrapped is None or part:  # the texts of a turn are one message
            return self._written(stream, number, length, prefix)
        wrapped = self._wrapped[bool(index)]
        return self._written(stream, number, length - wrapped.added, prefix, wrapped)

    def _made_prefix(self, number: int) -> Text:
        return self._written("prefixes", number, self.options.prefix_length)

    def _written(
        self, stream: str, number: int, length: int, prefix: Text | None = None, wrapped: Wrapped | None = None
    ) -> Text:  # fmt: skip
        assert self._writer is not None  # there are texts only with a tokenizer
        return self._writer.text(stream, number, length, prefix, wrapped)

    def _made_wrapped(self) -> tuple[Wrapped, Wrapped] | None:
        """What sizes first turns, and later ones; None without a chat template.

        Raises:
            BadDataset: The template alone is as long as the prompts.
        """
        tokenizer, template, isl = self.context.tokenizer, self.context.chat_template, self.options.isl
        if tokenizer is None or template is None:
            return None
        first, later = (Wrapped(tokenizer, template, later=each) for each in (False, True))
        if self._pairs is None and self._prompts is None and isl <= first.added:
            raise BadDataset(
                f"--isl {isl} leaves no token for the text: the chat template of {tokenizer.name!r} adds {first.added}",
                f"ask for at least --isl {first.added + 1}, or drop --apply-chat-template",
            )
        return first, later

    def _check_without_text(self) -> None:
        """
        Raises:
            BadDataset: There is nothing to send but text, or its options are typed.
        """
        draws = self.context.capabilities.media_in and not self._ranks
        if not self._media:
            raise BadDataset(
                "synthetic prompts are measured in tokens, and this endpoint type has no use for a tokenizer",
                f"give its data with --input-file, or {'ask for media, such as --image-width-mean 512' if draws else _OTHER}",
            )
        for field, flag in FLAGS_OF_PROMPTS.items():
            if field in self.options.fields_set and field != "turns_mean" and (field != "isl" or self.options.isl):
                raise BadDataset(f"{flag} has no use: this endpoint type takes no text", f"remove {flag}")
