"""Prompts that are as long as asked with the chat template around them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf_dataset_synthetic.contract import Bytes
from aiperf_dataset_synthetic.corpus import sonnets
from aiperf_dataset_synthetic.dataset import Synthetic
from aiperf_dataset_synthetic.options import SyntheticOptions

CHAT = Capabilities(path="/chat", system_message=True, multi_turn=True, tokenizes_input=True, produces_tokens=True)


class Even(Bytes):
    """Two tokens a byte: no text is an odd number of tokens long."""

    name = "even"

    def encode(self, text: str) -> list[int]:
        return [half for byte in text.encode() for half in (byte, byte)]

    def decode(self, ids: Sequence[int]) -> str:
        return super().decode(ids[::2])


class Trained(Bytes):
    """Pieces of words, with the space before them ("byte-level") or as a piece's mark ("metaspace")."""

    def __init__(self, kind: str) -> None:
        tokenizers = pytest.importorskip("tokenizers")
        from tokenizers import decoders, models, pre_tokenizers, trainers

        self.name, spaced = kind, kind == "metaspace"
        self._made = made = tokenizers.Tokenizer(models.BPE(byte_fallback=spaced, unk_token="<unk>" if spaced else None))
        made.pre_tokenizer = pre_tokenizers.Metaspace() if spaced else pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.Metaspace() if spaced else decoders.ByteLevel()
        alphabet = [] if spaced else pre_tokenizers.ByteLevel.alphabet()
        special = ["<unk>"] if spaced else []
        made.train_from_iterator([sonnets()[:30_000]], trainers.BpeTrainer(
            vocab_size=800, initial_alphabet=alphabet, special_tokens=special, show_progress=False))  # fmt: skip
        self.size = made.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        return list(self._made.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._made.decode(list(ids)))


class Instructions:
    """A template of plain text, whose words may merge with those of a message; without a system message it adds one."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def text(self, messages: Sequence[Mapping[str, Any]], *, asks: bool = True) -> str:
        said = [f"[INST] {each['content'].strip()} [/INST]" if each["role"] == "user" else each["content"] for each in messages]
        begin = "" if messages[0]["role"] == "system" else "You help. "
        return begin + "\n".join(said) + (" Well," if asks else "")

    def count(self, messages: Sequence[Mapping[str, Any]], *, asks: bool = True) -> int:
        return int(self._tokenizer.count(self.text(messages, asks=asks)))


def made(tokenizer: Any, entries: int = 1, **options: Any) -> Synthetic:
    context = DatasetContext(entries, 7, True, tokenizer, CHAT, chat_template=Instructions(tokenizer))
    return Synthetic(SyntheticOptions(**options), context)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


@pytest.fixture(scope="module", params=["bytes", "byte-level", "metaspace"])
def tokenizer(request: pytest.FixtureRequest) -> Any:
    return Bytes() if request.param == "bytes" else Trained(request.param)


@pytest.mark.parametrize("isl", [60, 61, 200])
def test_a_first_prompt_is_as_long_as_asked_with_the_template(tokenizer: Any, isl: int) -> None:
    template = Instructions(tokenizer)
    for conversation in made(tokenizer, 20, isl=isl):
        (turn,) = conversation.turns
        assert template.count([user(turn.text)]) == isl
        assert turn.input_tokens is None, "the kernel counts the whole body"


def test_a_later_turn_is_as_long_as_asked_with_its_own_wrap(tokenizer: Any) -> None:
    template = Instructions(tokenizer)
    for conversation in made(tokenizer, 10, isl=80, turns_mean=3):
        for turn in conversation.turns[1:]:
            before = [user("Good morning."), {"role": "assistant", "content": "How can I help?"}]
            added = template.count([*before, user(turn.text)], asks=False) - template.count(before, asks=False)
            assert added == 80


def test_a_prefix_comes_on_top_of_the_prompt_with_the_template(tokenizer: Any) -> None:
    template = Instructions(tokenizer)
    for conversation in made(tokenizer, 10, isl=80, prefix_pool=2, prefix_length=30):
        assert template.count([user(conversation.turns[0].text)]) == 110


def test_drawn_lengths_are_those_with_the_template() -> None:
    (plain, *_), (wrapped, *_) = (
        [turn.text for conversation in dataset for turn in conversation.turns]
        for dataset in (
            Synthetic(SyntheticOptions(isl=300, isl_stddev=40), DatasetContext(9, 7, True, Bytes(), CHAT)),
            made(Bytes(), 9, isl=300, isl_stddev=40),
        )
    )
    assert Instructions(Bytes()).count([user(wrapped)]) == Bytes().count(plain)


def test_a_prompt_shorter_than_its_template_is_refused() -> None:
    room = Instructions(Bytes()).count([user("")]) + 1
    with pytest.raises(BadDataset, match=f"--isl {room - 1} leaves no token for the text: .* adds {room - 1}") as caught:
        made(Bytes(), isl=room - 1)
    assert f"--isl {room}" in caught.value.hints[0]
    (conversation,) = made(Bytes(), isl=room)
    assert Bytes().count(conversation.turns[0].text) == 1


def test_a_drawn_length_shorter_than_its_template_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    room = Instructions(Bytes()).count([user("")])
    points = json.dumps({"points": [{"value": room - 5}]})
    with caplog.at_level(logging.WARNING):
        list(made(Bytes(), 3, isl_distribution=points))
    assert "3 of 3 synthetic texts miss the requested length under the tokenizer 'bytes' by up to 6 tokens" in caplog.text


def test_what_no_text_can_be_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        list(made(Even(), 4, isl=201))
    assert "4 of 4 synthetic texts miss the requested length under the tokenizer 'even' by up to 1 tokens" in caplog.text


def test_a_system_prompt_comes_on_top() -> None:
    (conversation,) = made(Bytes(), isl=150, system_prompt="Be brief.")
    assert isinstance(conversation, Conversation)
    assert Instructions(Bytes()).count([user(conversation.turns[0].text)]) == 150


def test_texts_of_a_batch_are_one_message() -> None:
    (conversation,) = made(Bytes(), isl=100, prompt_batch_size=2)
    first, second = conversation.turns[0].texts
    assert (Instructions(Bytes()).count([user(first)]), Bytes().count(second)) == (100, 100)
