"""The contract of tokenizers."""

from __future__ import annotations

import shutil
import tempfile
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import ClassVar

import pytest
from aiperf.sdk.tokenizer import Tokenizer, TokenizerSource, adds_up, blank, count_behind, end_id, files

from aiperf_testing.findings import shown, unlike
from aiperf_testing.manifests import check_row

TEXTS = (
    "",
    " ",
    "Hello, world!",
    "  two  spaces\tand a tab\nand lines\r\n\r\n",
    "def f(x: int) -> int:\n    return x ** 2  # squared\n",
    "Grüße aus Köln, çà et là, ñandú",
    "Привет, как дела?",
    "Γειά σου Κόσμε",
    "你好，世界。今天天气很好",
    "こんにちは世界",
    "안녕하세요 세계",
    "مرحبا بالعالم",
    "שלום עולם",
    "नमस्ते दुनिया",
    "สวัสดีชาวโลก",
    "🦜🇩🇪👩‍👩‍👧 emoji",
    "e\u0301 and \u00e9",
    "<|endoftext|> is text here, and so are </s> and [CLS]",
    "0123456789 3.14159 1e-9",
    "a" * 2000,
)


class TokenizerContract:
    """Subclass with an open tokenizer::

        class TestMineKeepsTheContract(TokenizerContract):
            source = Mine
            tokenizer = Mine().open("mine")

    source: the registered source; None skips the check of its manifest.
    exact: decoding gives the same text; False for vocabularies that normalise.
    """

    tokenizer: ClassVar[Tokenizer]
    source: ClassVar[type[TokenizerSource] | None] = None
    exact: ClassVar[bool] = True

    def test_its_manifest_says_what_it_is(self) -> None:
        if self.source is None:
            pytest.skip("no source is named")
        check_row("tokenizers", self.source)

    @pytest.mark.parametrize("text", TEXTS)
    def test_text_survives_the_round_trip(self, text: str) -> None:
        back = self.tokenizer.decode(self.tokenizer.encode(text))
        if self.exact:
            assert back == text, (
                unlike(back, text, "decode must give the text whose ids encode gave, or set the contract's exact = False")
            )
        else:  # normalisation changes a text only once
            assert self.tokenizer.decode(self.tokenizer.encode(back)) == back, (
                "a decoded text changes again in a second round: normalise it once"
            )

    @pytest.mark.parametrize("text", TEXTS)
    def test_the_count_is_the_number_of_ids(self, text: str) -> None:
        assert self.tokenizer.count(text) == len(self.tokenizer.encode(text)), (
            unlike(self.tokenizer.count(text), len(self.tokenizer.encode(text)), "count is the number of ids")
        )

    def test_counts_of_parts_add_up(self) -> None:
        count, behind = self.tokenizer.count, count_behind(self.tokenizer)
        if not adds_up(self.tokenizer):
            pytest.skip("this tokenizer makes no such promise")
        for first, second in product(TEXTS, TEXTS):
            text = f"{first} {second}"
            for cut in (at for at in range(1, len(text)) if text[at] == " " and not blank(text[at - 1])):
                assert count(text) == count(text[:cut]) + behind(text[cut:]), f"{text[:cut]!r} and {text[cut:]!r}"

    def test_a_chat_template_counts_what_is_around_the_texts(self) -> None:
        template = getattr(self.tokenizer, "chat_template", None)
        if template is None:
            pytest.skip("this tokenizer has no chat template")
        texts = [text for text in TEXTS if text.strip()]
        for text, answer in zip(texts, reversed(texts), strict=True):
            chat = [{"role": "user", "content": text}]
            longer = [*chat, {"role": "assistant", "content": answer}, *chat]
            before = deepcopy(longer)
            count, whole = template.count(chat), template.count(longer)
            assert count >= template.count(chat, asks=False) > 0, "what opens the answer is no part of the count"
            assert whole > count, f"{answer!r} and a question count nothing"
            assert (template.count(chat), template.count(longer)) == (count, whole), (
                "counts with a chat template are others than expected: count what stands around the texts, too"
            )
            assert longer == before, "counting changed the messages"
            ids = getattr(template, "ids", None)
            assert ids is None or len(ids(longer)) == whole, "the template gives another number of ids than it counts"

    def test_the_id_of_the_end_is_one(self) -> None:
        known = end_id(self.tokenizer)
        assert known is None or (isinstance(known, int) and known >= 0), unlike(known, "an id, or None", "see end_id")

    def test_its_files_open_the_same_tokenizer_elsewhere(self) -> None:
        named = files(self.tokenizer)
        if self.source is None or not named:
            pytest.skip("this tokenizer sends no files")
        open_from = getattr(self.source(), "open_from", None)
        assert open_from is not None, "the tokenizer has files, and its source no open_from(directory, name) that reads them"
        with tempfile.TemporaryDirectory() as place:
            for name, path in named.items():
                shutil.copyfile(path, Path(place, name))
            other: Tokenizer = open_from(Path(place), "another")
            assert other.name == "another", unlike(other.name, "another", "open_from gives it the name that it is asked for")
            same = other.size == self.tokenizer.size and end_id(other) == end_id(self.tokenizer)
            assert same, "it has another size there, or another end"
            for text in TEXTS:
                assert other.encode(text) == self.tokenizer.encode(text), f"{shown(text)} has other ids there: send all files"
            template, there = (getattr(each, "chat_template", None) for each in (self.tokenizer, other))
            assert (template is None) == (there is None), "it has no chat template there: send its file, too"
            if template is not None and there is not None:
                chat = [{"role": "user", "content": "Hello, world!"}]
                assert there.count(chat) == template.count(chat), "its chat template counts another number there"

    def test_ids_are_in_range(self) -> None:
        for text in TEXTS:
            assert all(0 <= number < self.tokenizer.size for number in self.tokenizer.encode(text)), (
                f"an id of {shown(text)} is not within 0 and {self.tokenizer.size - 1}: size is the greatest id and one"
            )

    def test_no_text_is_no_ids(self) -> None:
        assert self.tokenizer.encode("") == [], (
            unlike(self.tokenizer.encode(""), [], "no text has no ids: leave special tokens out")
        )
        assert self.tokenizer.decode([]) == "", unlike(self.tokenizer.decode([]), "", "no ids are no text")

    def test_the_same_text_gives_the_same_ids(self) -> None:
        for text in TEXTS:
            assert self.tokenizer.encode(text) == self.tokenizer.encode(text), (
                f"{shown(text)} has other ids the second time: encode depends on the text alone"
            )

    def test_half_a_character_is_replaced_and_never_fails(self) -> None:
        ids = self.tokenizer.encode("🦜你")
        for cut in range(len(ids) + 1):
            assert isinstance(self.tokenizer.decode(ids[:cut]), str), (
                "half a character is no text: replace what can't be decoded with U+FFFD"
            )
            assert isinstance(self.tokenizer.decode(ids[cut:]), str), (
                "half a character is no text: replace what can't be decoded with U+FFFD"
            )

    def test_every_ordinary_id_is_some_text(self) -> None:
        step = max(1, self.tokenizer.size // 500)
        for number in range(0, self.tokenizer.size, step):
            assert isinstance(self.tokenizer.decode([number]), str), f"the id {number} is no text: decode every id below size"

    def test_it_has_a_name(self) -> None:
        assert self.tokenizer.name, "the tokenizer has no name: the report shows it"
