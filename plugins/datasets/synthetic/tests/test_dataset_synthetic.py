"""Synthetic conversations: exact, repeatable, streamed, distributed as asked."""

from __future__ import annotations

import hashlib
import itertools
import logging
import re
import statistics
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf_dataset_synthetic.code import code
from aiperf_dataset_synthetic.contract import Bytes, SyntheticContract
from aiperf_dataset_synthetic.corpus import coprime, open_corpus, sonnets
from aiperf_dataset_synthetic.dataset import Synthetic
from aiperf_dataset_synthetic.exact import fitted
from aiperf_dataset_synthetic.options import SyntheticOptions

CHAT = Capabilities(path="/chat", system_message=True, multi_turn=True, tokenizes_input=True, produces_tokens=True)
PLAIN = Capabilities(path="/completions", tokenizes_input=True, produces_tokens=True)

RANKS = Capabilities(path="/rerank", named=("query", "passages"), tokenizes_input=True)

LENGTHS = (*range(1, 301), 550, 4096)


class Chunks:
    """Words with the space before them, in pieces of up to three characters: a cut inside a word moves the pieces."""

    name = "chunks"

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.pieces: list[str] = []
        self.encoded_characters = 0
        for word in ("an", " an", "day", " day", "\ufffd", "\n", "  ", "", "Zoë", " ß", "x"):
            self._id(word)

    @property
    def size(self) -> int:
        return len(self.pieces)

    def _id(self, piece: str) -> int:
        if piece not in self.known:
            self.known[piece] = len(self.pieces)
            self.pieces.append(piece)
        return self.known[piece]

    def encode(self, text: str) -> list[int]:
        self.encoded_characters += len(text)
        words = re.findall(r" ?[^\s]+|\s+(?!\S)|\s", text)
        # Pieces are counted from the word's end, so that a shorter word has other pieces.
        return [self._id(piece) for word in words for piece in re.findall(r"(?s)^.{1,2}(?=(?:.{3})*$)|.{3}", word)]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.pieces[one] for one in ids)

    def count(self, text: str) -> int:
        return len(self.encode(text))


class Even(Bytes):
    """Two tokens a byte: no text is an odd number of tokens long."""

    name = "even"

    def encode(self, text: str) -> list[int]:
        return [half for byte in text.encode() for half in (byte, byte)]

    def decode(self, ids: Sequence[int]) -> str:
        return super().decode(ids[::2])


class FromTheHub:
    """A tokenizer of the tokenizers package, as the kernel would see it."""

    def __init__(self, name: str, tokenizer: Any) -> None:
        self.name, self.tokenizer = name, tokenizer

    @property
    def size(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids)))

    def count(self, text: str) -> int:
        return len(self.encode(text))


def trained(kind: str) -> FromTheHub:
    """A small tokenizer of the three families that there are."""
    tokenizers = pytest.importorskip("tokenizers")
    from tokenizers import decoders, models, pre_tokenizers, trainers

    if kind == "wordpiece":
        made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.pre_tokenizer, made.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
        trainer: Any = trainers.WordPieceTrainer(vocab_size=800, special_tokens=["[UNK]"], show_progress=False)
    elif kind == "metaspace":
        made = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
        made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        trainer = trainers.BpeTrainer(vocab_size=800, special_tokens=["<unk>"], show_progress=False)
    else:
        made = tokenizers.Tokenizer(models.BPE())
        made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=800, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator([sonnets()[:30_000], code()[:30_000]], trainer)
    return FromTheHub(kind, made)


@pytest.fixture(scope="module", params=["bytes", "chunks", "builtin", "byte-level", "metaspace", "wordpiece"])
def tokenizer(request: pytest.FixtureRequest) -> Any:
    if request.param == "builtin":
        return pytest.importorskip("aiperf_tokenizer_builtin").Builtin().open("builtin")
    return {"bytes": Bytes, "chunks": Chunks}.get(request.param, lambda: trained(request.param))()


