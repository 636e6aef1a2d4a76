"""Options of synthetic data, and the common options of all data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aiperf.sdk.options import After, Finite, Options, Word, option

from aiperf_dataset_synthetic.distributions import Distribution, Readable, distribution
from aiperf_dataset_synthetic.lengths import pairs
from aiperf_dataset_synthetic.media.options import MediaOptions
from aiperf_dataset_synthetic.ranges import SGLANG, STYLES, VLLM, Ratios, ratios, window

_GENERATED, _VERBATIM = ("shared_system_length", "user_context_length"), ("system_prompt", "system_prompt_file")
_LENGTHS, _PREFIXES, _SESSIONS = "Prompt and answer length", "Prefixes and system prompts", "Conversations"
_RANKINGS = "Rankings"
_DRAWS = 256
"""Draws of which the mean is that of a distribution, to a tenth."""
FLAGS_OF_RANKINGS = {
    "passages_mean": "--rankings-passages-mean", "passages_stddev": "--rankings-passages-stddev",
    "passage_tokens_mean": "--rankings-passages-prompt-token-mean",
    "passage_tokens_stddev": "--rankings-passages-prompt-token-stddev",
    "query_tokens_mean": "--rankings-query-prompt-token-mean", "query_tokens_stddev": "--rankings-query-prompt-token-stddev",
}
"""Options of data with a query and passages, by field."""
FLAGS_OF_PROMPTS = {
    "isl": "--isl", "isl_stddev": "--isl-stddev", "isl_distribution": "--isl-distribution",
    "seq_dist": "--seq-dist", "range_ratio": "--random-range-ratio",
    "corpus_style": "--random-corpus-style", "prompt_batch_size": "--batch-size-text",
    "turns_mean": "--session-turns-mean", "prefix_pool": "--num-prefix-prompts",
}
"""Options of prompts, which such data has no use for."""


def _readable(text: str) -> str:
    pairs(text)
    return text


def _is_ratio(text: str) -> str:
    ratios(text)
    return text


class Problems:
    """Collects conflicts between options; each message names the flag as typed."""

    def __init__(self, typed: dict[str, str]) -> None:
        self._typed = typed
        self.messages: list[str] = []

    def flag(self, field: str) -> str:
        return self._typed.get(field, _USUAL[field])

    def refuse(self, message: str, hint: str) -> None:
        self.messages.append(f"{message}\n{hint}")

    def exclusive(self, first: str, second: str, why: str) -> None:
        flag, other = self.flag(first), self.flag(second)
        self.refuse(f"{flag} and {other} exclude each other: {why}", f"drop {flag} or {other}")

    def needs(self, field: str, needed: str, why: str) -> None:
        flag, other = self.flag(field), self.flag(needed)
        self.refuse(f"{flag} needs {other}: {why}", f"add {other}, or drop {flag}")


class CommonOptions(Options):
    """Options of any data set: the length of answers, system prompt and context."""

    osl: int | None = option("--prompt-output-tokens-mean", "--output-tokens-mean", "--osl", ge=1, group=_LENGTHS,
        metavar="TOKENS", shown="the model decides", cells=True, place="dataset.prompts.osl.mean",
        help="Mean of the answer length asked for.")
    osl_stddev: Finite = option("--prompt-output-tokens-stddev", "--output-tokens-stddev", "--osl-stddev", default=0.0, ge=0,
        group=_LENGTHS, metavar="TOKENS", cells=True, place="dataset.prompts.osl.stddev",
        help="Spread of the answer length asked for, normal.", shown="0")
    osl_distribution: Readable | None = option("--osl-distribution", group=_LENGTHS, metavar="JSON",
        place="dataset.prompts.osl.distribution",
        help="Distribution of the answer length asked for, with the keys of --isl-distribution.")
    shared_system_length: int | None = option("--shared-system-prompt-length", ge=1, group=_PREFIXES, metavar="TOKENS",
        place="dataset.prefix_prompts.shared_system_length",
        help="Generate one system prompt of this length for all conversations.")
    user_context_length: int | None = option("--user-context-prompt-length", ge=1, group=_PREFIXES, metavar="TOKENS",
        place="dataset.prefix_prompts.user_context_length",
        help="Generate a user message of this length for each conversation, sent before its first turn.")
    system_prompt: str | None = option("--system-prompt", group=_PREFIXES, metavar="TEXT",
        place="dataset.system_prompt", help="System prompt of all conversations, as it is.")
    system_prompt_file: Path | None = option("--system-prompt-file", group=_PREFIXES, metavar="FILE",
        place="dataset.system_prompt_file", help="File with the system prompt of all conversations.")

    def given(self, fields: tuple[str, ...]) -> list[str]:
        """The *fields* that have a value."""
        return [field for field in fields if getattr(self, field) is not None]

    @property
    def answers(self) -> Distribution | None:
        """The distribution of answer lengths; None without one."""
        return distribution(self.osl_distribution) if self.osl_distribution is not None else None

    def draws_answers(self) -> bool:
        """Whether answer lengths come from elsewhere than their mean."""
        return self.osl_distribution is not None

    @property
    def expected_answer_tokens(self) -> float | None:
        drawn = self.answers
        if drawn is not None:
            return sum(drawn.length(0, "expected", index) for index in range(_DRAWS)) / _DRAWS
        return None if self.osl is None else float(self.osl)

    def problems(self, typed: dict[str, str]) -> list[str]:
        """What can't be run, a sentence and its hint each, on lines of their own; *typed* is the flag typed, by field."""
        problems = Problems(typed)
        if self.osl_stddev > 0 and self.osl is None and not self.draws_answers():
            problems.needs("osl_stddev", "osl", "a spread has a mean")
        if self.osl_distribution is not None:
            for field in ("osl", "osl_stddev"):
                if field in self.fields_set:
                    problems.exclusive("osl_distribution", field, "the distribution says every length")
        for verbatim in self.given(_VERBATIM):
            for field in self.given(_GENERATED):
                problems.exclusive(verbatim, field, "the one is given, the other is generated")
        if self.system_prompt is not None and self.system_prompt_file is not None:
            problems.exclusive("system_prompt", "system_prompt_file", "there is one system prompt")
        if self.system_prompt == "":
            flag = problems.flag("system_prompt")
            problems.refuse(f"{flag} is empty", f"write a prompt, or drop {flag}")
        if self.system_prompt_file is not None and not self.system_prompt_file.is_file():
            flag = problems.flag("system_prompt_file")
            problems.refuse(f"{flag}: there is no file {self.system_prompt_file}", "check the path")
        return problems.messages


