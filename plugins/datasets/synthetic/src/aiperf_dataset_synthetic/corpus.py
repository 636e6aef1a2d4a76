"""Sources of prompts: streams of token ids, tokenized lazily."""

from __future__ import annotations

import pkgutil
import re
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from math import gcd
from typing import Protocol

from aiperf import BadDataset, Tokenizer
from aiperf.sdk.draws import BLOCK, uniform, uniforms

from aiperf_dataset_synthetic.code import code
from aiperf_dataset_synthetic.token_index import Cut, NoIndex, Place, TokenIndex

_IDS_BEFORE_JUMP = 8
"""Tokens of a line before a text goes on at another one."""
_BLOCKS = 4
"""Blocks of drawn numbers that are remembered."""
_COMPARED = 24
"""Windows of the corpus that are compared with those of its index, and their tokens."""
_DISTINCT = 32
"""Two beginnings must differ within so many characters: less than a block of a prefix cache (16 tokens)."""
_GOLDEN = 0.618_033_988_75
"""The golden ratio's fraction: steps of this share of a whole never crowd."""


class CorpusWindow(Protocol):
    """An endless piece of a corpus from a given place on."""

    def first(self, count: int) -> list[int]:
        """The first *count* ids; the same for every call."""
        ...

    def cut(self, tokenizer: Tokenizer, count: int, *, behind: bool) -> Cut | None:
        """The text of the first *count* ids, without blanks around it, and its number of tokens; None where it must be counted.

        *behind*: as it stands behind another text and a space.
        """
        ...


class Ids:
    """A window of existing ids; it ends with them."""

    def __init__(self, ids: list[int]) -> None:
        self._ids = ids

    def first(self, count: int) -> list[int]:
        return self._ids[:count]

    def cut(self, tokenizer: Tokenizer, count: int, *, behind: bool) -> None:
        return None


class Corpus(Protocol):
    def window(self, stream: str, number: int) -> CorpusWindow:
        """The piece for text *number* of a stream.  Two numbers of a stream begin at different places."""
        ...

    def cuts(self, tokenizer: Tokenizer, stream: str, numbers: Sequence[int], counts: Sequence[int]) -> Sequence[Cut | None]:
        """The cuts, see :meth:`CorpusWindow.cut`, of the windows of these texts, at least one, alone."""
        ...


def open_corpus(name: str, tokenizer: Tokenizer, seed: int, *, in_order: bool = False) -> Corpus:
    """The corpus called ``sonnet``, ``coding`` or ``random``.  in_order: as :class:`Vocabulary` has it."""
    if name == "random":
        return Vocabulary(tokenizer, seed, in_order=in_order)
    return RunningText(code() if name == "coding" else sonnets(), tokenizer, seed)


def sonnets() -> str:
    """Shakespeare's 154 sonnets, separated by blank lines."""
    return zlib.decompress(pkgutil.get_data(__package__, "sonnets.txt.z") or b"").decode()