def made(
    entries: int = 1, *, seed: int = 7, seeded: bool = True, tokenizer: Any = None, can: Capabilities = CHAT, **options: Any
) -> Synthetic:
    context = DatasetContext(entries, seed, seeded, tokenizer or Bytes(), can)
    return Synthetic(SyntheticOptions(**options), context)


# Exact lengths


@pytest.mark.parametrize("corpus", ["sonnet", "coding"])
def test_a_prompt_is_exactly_as_long_as_asked(tokenizer: Any, corpus: str) -> None:
    source = open_corpus(corpus, tokenizer, 3)
    wrong = []
    for length in LENGTHS:
        text, off = fitted(tokenizer, [source.window(f"prompt.{again}", length) for again in range(8)], length)
        if off or tokenizer.count(text) != length:
            wrong.append((length, tokenizer.count(text), off))
        assert text == text.strip()
    assert wrong == []


def test_random_tokens_are_exactly_as_long_as_asked(tokenizer: Any) -> None:
    source = open_corpus("random", tokenizer, 3)
    for length in (*range(1, 40), 550):
        text, off = fitted(tokenizer, [source.window(f"prompt.{again}", length) for again in range(8)], length)
        assert (tokenizer.count(text), off) == (length, 0)
        assert "\ufffd" not in text


def test_a_prefix_comes_on_top_of_the_prompt(tokenizer: Any) -> None:
    for length in (1, 2, 13, 100):
        for entry in made(4, tokenizer=tokenizer, isl=length, prefix_pool=2, prefix_length=29):
            text = entry.turns[0].text
            assert tokenizer.count(text) == 29 + length
            assert entry.turns[0].input_tokens == 29 + length


def test_system_and_context_are_exactly_as_long_as_asked(tokenizer: Any) -> None:
    for entry in made(5, tokenizer=tokenizer, isl=20, shared_system_length=77, user_context_length=33):
        assert tokenizer.count(entry.system) == 77
        assert tokenizer.count(entry.context) == 33
        assert tokenizer.count(entry.turns[0].text) == 20


@pytest.mark.parametrize(("in_system", "options", "lengths"), [
    (False, {}, [30, 50]), (True, {}, [30, 50]), (True, {"system_prompt": "s"}, [50, 50]), (False, {"isl": 5}, [1, 5]),
])  # fmt: skip
def test_a_marker_takes_the_place_of_tokens_of_the_first_turn(
    in_system: bool, options: dict[str, Any], lengths: list[int]
) -> None:
    context = DatasetContext(1, 7, True, Bytes(), CHAT, marker_tokens=20, marker_in_system=in_system)
    (conversation,) = Synthetic(SyntheticOptions(**{"isl": 50, "turns_mean": 2, **options}), context)
    assert [len(turn.text) for turn in conversation.turns] == lengths