class SyntheticOptions(CommonOptions, MediaOptions):
    # Lengths
    isl: int = option("--prompt-input-tokens-mean", "--synthetic-input-tokens-mean", "--isl", default=550, ge=0,
        group=_LENGTHS, metavar="TOKENS", cells=True, place="dataset.prompts.isl.mean", help="Mean length of a prompt.")
    isl_stddev: Finite = option("--prompt-input-tokens-stddev", "--synthetic-input-tokens-stddev", "--isl-stddev", default=0.0,
        ge=0, group=_LENGTHS, metavar="TOKENS", cells=True, place="dataset.prompts.isl.stddev",
        help="Spread of the prompt length, normal.", shown="0")
    isl_distribution: Readable | None = option("--isl-distribution", group=_LENGTHS, metavar="JSON",
        place="dataset.prompts.isl.distribution",
        help='Distribution of the prompt length: {"mean": 500, "median": 300} is log-normal, {"peaks": [{"mean": 100, '
        '"stddev": 9, "weight": 3}, {"mean": 4000}]} a mixture, {"points": [{"value": 128, "weight": 3}, {"value": 512}]} '
        'these lengths alone; each may have "min" and "max".')
    seq_dist: Annotated[str, After(_readable)] | None = option("--seq-dist", "--sequence-distribution",
        group=_LENGTHS, metavar="DIST",
        place="dataset.prompts.sequence_distribution",
        help="Prompt and answer length drawn together: ISL,OSL:PERCENT;…, each length with |STDDEV if it varies.")
    range_ratio: Annotated[str, After(_is_ratio)] | None = option("--random-range-ratio", group=_LENGTHS, metavar="RATIO",
        place="dataset.prompts.random_range_ratio",
        help="Draw prompt and answer lengths evenly from a window around --isl and --osl: 0.2 is 20 percent to both sides. "
        '{"input": 0.2, "output": 0.5} has a ratio for each.')
    corpus_style: Word | None = option("--random-corpus-style", choices=STYLES, group=_LENGTHS, shown="vllm",
        place="dataset.prompts.random_corpus_style",
        help="The window of --random-range-ratio, and the order of random tokens, as a known load generator has them: vllm "
        "reaches to both sides of the mean; sglang from its share of the mean to the mean.")
    prompt_batch_size: int = option("--prompt-batch-size", "--batch-size-text", "--batch-size", "-b", default=1, ge=0,
        group=_LENGTHS, metavar="INT", cells=True, place="dataset.prompts.batch_size",
        help="Texts in one request, for endpoints that take several.")
    prompt_corpus: Word = option("--prompt-corpus", default="sonnet", choices=("sonnet", "coding", "random"), group=_LENGTHS,
        place="dataset.prompts.corpus",
        help="What prompts are made of: Shakespeare's sonnets, generated code, or random tokens.")

    # Conversations
    turns_mean: int = option("--conversation-turn-mean", "--session-turns-mean", default=1, ge=1, group=_SESSIONS,
        metavar="INT", cells=True, place="dataset.turns.mean", help="Mean number of turns of a conversation.")
    turns_stddev: int = option("--conversation-turn-stddev", "--session-turns-stddev", default=0, ge=0, group=_SESSIONS,
        metavar="INT", place="dataset.turns.stddev", help="Spread of the number of turns, normal.", shown="0")
    turn_delay_mean_ms: Finite = option("--conversation-turn-delay-mean", "--session-turn-delay-mean", default=0.0, ge=0,
        group=_SESSIONS, metavar="MS", shown="0", place="dataset.turn_delay.mean",
        help="Mean think time before each turn but the first.")
    turn_delay_stddev_ms: Finite = option("--conversation-turn-delay-stddev", "--session-turn-delay-stddev", default=0.0, ge=0,
        group=_SESSIONS, metavar="MS", shown="0", place="dataset.turn_delay.stddev", help="Spread of the think time, normal.")

    # Prefixes
    prefix_pool: int = option("--prompt-prefix-pool-size", "--prefix-prompt-pool-size", "--num-prefix-prompts", default=0, ge=0,
        group=_PREFIXES, metavar="INT", shown="none",
        place="dataset.prefix_prompts.pool_size",
        help="Number of prefixes; each conversation's first prompt begins with one of them, drawn at random.")
    prefix_length: int = option("--prompt-prefix-length", "--prefix-prompt-length", default=0, ge=0, group=_PREFIXES,
        metavar="TOKENS", shown="none", place="dataset.prefix_prompts.length",
        help="Length of each prefix; it comes on top of the prompt length.")

    # Rankings
    passages_mean: int = option("--rankings-passages-mean", default=10, ge=1, group=_RANKINGS, metavar="INT",
        place="dataset.rankings.passages.mean", help="Mean number of passages beside a query.")
    passages_stddev: int = option("--rankings-passages-stddev", default=0, ge=0, group=_RANKINGS, metavar="INT",
        place="dataset.rankings.passages.stddev", help="Spread of the number of passages, normal.", shown="0")
    passage_tokens_mean: int = option("--rankings-passages-prompt-token-mean", default=128, ge=1, group=_RANKINGS,
        metavar="TOKENS", place="dataset.rankings.passages.tokens.mean", help="Mean length of a passage.")
    passage_tokens_stddev: int = option("--rankings-passages-prompt-token-stddev", default=0, ge=0, group=_RANKINGS,
        metavar="TOKENS", place="dataset.rankings.passages.tokens.stddev", help="Spread of the length of a passage, normal.",
        shown="0")
    query_tokens_mean: int = option("--rankings-query-prompt-token-mean", default=32, ge=1, group=_RANKINGS,
        metavar="TOKENS", place="dataset.rankings.query.tokens.mean", help="Mean length of a query.")
    query_tokens_stddev: int = option("--rankings-query-prompt-token-stddev", default=0, ge=0, group=_RANKINGS,
        metavar="TOKENS", place="dataset.rankings.query.tokens.stddev", help="Spread of the length of a query, normal.",
        shown="0")

    @property
    def has_text(self) -> bool:
        """Whether turns have texts; without them they have media alone."""
        return self.prompt_batch_size > 0 and not self.is_off

    @property
    def is_off(self) -> bool:
        """Whether a prompt length of 0 switches texts off."""
        return self.isl == 0 and self.seq_dist is None and self.isl_distribution is None

    @property
    def prompts(self) -> Distribution | None:
        """The distribution of prompt lengths; None without one."""
        return distribution(self.isl_distribution) if self.isl_distribution is not None else None

    @property
    def ratios(self) -> Ratios | None:
        """The ratios of the windows of prompt and answer lengths; None without them."""
        return ratios(self.range_ratio) if self.range_ratio is not None else None

    @property
    def style(self) -> str:
        """Whose rule makes the windows: vllm's or sglang's."""
        return self.corpus_style or VLLM

    def draws_answers(self) -> bool:
        return self.seq_dist is not None or super().draws_answers()

    @property
    def expected_answer_tokens(self) -> float | None:
        if self.seq_dist is not None:
            return sum(pair.osl * pair.prob for pair in pairs(self.seq_dist)) / 100
        return super().expected_answer_tokens

    def problems(self, typed: dict[str, str]) -> list[str]:
        problems = Problems(typed)
        if self.media() and not self.has_text:
            without = "isl" if self.is_off else "prompt_batch_size"
            for field in ("isl_stddev", "range_ratio", "prefix_pool", "prefix_length"):
                if getattr(self, field):
                    problems.exclusive(without, field, "without text there is no use for it")
        elif not self.has_text:
            if self.is_off:
                isl = problems.flag("isl")
                problems.refuse(f"{isl} 0 switches text off, and there is nothing else to send", "give a length of at least 1")
            if self.prompt_batch_size == 0:
                flag = problems.flag("prompt_batch_size")
                problems.refuse(f"{flag} 0 leaves nothing to send", "give a number of at least 1")
        if self.seq_dist is not None:
            for field in ("isl", "isl_stddev", "isl_distribution", "osl", "osl_stddev", "osl_distribution"):
                if field in self.fields_set:
                    problems.exclusive("seq_dist", field, "the distribution says every length")
        if self.isl_distribution is not None:
            for field in ("isl", "isl_stddev"):
                if field in self.fields_set:
                    problems.exclusive("isl_distribution", field, "the distribution says every length")
        self._check_window(problems)
        if self.turn_delay_stddev_ms > 0 and "turn_delay_mean_ms" not in self.fields_set:
            problems.needs("turn_delay_stddev_ms", "turn_delay_mean_ms", "a spread has a mean")
        if self.prefix_length > 0 and self.prefix_pool == 0:
            problems.needs("prefix_length", "prefix_pool", "it says how many prefixes there are")
        if self.prefix_pool > 0 and self.prefix_length == 0:
            problems.needs("prefix_pool", "prefix_length", "it says how long a prefix is")
        pool = "prefix_pool" if self.prefix_pool > 0 else "prefix_length" if self.prefix_length > 0 else None
        if pool is not None:
            for field in self.given(_GENERATED):
                problems.exclusive(pool, field, "they are two ways to begin a conversation")
            for field in self.given(_VERBATIM):
                problems.exclusive(field, pool, "the one is given, the other is generated")
        return problems.messages + self.media_problems(typed) + super().problems(typed)

    def _check_window(self, problems: Problems) -> None:
        """Add what is wrong with ``--random-range-ratio`` and its style."""
        given = self.ratios
        if given is None:
            if self.corpus_style is not None and self.prompt_corpus != "random":
                why = "it says how lengths are drawn, or the tokens of --prompt-corpus random"
                problems.needs("corpus_style", "range_ratio", why)
            return
        flag, style = problems.flag("range_ratio"), self.style
        if self.seq_dist is not None:
            problems.exclusive("range_ratio", "seq_dist", "they are two ways to draw lengths")
            return
        for field in ("isl_stddev", "isl_distribution", "osl_stddev", "osl_distribution"):
            if field in self.fields_set:
                problems.exclusive("range_ratio", field, "lengths are drawn evenly or from another distribution")
        missing = [field for field in ("isl", "osl") if field not in self.fields_set]
        for field in missing:
            problems.needs("range_ratio", field, "a window lies around a length")
        if style == VLLM and max(given.input, given.output) == 1:
            problems.refuse(f"{flag} {self.range_ratio}: a ratio of vllm's windows is below 1", "give 0.99 at most")
        elif style == SGLANG and not given.one:
            hint = "give a number, or use --random-corpus-style vllm"
            problems.refuse(f"{flag} {self.range_ratio}: sglang's windows have one ratio", hint)
        elif not missing and self.isl and window(self.isl, given.input, style)[0] < 1:
            low, high = window(self.isl, given.input, style)
            given_isl = f"{problems.flag('isl')} {self.isl}"
            why = f"{flag} {self.range_ratio} with {given_isl} has prompts of {low} to {high} tokens, and one has at least 1"
            problems.refuse(why, "give a smaller ratio, or longer prompts")


_USUAL = {
    "isl": "--isl",
    "isl_stddev": "--isl-stddev",
    "isl_distribution": "--isl-distribution",
    "osl": "--osl",
    "osl_distribution": "--osl-distribution",
    "osl_stddev": "--osl-stddev",
    "seq_dist": "--seq-dist",
    "range_ratio": "--random-range-ratio",
    "corpus_style": "--random-corpus-style",
    "prompt_batch_size": "--prompt-batch-size",
    "turn_delay_mean_ms": "--session-turn-delay-mean",
    "turn_delay_stddev_ms": "--session-turn-delay-stddev",
    "prefix_pool": "--num-prefix-prompts",
    "prefix_length": "--prefix-prompt-length",
    "shared_system_length": "--shared-system-prompt-length",
    "user_context_length": "--user-context-prompt-length",
    "system_prompt": "--system-prompt",
    "system_prompt_file": "--system-prompt-file",
}
"""The flag of each option for messages, where none was typed."""
