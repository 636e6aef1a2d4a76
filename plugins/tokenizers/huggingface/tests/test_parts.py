"""Tokens of a conversation are counted turn by turn where the parts of a text add up to it, and nowhere else."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from aiperf.sdk.tokenizer import blank, count_behind
from aiperf_tokenizer_huggingface import HuggingFace
from aiperf_tokenizer_huggingface.parts import counts_add_up
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

LETTERS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA, QWEN = LETTERS % r"\p{N}{1,3}", LETTERS % r"\p{N}"
GPT_OSS = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK = (
    r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)  # fmt: skip
MARKS = normalizers.Replace(" ", "▁")
LEGACY = normalizers.Sequence([normalizers.Prepend("▁"), MARKS])
CORPUS = 9 * [
    "and they said: don't, 'tis 1234 things\n\n  of  the day.\n", "it's a fair youth that's here; all's well", "中文 かな 1 2",
]  # fmt: skip


def split(*patterns: str) -> Any:
    steps = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    return pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def made(before: Any, *added: AddedToken, normalizer: Any = None) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = before
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False))
    tokenizer.add_tokens(list(added))
    return tokenizer


def marked(
    *added: AddedToken, normalizer: Any = None, before: Any = None, pieces: str = "▁*[^▁]+|▁+", **settings: Any
) -> Tokenizer:
    """A BPE of SentencePiece's kind, trained on these *pieces*; by default no token has a mark behind another character."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer, tokenizer.pre_tokenizer = MARKS, pre_tokenizers.Split(Regex(pieces), "isolated")
    special = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=["▁"], special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([*CORPUS, "indented   by  some \n"], trainer)
    tokenizer.add_tokens(list(added))
    file = json.loads(tokenizer.to_str())
    empty = json.loads(Tokenizer(models.BPE()).to_str())
    file["model"].update(settings)
    file.update(normalizer=empty["normalizer"], pre_tokenizer=empty["pre_tokenizer"])
    made = Tokenizer.from_str(json.dumps(file))
    if normalizer is not None:
        made.normalizer = normalizer
    if before is not None:
        made.pre_tokenizer = before
    return made


def saved(tokenizer: Tokenizer, folder: Path) -> Path:
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


GOOD = {
    "GPT-2": made(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "Llama 3": made(split(LLAMA), AddedToken("<|im_end|>", special=True)),
    "Qwen": made(split(QWEN), AddedToken("<tool_call>"), AddedToken("   "), normalizer=normalizers.NFC()),
    "gpt-oss": made(split(GPT_OSS)),
    "DeepSeek": made(split(*DEEPSEEK), AddedToken("said", lstrip=True)),
    "Gemma": marked(
        AddedToken("\n\n", normalized=False), AddedToken("  "), AddedToken("<x>", normalized=False),
        normalizer=MARKS, before=pre_tokenizers.Split(" ", "merged_with_previous"),
    ),
    "marks": marked(AddedToken("said", lstrip=True), normalizer=normalizers.Sequence([normalizers.NFC(), MARKS])),
    "Llama 2": marked(AddedToken("<x>", special=True, rstrip=True), normalizer=LEGACY),
    "Llama 2, marked first": marked(normalizer=normalizers.Sequence([MARKS, normalizers.Prepend("▁")])),
    "Mistral": marked(before=pre_tokenizers.Metaspace(prepend_scheme="first", split=False)),
    "Mistral with a mark before each part": marked(
        AddedToken("<x>", single_word=True), before=pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    ),
    "words of SentencePiece": made(pre_tokenizers.Metaspace()),
    "words of SentencePiece without a mark before": marked(
        pieces=".+", before=pre_tokenizers.Metaspace(prepend_scheme="never")
    ),
}  # fmt: skip
BAD = {
    "a space before the text": made(pre_tokenizers.ByteLevel(add_prefix_space=True)),
    "a mark behind a token": marked(AddedToken("<x>", normalized=False), normalizer=LEGACY),
    "a word before every text": made(split(QWEN), normalizer=normalizers.Prepend("a ")),
    "merges over marks": marked(pieces=".+", normalizer=MARKS),
    "merges over marks of Metaspace": marked(pieces=".+", before=pre_tokenizers.Metaspace(split=False)),
    "whole texts as tokens": marked(normalizer=MARKS, ignore_merges=True),
    "tokens by chance": marked(normalizer=MARKS, dropout=0.5),
    "ends of words": marked(normalizer=MARKS, end_of_word_suffix="</w>"),
    "words alone": marked(AddedToken(" the", single_word=True), normalizer=MARKS),
    "another mark": made(pre_tokenizers.Metaspace(replacement="_")),
    "marks and pieces": made(split(QWEN), normalizer=MARKS),
    "spaces that are dropped": marked(normalizer=MARKS, before=pre_tokenizers.Split("a", "removed")),
    "no pieces": made(split()),
    "no blanks": made(split(r"\p{L}+")),
    "an unknown piece": made(split(LLAMA + r"|\p{L}+ \p{L}+")),
    "an end that matters": made(split(QWEN + "|a$")),
    "a token over the place": made(split(QWEN), AddedToken("of the")),
    "a token that eats blanks": made(split(QWEN), AddedToken("<x>", rstrip=True)),
    "another normalizer": made(split(QWEN), normalizer=normalizers.NFKC()),
}


@pytest.mark.parametrize("tokenizer", GOOD.values(), ids=GOOD)
def test_parts_add_up_where_that_is_promised(tokenizer: Tokenizer, tmp_path: Path) -> None:
    opened = HuggingFace().open(str(saved(tokenizer, tmp_path)))
    assert opened.counts_add_up is True  # type: ignore[attr-defined]
    behind = count_behind(opened)

    @settings(max_examples=60, deadline=None)
    @given(st.text(st.sampled_from("ab's. \n\r\t<x>▁\u00a0\u2003\u4e2d\u306b\u0301eE1/!"), max_size=24), st.text(max_size=8))
    def check(one: str, other: str) -> None:
        text = f"{one}{other} {one} said <tool_call> the {other}"
        for at in range(1, len(text)):
            if text[at] == " " and not blank(text[at - 1]):
                assert opened.count(text) == opened.count(text[:at]) + behind(text[at:]), text[:at]

    check()


@pytest.mark.parametrize("tokenizer", BAD.values(), ids=BAD)
def test_nothing_is_promised_where_it_is_not_known(tokenizer: Tokenizer) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert not counts_add_up(saved(tokenizer, Path(folder)))


def test_a_file_of_another_form_promises_nothing(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b'{"added_tokens": 7}')
    assert not counts_add_up(tmp_path / "tokenizer.json")
    assert not counts_add_up(tmp_path / "missing.json")