def test_missed_lengths_are_reported_once_with_their_number(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        entries = list(made(6, tokenizer=Even(), isl=11))
    assert [record.getMessage() for record in caplog.records] == [
        "6 of 6 synthetic texts miss the requested length under the tokenizer 'even' by up to 1 tokens"
    ]
    assert all(entry.turns[0].input_tokens == Even().count(entry.turns[0].text) for entry in entries)


def test_exact_lengths_are_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    list(made(3, tokenizer=Even(), isl=10))
    assert caplog.records == []


def test_input_tokens_are_given_only_for_a_lone_text() -> None:
    def known(**options: Any) -> list[int | None]:
        (entry,) = made(1, isl=30, **options)
        return [turn.input_tokens for turn in entry.turns]

    assert known() == [30]
    assert known(turns_mean=3) == [30, None, None]
    assert known(system_prompt="Be brief.") == [None]
    assert known(user_context_length=5) == [None]
    assert known(prompt_batch_size=2) == [None]


# The same for the same seed


EVERYTHING = {
    "isl": 40, "isl_stddev": 9.0, "osl": 20, "osl_stddev": 5.0, "turns_mean": 3, "turns_stddev": 1,
    "turn_delay_mean_ms": 100.0, "turn_delay_stddev_ms": 30.0, "shared_system_length": 12, "user_context_length": 9,
}  # fmt: skip


@pytest.mark.parametrize("corpus", ["sonnet", "coding", "random"])
def test_an_entry_depends_on_the_seed_and_its_number_alone(corpus: str) -> None:
    whole = list(made(30, prompt_corpus=corpus, **EVERYTHING))
    assert list(made(30, prompt_corpus=corpus, **EVERYTHING)) == whole
    assert list(made(12, prompt_corpus=corpus, **EVERYTHING)) == whole[:12]
    backwards = made(30, prompt_corpus=corpus, **EVERYTHING)
    assert [backwards.entry(number) for number in reversed(range(30))] == whole[::-1]
    assert list(made(30, seed=8, prompt_corpus=corpus, **EVERYTHING)) != whole


def test_an_entry_is_this_one() -> None:
    (entry,) = made(1, seed=1, isl=24, osl=5)
    assert entry.id == "session_000000"
    assert entry.turns[0].texts == ("times refigur'd thee:\nTh",)


@pytest.mark.parametrize(
    ("options", "digest"),
    [
        ({"isl": 40.0, "isl_stddev": 9.0, "osl": 20.0, "osl_stddev": 5.0}, "0c0b0232bd5b4be1"),
        ({"isl": 30.0, "prompt_corpus": "coding", "prefix_pool": 3, "prefix_length": 8}, "3e28a76fffa4cc01"),
        ({"isl": 12.0, "prompt_corpus": "random", "turns_mean": 3.0, "turns_stddev": 1.0}, "d99b1f5adbfb539f"),
    ],
)
def test_a_seed_gives_the_same_entries_in_every_version(options: dict[str, Any], digest: str) -> None:
    source = made(60, **options)
    entries = [source.entry(number) for number in (*range(60), 20_000, 20_001)]
    drawn = [(entry.id, [(turn.texts, turn.max_tokens, turn.input_tokens) for turn in entry.turns]) for entry in entries]
    assert hashlib.sha256(repr(drawn).encode()).hexdigest()[:16] == digest


def test_lengths_do_not_depend_on_what_else_is_drawn() -> None:
    plain = [entry.turns[0].input_tokens for entry in made(20, isl=40, isl_stddev=9.0)]
    more = [entry.turns[0].input_tokens for entry in made(20, isl=40, isl_stddev=9.0, osl=7, osl_stddev=2.0, turns_mean=2)]
    assert plain == more


def test_ids_are_readable_with_a_seed_and_uuids_without() -> None:
    assert [entry.id for entry in made(2)] == ["session_000000", "session_000001"]
    ids = [entry.id for entry in made(200, seeded=False, isl=1)]
    assert len(set(ids)) == 200
    assert all(uuid.UUID(one).version == 4 and str(uuid.UUID(one)) == one for one in ids)
    assert {uuid.UUID(one).variant for one in ids} == {uuid.RFC_4122}


# Streams, and reads no more than it needs


def test_entries_are_made_as_they_are_asked_for() -> None:
    endless: Iterator[Conversation] = iter(made(10**12, isl=5))
    assert len(list(itertools.islice(endless, 3))) == 3


def test_a_short_run_tokenizes_little_of_the_corpus() -> None:
    chunks = Chunks()
    list(made(2, tokenizer=chunks, isl=20))
    assert chunks.encoded_characters < 2_000


def test_a_long_text_goes_on_at_the_beginning_of_the_corpus() -> None:
    entry = made(1, isl=len(sonnets()) + 5000).entry(0)
    text = entry.turns[0].text
    assert len(text) == len(sonnets()) + 5000
    assert text.count("Shall I compare thee to a summer's day?") >= 1
    assert "water cools not love.\nFrom fairest creatures" in text


# No accidental prefixes


@pytest.mark.parametrize("corpus", ["sonnet", "coding"])
def test_no_two_prompts_begin_alike(corpus: str) -> None:
    texts = sorted(entry.turns[0].text[:40] for entry in made(3000, isl=45, prompt_corpus=corpus))
    shared = [len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(*two, strict=True))))
              for two in itertools.pairwise(texts)]  # fmt: skip
    assert max(shared) < 32