class RunningText:
    """A text read from a word on, which continues at its beginning after its end.

    It begins only at words whose continuation is unique, so no two prompts share a prefix by accident.  Each line, and
    the rest of a line from each word on, is tokenized once, for any number of prompts.  Texts are slices of it where the
    tokenizer allows an index, made once as many tokens were asked for as the corpus has characters: that took as long.
    """

    def __init__(self, text: str, tokenizer: Tokenizer, seed: int) -> None:
        self._tokenizer, self._seed, self._text = tokenizer, seed, text
        beginnings = {word.start(): text[word.start() : word.start() + _DISTINCT] for word in re.finditer(r"\S+", text)}
        counts = Counter(beginnings.values())
        self._words = [offset for offset, beginning in beginnings.items() if counts[beginning] == 1]
        ends = [line.end() for line in re.finditer(r"[^\n]*\n+", text)]
        self._starts = [0, *ends[:-1]]
        self._lines = [text[start:end] for start, end in zip(self._starts, ends, strict=True)]
        self._ids: list[list[int] | None] = [None] * len(self._lines)
        self._rests: dict[int, list[int]] = {}
        self._streams: dict[str, int] = {}
        self._stride = coprime(round(len(self._words) * _GOLDEN), len(self._words))
        self._asked = 0
        self._index: TokenIndex | None = None

    def window(self, stream: str, number: int) -> CorpusWindow:
        (place,) = self._places(stream, (number,))
        return _Lines(self, place)

    def cuts(self, tokenizer: Tokenizer, stream: str, numbers: Sequence[int], counts: Sequence[int]) -> Sequence[Cut | None]:
        return self.cuts_at(tokenizer, self._places(stream, numbers), counts, behind=False)

    def cuts_at(
        self, tokenizer: Tokenizer, places: Iterable[Place], counts: Sequence[int], *, behind: bool
    ) -> Sequence[Cut | None]:  # fmt: skip
        """The cuts, see :meth:`CorpusWindow.cut`, of the windows at these places."""
        index = self._index_for(tokenizer, sum(counts))
        if index is not None:
            try:
                return [*index.cuts(places, counts, behind=behind)]
            except NoIndex:
                self._index = None
        return [None] * len(counts)

    def _index_for(self, tokenizer: Tokenizer, count: int) -> TokenIndex | None:
        """The index, where there is one, to give texts of *count* tokens together."""
        if tokenizer is not self._tokenizer:
            return None
        if self._asked < len(self._text):
            self._asked += count
            if self._asked >= len(self._text):
                self._index = self._made_index()
        return self._index

    def _made_index(self) -> TokenIndex | None:
        """The index, where it gives the same texts as the windows."""
        try:
            index = TokenIndex(self._text, self._starts, self._tokenizer, _IDS_BEFORE_JUMP)
            places = [(offset, jump) for offset in self._words[:: len(self._words) // _COMPARED] for jump in (None, 1)]
            for place, cut in zip(places, index.cuts(places, [_COMPARED] * len(places), behind=False), strict=True):
                text = self._tokenizer.decode(_Lines(self, place).first(_COMPARED)).strip()
                if cut is not None and cut != (text, self._tokenizer.count(text)):
                    return None
        except NoIndex:
            return None
        return index

    def _places(self, stream: str, numbers: Sequence[int]) -> Iterator[Place]:
        # A stride without a common factor visits every word before it repeats the first.
        words, start = len(self._words), self._streams.get(stream)
        if start is None:
            start = self._streams[stream] = int(uniform(self._seed, f"{stream}.start", 0) * words)
        # Where the beginning repeats: continue elsewhere before it fills a block of a prefix cache.
        jumps = self._jumps(f"{stream}.jump", numbers) if max(numbers) >= words else repeat(0)
        for number, jump in zip(numbers, jumps, strict=False):
            yield self._words[(start + number * self._stride) % words], jump if number >= words else None

    def _jumps(self, stream: str, numbers: Sequence[int]) -> Iterator[int]:
        lines, (block, first), many = len(self._lines), divmod(numbers[0], BLOCK), len(numbers)
        if many > 1 and first + many <= BLOCK and [*numbers] == [*range(numbers[0], numbers[0] + many)]:
            return (int(number * lines) for number in _drawn(self._seed, stream, block)[first : first + many])
        return (int(uniform(self._seed, stream, number) * lines) for number in numbers)

    def line_at(self, offset: int) -> int:
        return bisect_right(self._starts, offset) - 1

    def rest_of_line(self, line: int, offset: int) -> list[int]:
        ids = self._rests.get(offset)
        if ids is None:
            ids = self._rests[offset] = self._tokenizer.encode(self._lines[line][offset - self._starts[line] :])
        return ids

    def line(self, number: int) -> list[int]:
        number %= len(self._lines)
        ids = self._ids[number]
        if ids is None:
            ids = self._ids[number] = self._tokenizer.encode(self._lines[number])
        return ids


class _Lines:
    def __init__(self, text: RunningText, place: Place) -> None:
        self._text, self._place = text, place
        self._ids: list[int] = []
        self._next = -1

    def first(self, count: int) -> list[int]:
        if self._next < 0:
            offset, jump = self._place
            line = self._text.line_at(offset)
            self._ids = self._text.rest_of_line(line, offset)[: None if jump is None else _IDS_BEFORE_JUMP]
            self._next = line + 1 if jump is None else jump
        ids = self._ids
        while len(ids) < count:
            ids += self._text.line(self._next)
            self._next += 1
        return ids[:count]

    def cut(self, tokenizer: Tokenizer, count: int, *, behind: bool) -> Cut | None:
        return self._text.cuts_at(tokenizer, (self._place,), (count,), behind=behind)[0]


class Vocabulary:
    """Readable tokens of the whole vocabulary, in a separate order for each text.

    in_order: each text has them in the vocabulary's order, from a place drawn for it on, as vLLM's and SGLang's random
    prompts do: token j of prompt i is (offset + i + j) mod the size.
    """

    def __init__(self, tokenizer: Tokenizer, seed: int, *, in_order: bool = False) -> None:
        self._tokenizer, self._seed, self._in_order = tokenizer, seed, in_order
        self._size = tokenizer.size
        self._readable: dict[int, bool] = {}
        self._stride = coprime(round(self._size * _GOLDEN), self._size)

    def window(self, stream: str, number: int) -> CorpusWindow:
        if self._in_order:
            offset = int(uniform(self._seed, f"{stream}.offset", number) * self._size)
            return _Steps(self, (offset + number) % self._size, 1, self._size)
        start = (int(uniform(self._seed, f"{stream}.start", 0) * self._size) + number * self._stride) % self._size
        step = 1 + int(uniform(self._seed, f"{stream}.step", number) * (self._size - 1))
        return _Steps(self, start, coprime(step, self._size), self._size)

    def cuts(self, tokenizer: Tokenizer, stream: str, numbers: Sequence[int], counts: Sequence[int]) -> Sequence[None]:
        return [None] * len(numbers)

    def readable(self, token: int) -> bool:
        """Whether the token alone is text: no partial, control or blank character, and not empty."""
        readable = self._readable.get(token)
        if readable is None:
            text = self._tokenizer.decode([token])
            readable = "\ufffd" not in text and text.isprintable() and not text.isspace() and text != ""
            self._readable[token] = readable
        return readable

    def unusable(self) -> BadDataset:
        return BadDataset(
            f"the tokenizer {self._tokenizer.name!r} has no token of readable text",
            "use --prompt-corpus sonnet, or another tokenizer",
        )


class _Steps:
    def __init__(self, vocabulary: Vocabulary, start: int, step: int, size: int) -> None:
        self._vocabulary, self._next, self._step, self._size = vocabulary, start, step, size
        self._ids: list[int] = []

    def cut(self, tokenizer: Tokenizer, count: int, *, behind: bool) -> None:
        return None

    def first(self, count: int) -> list[int]:
        readable, skipped = self._vocabulary.readable, 0
        while len(self._ids) < count:
            if readable(self._next):
                self._ids.append(self._next)
                skipped = 0
            elif (skipped := skipped + 1) > self._size:
                raise self._vocabulary.unusable()
            self._next = (self._next + self._step) % self._size
        return self._ids[:count]


@lru_cache(_BLOCKS)
def _drawn(seed: int, stream: str, block: int) -> list[float]:
    """The numbers that :func:`uniform` gives for a block."""
    drawn: list[float] = uniforms(seed, stream, block, BLOCK).tolist()
    return drawn


def coprime(near: int, size: int) -> int:
    """The smallest number >= *near* and >= 1 without a common factor with *size*."""
    near = max(1, near)
    while gcd(near, size) != 1:
        near += 1
    return near
