"""Whether the tokens of a text's parts add up: what a tokenizer.json says about the places where it divides text.

A text is cut before a space that stands behind a character which is neither whitespace nor U+2581.  The counts of both parts
add up where no piece that the tokenizer makes before merging reaches over that place, or where nothing merges over it.

- Byte-level tokenizers (GPT-2, Llama 3, Qwen, DeepSeek, gpt-oss and others of their kind): pieces begin with at most one space,
  or are whitespace alone.
- Those of SentencePiece, which write a space as U+2581 (Gemma, Llama 2, Mistral, Phi 3): either a piece begins at each, or the
  whole text is one piece, and no token of the BPE vocabulary has one behind another character.  Older files put one before
  every text (the normalizer ``Prepend``); the second part is then counted behind a word (``count_behind``).  They also put one
  behind an added token, so that one which texts may have is not allowed there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_BLANKS = r"\s+"
_ALTERNATIVES = frozenset(
    (
        "'s", "'t", "'re", "'ve", "'m", "'ll", "'d", _SHORT, "'(?i:[sdmt]|ll|ve|re)",
        r"[^\r\n\p{L}\p{N}]?\p{L}+", r"[^\r\n\p{L}\p{N}]?+\p{L}+", r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+", r" ?\p{L}+",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+", rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SHORT}?", rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SHORT}?",
        r"\p{N}", r"\p{N}+", r"\p{N}{1,3}", r"\p{N}{1,3}+", r" ?\p{N}+", "[0-9]", "[一-龥぀-ゟ゠-ヿ]+",
        r" ?[^\s\p{L}\p{N}]+", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r" ?[^\s\p{L}\p{N}]++[\r\n]*", r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r" ?[\p{P}\p{S}]+[\r\n]*", "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+",
        r"\s*[\r\n]", r"\s*[\r\n]+", r"\s+(?!\S)", _BLANKS,
    )
)  # fmt: skip
"""Alternatives of the patterns of such tokenizers.  None matches a space behind another character, or looks at a text's end
from a character that is no whitespace."""
_MARK = "\u2581"
_SPACE_INSIDE = re.compile(rf"[^\s{_MARK}][ {_MARK}]")


class _Added(msgspec.Struct):
    content: str
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    special: bool = False

    @property
    def reaches_over(self) -> bool:
        """Whether it may be found, or not, by what stands on the other side of a cut.  Special ones are not found in texts, but
        nothing else is where they stand.
        """
        alone = self.single_word and (self.lstrip or self.content[:1] in (" ", _MARK))
        return ((self.rstrip or alone) and not self.special) or _SPACE_INSIDE.search(self.content) is not None


class _File(msgspec.Struct):
    """The parts of a tokenizer.json that decide."""

    normalizer: dict[str, Any] | None = None
    pre_tokenizer: dict[str, Any] | None = None
    added_tokens: list[_Added] = []
    model: msgspec.Raw = msgspec.Raw(b"{}")


class _Bpe(msgspec.Struct):
    vocab: dict[str, int]
    dropout: float | None = None
    ignore_merges: bool = False
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None


_read = msgspec.json.Decoder(_File).decode
_read_bpe = msgspec.json.Decoder(_Bpe).decode


def counts_add_up(path: Path) -> bool:
    """Whether the counts of this tokenizer's parts are known to add up."""
    try:
        file = _read(path.read_bytes())
    except (OSError, msgspec.MsgspecError):
        return False
    if any(token.reaches_over for token in file.added_tokens):
        return False
    normalizers, steps = _steps(file.normalizer, "normalizers"), _steps(file.pre_tokenizer, "pretokenizers")
    marks = _MARKING in normalizers
    alone = all(token.special for token in file.added_tokens)
    known = ("NFC", "Prepend") if marks and alone else ("NFC",)
    if any(each.get("type") not in known and each != _MARKING for each in normalizers):
        return False
    if marks and all(_finds_no_space(step) for step in steps):
        return _nothing_merges_over_a_mark(file.model)
    if not marks and len(steps) == 1 and steps[0].get("type") == "Metaspace" and steps[0].get("replacement") == _MARK:
        return bool(steps[0].get("split", True)) or _nothing_merges_over_a_mark(file.model)
    return not marks and _pieces_end_before_spaces(steps)


_MARKING = {"type": "Replace", "pattern": {"String": " "}, "content": _MARK}


def _steps(step: dict[str, Any] | None, name: str) -> list[dict[str, Any]]:
    """The steps of a sequence, of which *name* is the list; one step alone; none."""
    if step is None:
        return []
    steps: list[dict[str, Any]] = step.get(name, []) if step.get("type") == "Sequence" else [step]
    return steps


def _finds_no_space(step: dict[str, Any]) -> bool:
    """Whether the step divides at spaces alone, of which a marking normalizer leaves none."""
    return step.get("type") == "Split" and step.get("pattern") == {"String": " "} and not step.get("invert")


def _nothing_merges_over_a_mark(model: msgspec.Raw) -> bool:
    """Whether a BPE merges nothing with a mark behind it."""
    try:
        bpe = _read_bpe(model)
    except msgspec.MsgspecError:  # another model
        return False
    if bpe.dropout or bpe.ignore_merges or bpe.continuing_subword_prefix or bpe.end_of_word_suffix or _MARK not in bpe.vocab:
        return False
    return not any(_SPACE_INSIDE.search(token) for token in bpe.vocab if _MARK in token)


def _pieces_end_before_spaces(steps: list[dict[str, Any]]) -> bool:
    """Whether these are steps of a byte-level tokenizer whose pieces are known."""
    alternatives: set[str] = set()
    for step in steps:
        if step.get("type") == "ByteLevel" and not step.get("add_prefix_space", True):
            alternatives |= {_BLANKS} if step.get("use_regex", True) else set()
        elif step.get("type") == "Split" and step.get("behavior") == "Isolated" and not step.get("invert"):
            alternatives |= _divided((step.get("pattern") or {}).get("Regex", ""))
        else:
            return False
    return _BLANKS in alternatives <= _ALTERNATIVES


def _divided(pattern: str) -> set[str]:
    """The alternatives of a regular expression."""
    found, start, depth, at, inside = set[str](), 0, 0, 0, False
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at += 1
        elif inside:
            inside = sign != "]"
        elif sign == "[":
            inside = True
        elif sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign == "|" and not depth:
            found.add(pattern[start:at])
            start = at + 1
        at += 1
    return {*found, pattern[start:]}