def test_repeated_beginnings_diverge_after_eight_tokens() -> None:
    entries = made(1, isl=100)
    source = open_corpus("sonnet", Bytes(), 7)
    words = next(n for n in itertools.count(1000) if open_word(source, n) == open_word(source, 0))
    first, again = entries.entry(0).turns[0].text, entries.entry(words).turns[0].text
    assert first[:8] == again[:8]
    assert first[:32] != again[:32]


def open_word(source: Any, number: int) -> list[int]:
    return list(source.window("synthetic.prompt.0", number).first(8))


def test_texts_of_a_batch_differ() -> None:
    for entry in made(10, isl=30, prompt_batch_size=16):
        assert len(set(entry.turns[0].texts)) == 16


def test_turns_of_a_conversation_differ() -> None:
    (entry,) = made(1, isl=30, turns_mean=12)
    assert len({turn.text for turn in entry.turns}) == 12


def test_a_pool_has_so_many_prefixes_and_the_rest_differs() -> None:
    texts = [entry.turns[0].text for entry in made(300, isl=50, prefix_pool=4, prefix_length=40, turns_mean=2)]
    assert len({text[:40] for text in texts}) == 4
    assert len({text[41:] for text in texts}) == 300


def test_only_the_first_turn_has_the_prefix() -> None:
    (entry,) = made(1, isl=50, prefix_pool=1, prefix_length=40, turns_mean=2)
    assert [len(turn.text) for turn in entry.turns] == [90, 50]


def test_the_system_prompt_is_shared_and_the_context_is_not() -> None:
    entries = list(made(50, isl=5, shared_system_length=60, user_context_length=40))
    assert len({entry.system for entry in entries}) == 1
    assert len({entry.context for entry in entries}) == 50


# Distributions


def lengths(entries: int, **options: Any) -> list[int]:
    return [len(entry.turns[0].text) for entry in made(entries, **options)]


def test_a_length_without_spread_is_constant() -> None:
    assert set(lengths(50, isl=17)) == {17}
    assert {entry.turns[0].max_tokens for entry in made(50, isl=1, osl=9)} == {9}


def test_the_answer_length_is_left_to_the_model_unless_asked() -> None:
    assert {entry.turns[0].max_tokens for entry in made(5, isl=1)} == {None}


def test_lengths_are_normal() -> None:
    drawn = lengths(2000, isl=100, isl_stddev=20.0)
    assert statistics.fmean(drawn) == pytest.approx(100, abs=1.5)
    assert statistics.stdev(drawn) == pytest.approx(20, abs=1.2)
    answers = [entry.turns[0].max_tokens or 0 for entry in made(2000, isl=1, osl=300, osl_stddev=30.0)]
    assert statistics.fmean(answers) == pytest.approx(300, abs=2.5)


def test_lengths_are_positive_however_wide_the_spread() -> None:
    drawn = lengths(500, isl=1, isl_stddev=50.0)
    assert min(drawn) >= 1
    assert statistics.fmean(drawn) == pytest.approx(41, abs=5)  # a normal cut at 0: the spread times sqrt(2/pi), about


def test_turns_are_normal_and_at_least_one() -> None:
    counts = [len(entry.turns) for entry in made(2000, isl=1, turns_mean=4, turns_stddev=2)]
    assert min(counts) == 1
    assert statistics.fmean(counts) == pytest.approx(4.1, abs=0.15)  # what falls below zero is drawn again
    assert {len(entry.turns) for entry in made(20, isl=1, turns_mean=3)} == {3}


