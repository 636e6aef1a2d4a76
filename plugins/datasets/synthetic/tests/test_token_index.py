"""Texts by an index are those that decoding and counting give, for every tokenizer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf_dataset_synthetic.dataset import Synthetic
from aiperf_dataset_synthetic.options import SyntheticOptions

CHAT = Capabilities(path="/chat", system_message=True, multi_turn=True, tokenizes_input=True, produces_tokens=True)
NUMBERS = (*range(300), *range(30_000, 30_300))
"""The second ones repeat beginnings, so they continue elsewhere in the corpus."""
CHARACTERS = 100_269
"""Of the longer corpus; an index is made once so many tokens were asked for."""


class Pieces:
    """Tokens of up to three characters of a word with the space before it, and of single blanks."""

    name = "pieces"
    words = r" ?[^\s]+|\s"

    def __init__(self, *, promises: bool) -> None:
        self.counts_add_up = promises
        self.known: dict[str, int] = {}
        self.texts: list[str] = []
        self.characters = 0

    @property
    def size(self) -> int:
        return len(self.texts)

    def _id(self, piece: str) -> int:
        if piece not in self.known:
            self.known[piece] = len(self.texts)
            self.texts.append(piece)
        return self.known[piece]

    def encode(self, text: str) -> list[int]:
        self.characters += len(text)
        words = re.findall(self.words, text)
        # A word's end has whole pieces, so a cut inside a word gives other ones.
        return [self._id(piece) for word in words for piece in re.findall(r"(?s)^.{1,2}(?=(?:.{3})*$)|.{3}", word)]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.texts[number] for number in ids)

    def count(self, text: str) -> int:
        return len(self.encode(text))


class Marked(Pieces):
    """Each text has a token in front, which a text behind another one lacks."""

    def count(self, text: str) -> int:
        return super().count(text) + 1

    def count_behind(self, text: str) -> int:
        return super().count(text)


class OverWords(Pieces):
    """Breaks its promise: two words are a piece."""

    words = r" ?(?:of the|my love|return )|" + Pieces.words


class InContext(Pieces):
    """Breaks its promise between words: one behind a certain word is a token for each character."""

    behind = "the"

    def encode(self, text: str) -> list[int]:
        self.characters += len(text)
        words = re.findall(self.words, text)
        return [
            self._id(piece) for before, word in zip(["", *words], words, strict=False)
            for piece in (word if before.strip() == self.behind else re.findall(r"(?s).{1,3}", word))
        ]  # fmt: skip


class InRareContext(InContext):
    behind = "winter"


class Capitals(Pieces):
    """Its texts are other ones than those that were encoded."""

    def decode(self, ids: Sequence[int]) -> str:
        return super().decode(ids).upper()


class JoinedEnds(Pieces):
    """Drops a space before a comma where it decodes several tokens, as some decoders do."""

    def decode(self, ids: Sequence[int]) -> str:
        return super().decode(ids).replace(" th", "th") if len(ids) > 1 else super().decode(ids)


def texts(tokenizer: Any, **options: Any) -> list[tuple[tuple[str, ...], int | None]]:
    """Drawn behind a text that is long enough for an index to be made."""
    source = Synthetic(SyntheticOptions(**options), DatasetContext(100_000, 7, True, tokenizer, CHAT))
    assert source._writer is not None
    source._writer.text("long", 0, CHARACTERS)
    turns = [turn for conversation in source.chosen(NUMBERS) for turn in conversation.turns]
    return [(turn.texts, turn.input_tokens) for turn in turns]


OPTIONS = [
    {"isl": 13.0},
    {"isl": 30.0, "isl_stddev": 25.0},
    {"isl": 20.0, "prefix_pool": 3, "prefix_length": 9},
    {"isl": 12.0, "turns_mean": 2.0, "prompt_batch_size": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", [Pieces, Marked, OverWords, InContext, InRareContext, Capitals, JoinedEnds])
def test_an_index_changes_no_text_and_no_count(kind: type[Pieces], options: dict[str, Any]) -> None:
    assert texts(kind(promises=True), **options) == texts(kind(promises=False), **options)


@pytest.mark.parametrize("kind", [Pieces, Marked])
def test_an_index_of_code_changes_no_text_and_no_count(kind: type[Pieces]) -> None:
    options = {"isl": 30.0, "isl_stddev": 25.0, "prompt_corpus": "coding"}
    assert texts(kind(promises=True), **options) == texts(kind(promises=False), **options)


@pytest.mark.parametrize("corpus", ["sonnet", "coding"])
def test_an_index_changes_no_text_of_the_builtin_tokenizer(corpus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = pytest.importorskip("aiperf_tokenizer_builtin").Builtin().open("builtin")
    options = {"prompt_corpus": corpus, "isl": 40.0, "isl_stddev": 30.0}
    drawn = texts(tokenizer, **options)
    monkeypatch.setattr(type(tokenizer), "counts_add_up", False)
    assert drawn == texts(tokenizer, **options)


def test_an_index_encodes_the_corpus_a_few_times_however_many_texts_are_drawn() -> None:
    indexed, counted = Pieces(promises=True), Pieces(promises=False)
    texts(indexed, isl=500.0)
    texts(counted, isl=500.0)
    assert indexed.characters < counted.characters / 2


@pytest.mark.parametrize("kind", [Pieces, OverWords, InContext])
def test_the_length_of_a_drawn_text_is_the_one_asked_for(kind: type[Pieces]) -> None:
    tokenizer = kind(promises=True)
    drawn = texts(tokenizer, isl=25.0)
    counted = [tokenizer.count(text) for (text,), _ in drawn]
    assert counted == [tokens for _, tokens in drawn]
    assert set(counted) == {25}