def test_delays_stand_before_every_turn_but_the_first() -> None:
    entries = list(made(700, isl=1, turns_mean=4, turn_delay_mean_ms=500.0, turn_delay_stddev_ms=50.0))
    assert {entry.turns[0].delay_ms for entry in entries} == {None}
    delays = [turn.delay_ms for entry in entries for turn in entry.turns[1:]]
    assert None not in delays
    assert statistics.fmean(delay or 0 for delay in delays) == pytest.approx(500, abs=4)


def test_delays_without_spread_are_exact() -> None:
    entry = made(1, isl=1, turns_mean=3, turn_delay_mean_ms=150.0).entry(0)
    assert [turn.delay_ms for turn in entry.turns] == [None, 150.0, 150.0]


def test_no_mean_is_no_delay() -> None:
    entry = made(1, isl=1, turns_mean=2, turn_delay_mean_ms=0.0).entry(0)
    assert entry.turns[1].delay_ms is None


def test_prompt_and_answer_are_drawn_together() -> None:
    found = [
        (entry.turns[0].input_tokens, entry.turns[0].max_tokens)
        for entry in made(2000, seq_dist="30,10:25;60,20:75")
    ]
    assert set(found) == {(30, 10), (60, 20)}
    assert found.count((30, 10)) / 2000 == pytest.approx(0.25, abs=0.03)


def test_pairs_have_spreads_of_their_own() -> None:
    found = [entry.turns[0] for entry in made(1500, seq_dist="80|10,40|5:100")]
    assert statistics.stdev(turn.input_tokens or 0 for turn in found) == pytest.approx(10, abs=0.8)
    assert statistics.stdev(turn.max_tokens or 0 for turn in found) == pytest.approx(5, abs=0.5)


# System prompts as given


def test_a_given_system_prompt_is_sent_as_it_is(tmp_path: Path) -> None:
    assert made(1, isl=1, system_prompt=" Be brief.\n").entry(0).system == " Be brief.\n"
    path = tmp_path / "prompt.txt"
    path.write_text("Antworte auf Deutsch: äöü.\n", encoding="utf-8")
    assert made(1, isl=1, system_prompt_file=path).entry(0).system == "Antworte auf Deutsch: äöü.\n"


@pytest.mark.parametrize("content", [b"", b"\xff\xfe"])
def test_a_system_prompt_that_cannot_be_read_is_said(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "prompt.txt"
    path.write_bytes(content)
    with pytest.raises(BadDataset, match=r"prompt\.txt"):
        made(1, isl=1, system_prompt_file=path)


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"system_prompt": "x"}, "--system-prompt"),
        ({"shared_system_length": 3}, "--shared-system-prompt-length"),
        ({"user_context_length": 3}, "--user-context-prompt-length"),
    ],
)
def test_messages_need_an_endpoint_that_has_them(options: dict[str, Any], flag: str) -> None:
    with pytest.raises(BadDataset) as caught:
        made(1, can=PLAIN, **options)
    assert caught.value.message.startswith(f"{flag} needs an endpoint type")
    assert "--num-prefix-prompts" in caught.value.hints[0]


def test_no_tokenizer_is_a_sentence() -> None:
    options = SyntheticOptions()
    with pytest.raises(BadDataset, match="tokenizer"):
        Synthetic(options, DatasetContext(1, 1, True, None, PLAIN))


def test_a_vocabulary_without_text_is_a_sentence() -> None:
    class Nothing(Bytes):
        def decode(self, ids: Sequence[int]) -> str:
            return "\ufffd"

    with pytest.raises(BadDataset, match="no token"):
        made(1, tokenizer=Nothing(), prompt_corpus="random").entry(0)


# Corpora


def test_the_sonnets_are_all_there() -> None:
    poems = [poem.splitlines() for poem in sonnets().strip().split("\n\n")]
    assert len(poems) == 154
    assert {number: len(poem) for number, poem in enumerate(poems, 1) if len(poem) != 14} == {99: 15, 126: 12}
    assert poems[17][0] == "Shall I compare thee to a summer's day?"
    assert all(32 <= ord(character) < 127 for poem in poems for line in poem for character in line)


def test_the_code_is_long_and_the_same_everywhere() -> None:
    text = code()
    assert 100_000 <= len(text) < 110_000
    assert code() == text
    assert text.isascii()
    kinds = ("def ", "class ", "func (", "export async function", "$ curl", "@@ -", "git commit")
    assert [kind for kind in kinds if text.count(kind) < 10] == []


@pytest.mark.parametrize(("near", "size", "found"), [(1, 1, 1), (0, 7, 1), (6, 12, 7), (5, 10, 7), (618, 1000, 619)])
def test_a_stride_has_no_factor_in_common_with_the_size(near: int, size: int, found: int) -> None:
    assert coprime(near, size) == found


class TestSyntheticKeepsTheContract(SyntheticContract):
    pass


def ranks(entries: int = 4, capabilities: Capabilities = RANKS, **options: Any) -> list[Conversation]:
    return list(Synthetic(SyntheticOptions(**options), DatasetContext(entries, 5, True, Bytes(), capabilities)))


def test_a_turn_of_a_ranking_has_a_query_and_passages_of_their_lengths() -> None:
    (first, *others) = ranks(passages_mean=3, passage_tokens_mean=40, query_tokens_mean=20)
    (turn,) = first.turns
    assert [*map(len, turn.texts)] == [20, 40, 40, 40]
    assert (turn.texts_of("query"), turn.texts_of("passages")) == (turn.texts[:1], turn.texts[1:])
    texts = [text for each in (first, *others) for text in each.turns[0].texts]
    assert len(set(texts)) == 16, "no two are alike"
    assert first == ranks(1, passages_mean=3, passage_tokens_mean=40, query_tokens_mean=20)[0]


def test_by_default_a_ranking_has_ten_passages_of_128_tokens_and_a_query_of_32() -> None:
    (turn,) = ranks(1)[0].turns
    assert [*map(len, turn.texts)] == [32, *[128] * 10]


def test_numbers_and_lengths_of_passages_vary_as_asked_for() -> None:
    turns = [each.turns[0] for each in ranks(200, passages_mean=6, passages_stddev=2, passage_tokens_mean=30,
             passage_tokens_stddev=5, query_tokens_mean=20, query_tokens_stddev=4)]  # fmt: skip
    counts = [len(turn.texts_of("passages")) for turn in turns]
    lengths = [len(text) for turn in turns for text in turn.texts_of("passages")]
    queries = [len(turn.texts[0]) for turn in turns]
    for values, mean, stddev in ((counts, 6, 2), (lengths, 30, 5), (queries, 20, 4)):
        assert statistics.mean(values) == pytest.approx(mean, abs=0.5)
        assert statistics.pstdev(values) == pytest.approx(stddev, rel=0.25)


@pytest.mark.parametrize(("capabilities", "options", "flag"), [
    (RANKS, {"isl": 5}, "--isl has no use"),
    (RANKS, {"isl_stddev": 1.0}, "--isl-stddev has no use"),
    (RANKS, {"prompt_batch_size": 2}, "--batch-size-text has no use"),
    (RANKS, {"turns_mean": 2}, "--session-turns-mean has no use"),
    (CHAT, {"passages_mean": 3}, "--rankings-passages-mean has no use"),
    (PLAIN, {"query_tokens_stddev": 3}, "--rankings-query-prompt-token-stddev has no use"),
])  # fmt: skip
def test_options_of_rankings_and_of_prompts_are_refused_where_they_have_no_use(
    capabilities: Capabilities, options: dict[str, Any], flag: str
) -> None:
    with pytest.raises(BadDataset, match=flag):
        ranks(1, capabilities, **options)


def test_the_predecessors_fields_are_those_of_a_ranking() -> None:
    def made(capabilities: Capabilities, name: str) -> Synthetic:
        return Synthetic(SyntheticOptions(), DatasetContext(1, 5, True, Bytes(), capabilities, name=name))

    assert list(made(RANKS, "queries, passages")) == ranks(1)
    with pytest.raises(BadDataset, match="synthetic:queries,passages: this endpoint type has no query and passages"):
        made(CHAT, "queries,passages")
    with pytest.raises(BadDataset, match="synthetic:colours: the fields that can be generated are queries,passages"):
        made(RANKS, "colours")


# Windows


def test_lengths_of_a_window_are_even_within_it_and_reach_both_ends() -> None:
    source = made(3000, isl=20, osl=10, range_ratio="0.25")
    turns = [entry.turns[0] for entry in source]
    prompts, answers = [len(turn.text) for turn in turns], [turn.max_tokens or 0 for turn in turns]
    assert (min(prompts), max(prompts)) == (15, 25)
    assert (min(answers), max(answers)) == (7, 13)
    assert all(3000 / 11 * 0.75 < prompts.count(length) < 3000 / 11 * 1.25 for length in range(15, 26))
    assert abs(statistics.correlation(prompts, answers)) < 0.1


def test_a_window_of_sglang_ends_at_the_mean_and_begins_at_its_share() -> None:
    turns = [entry.turns[0] for entry in made(600, isl=20, osl=3, range_ratio="0.25", corpus_style="sglang")]
    assert {len(turn.text) for turn in turns} == set(range(5, 21))
    assert {turn.max_tokens for turn in turns} == {1, 2, 3}


def test_prompts_and_answers_may_have_a_ratio_each_and_turns_and_texts_a_length_each() -> None:
    options = {"isl": 40, "osl": 10, "range_ratio": '{"input": 0.5, "output": 0}', "turns_mean": 2, "prompt_batch_size": 2}
    (entry,) = made(1, **options)
    assert [turn.max_tokens for turn in entry.turns] == [10, 10]
    assert len({len(text) for turn in entry.turns for text in turn.texts}) > 1


def test_a_ratio_of_nothing_is_the_mean() -> None:
    turns = [entry.turns[0] for entry in made(9, isl=8, osl=4, range_ratio="0")]
    assert {(len(turn.text), turn.max_tokens) for turn in turns} == {(8, 4)}


def test_lengths_of_a_window_depend_on_the_seed_and_the_number_alone() -> None:
    options: dict[str, Any] = {"isl": 30, "osl": 9, "range_ratio": "0.4"}
    source = list(made(40, **options))
    assert [made(100, **options).entry(number) for number in (39, 3)] == [source[39], source[3]]
    assert made(40, seed=8, **options).entry(3) != source[3]


def test_random_tokens_in_order_follow_one_another_in_the_vocabulary() -> None:
    class Letters(Bytes):
        """Every id is a readable letter."""

        def decode(self, ids: Sequence[int]) -> str:
            return "".join(chr(0x4E00 + one) for one in ids)

        def encode(self, text: str) -> list[int]:
            return [ord(one) - 0x4E00 for one in text]

    drawn = [entry.turns[0].text for entry in made(30, tokenizer=Letters(), isl=9, prompt_corpus="random", corpus_style="vllm")]
    ids = [Letters().encode(text) for text in drawn]
    assert all(second == (first + 1) % 256 for one in ids for first, second in itertools.pairwise(one))
    assert len({one[0] for one in ids}) > 20
    scattered = Letters().encode(made(1, tokenizer=Letters(), isl=9, prompt_corpus="random").entry(0).turns[0].text)
    assert any(second != (first + 1) % 256 for first, second in itertools.pairwise(scattered))
