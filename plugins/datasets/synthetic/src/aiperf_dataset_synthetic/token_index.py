"""Texts of a running text by the ends of its tokens: a window is a slice, and its number of tokens a sum of known numbers.

A tokenizer that promises ``counts_add_up`` gives both parts of a text that is cut before a space, behind a character that is no
blank, as many tokens as the whole.  So the corpus is counted once between its cuts.  Of a window, only the beginning, the end
and the place where it continues elsewhere are counted, and each of them once.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

from aiperf import Tokenizer
from aiperf.sdk.tokenizer import adds_up, count_behind
from msgspec import Struct

Cut = tuple[str, int]
"""A text and its number of tokens."""
Place = tuple[int, int | None]
"""Where a window begins, in characters, and the line at which it continues behind its first tokens; None for the next line."""
_CUT = re.compile(r"(?<=[^\s\u2581]) ")
_STRETCH = 64
"""Pieces between two cuts that are also counted together, as a check of the promise."""
_MOST = 32_768
"""Texts whose numbers of tokens are remembered."""


class NoIndex(Exception):  # noqa: N818  # no error: texts can be decoded and counted
    """The tokenizer does not promise what an index needs, or its tokens are no slices of the text."""


class _Counts(dict[str, int]):
    """Tokens of short texts, as *count* has them."""

    def __init__(self, count: Callable[[str], int]) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, text: str) -> int:
        tokens = self._count(text)
        if len(self) < _MOST:
            self[text] = tokens
        return tokens


class _Pieces(dict[int, str]):
    """The text of each token by itself."""

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        super().__init__()
        self._decode = decode

    def __missing__(self, token: int) -> str:
        text = self[token] = self._decode((token,))
        return text


class _Start(Struct, gc=False):
    """A word at which windows begin.

    ends: of the tokens up to the first cut, or to the end of the line; next: the token behind them.
    cut: the first one behind the word; tokens: of the text before it, less those between the corpus' first cut and it.
    most: tokens before a window continues elsewhere; text: of them.
    cuts: whether that has cuts; head_tokens: of the text before the last one; rest: the text behind it.
    """

    ends: tuple[int, ...]
    next: int
    cut: int
    tokens: int
    most: int
    text: str
    cuts: bool
    head_tokens: int
    rest: str


class _Line(Struct, gc=False):
    """A line to continue at: its begin, first token and first cut, the text between, and the tokens before the cut."""

    begin: int
    first: int
    cut: int
    text: str
    before: int


class TokenIndex:
    """Index of *text*, whose lines begin at *starts* and are tokenized line by line; it follows upon itself once.

    most: tokens before a window continues elsewhere.

    Raises:
        NoIndex: Texts must be decoded and counted.
    """

    def __init__(self, text: str, starts: Sequence[int], tokenizer: Tokenizer, most: int) -> None:
        if not adds_up(tokenizer):
            raise NoIndex
        self._tokenizer, self._most = tokenizer, most
        self._pieces = _Pieces(tokenizer.decode)
        self._count_behind = count_behind(tokenizer)
        self._alone, self._behind = _Counts(tokenizer.count), _Counts(self._count_behind)
        self._text, self._line_starts = text + text, [*starts, len(text)]
        self._cuts = array("q", [cut.start() for cut in _CUT.finditer(self._text)])
        ends = self._token_ends(text)
        self._ends = array("q", [*ends, *(len(text) + end for end in ends)])
        if not {*self._ends}.issuperset(self._cuts) or len(self._cuts) < _STRETCH:
            raise NoIndex
        pieces = (self._behind[self._text[cut:after]] for cut, after in pairwise(self._cuts))
        self._before = array("q", accumulate(pieces, initial=0))
        self._check_counts()
        self._starts: tuple[dict[int, _Start], dict[int, _Start]] = {}, {}
        self._lines: dict[int, _Line] = {}
        self._until: dict[int, int] = {}
        self._widths: dict[str, tuple[int, ...]] = {}

    def cuts(self, places: Iterable[Place], counts: Iterable[int], *, behind: bool) -> Iterator[Cut | None]:
        """For each window, the text of its first tokens, without blanks at its end, and its tokens; None beyond the index.

        *behind*: it stands behind another text and a space, which is one of its tokens, or a part of one.
        """
        starts, lines, whole, ends, until = self._starts[behind], self._lines, self._text, self._ends, self._until
        count_joint = self._count_behind if behind else self._tokenizer.count
        for (offset, jump), count in zip(places, counts, strict=True):
            start = starts.get(offset) or self._start(offset, behind=behind)
            if jump is None or count <= start.most:
                yield self._cut(offset, start, count, behind=behind)
                continue
            line = lines.get(jump) or self._line(jump)
            place = line.first + count - start.most - 1
            if place >= len(ends):
                yield None
                continue
            end = ends[place]
            text = start.text + whole[line.begin : end]
            stripped = text.rstrip()
            end -= len(text) - len(stripped)
            if end <= line.cut:
                yield stripped, self._counted(stripped, behind=behind)
            else:
                # Hardly two texts have the same joint.
                joint = (self._count_behind if start.cuts else count_joint)(start.rest + line.text)
                tokens = until.get(end) or self._tokens_until(end)
                yield stripped, start.head_tokens + joint + tokens - line.before

    def _cut(self, offset: int, start: _Start, count: int, *, behind: bool) -> Cut | None:
        place = start.next + count - len(start.ends) - 1
        if place >= len(self._ends):
            return None
        text = self._text[offset : start.ends[count - 1] if count <= len(start.ends) else self._ends[place]].rstrip()
        end = offset + len(text)
        return text, start.tokens + self._tokens_until(end) if end > start.cut else self._counted(text, behind=behind)

    def _tokens_until(self, end: int) -> int:
        """Tokens between the corpus' first cut and *end*, which lies behind a cut."""
        tokens = self._until.get(end)
        if tokens is None:
            last = bisect_left(self._cuts, end) - 1
            tokens = self._until[end] = self._before[last] + self._behind[self._text[self._cuts[last] : end]]
        return tokens

    def _counted(self, text: str, *, behind: bool) -> int:
        return self._behind[f" {text}"] if behind else self._alone[text]

    def _start(self, offset: int, *, behind: bool) -> _Start:
        cuts, line = self._cuts, bisect_right(self._line_starts, offset)
        line_end, first = self._line_starts[line], bisect_left(cuts, offset)
        cut = cuts[first]
        until = min(cut, line_end)
        widths = self._widths.get(self._text[offset:until])
        if widths is None:
            widths = self._widths[self._text[offset:until]] = tuple(self._widths_of(self._text[offset:until]))
        ends = tuple(accumulate(widths, initial=offset))[1:]
        following = bisect_right(self._ends, until)
        most = min(self._most, len(ends) + bisect_right(self._ends, line_end) - following)
        end = ends[most - 1] if most <= len(ends) else self._ends[following + most - len(ends) - 1]
        tokens = self._counted(self._text[offset:cut], behind=behind) - self._before[first]
        last = bisect_left(cuts, end) - 1
        text = self._text[offset:end]
        if last >= first:
            rest, head_tokens = self._text[cuts[last] : end], tokens + self._before[last]
        else:
            rest, head_tokens = f" {text}" if behind else text, 0
        start = _Start(ends, following, cut, tokens, most, text, last >= first, head_tokens, rest)
        self._starts[behind][offset] = start
        return start

    def _line(self, number: int) -> _Line:
        begin = self._line_starts[number]
        first = bisect_right(self._cuts, begin)
        cut = self._cuts[first]
        line = _Line(begin, bisect_right(self._ends, begin), cut, self._text[begin:cut], self._before[first])
        self._lines[number] = line
        return line

    def _token_ends(self, text: str) -> list[int]:
        widths = [width for begin, end in pairwise(self._line_starts) for width in self._widths_of(text[begin:end])]
        return list(accumulate(widths))

    def _widths_of(self, text: str) -> list[int]:
        """Characters of each token.

        Raises:
            NoIndex: The tokens are no slices of the text.
        """
        ids = self._tokenizer.encode(text)
        pieces = list(map(self._pieces.__getitem__, ids))
        if "".join(pieces) != text or self._tokenizer.decode(ids) != text:
            raise NoIndex
        return list(map(len, pieces))

    def _check_counts(self) -> None:
        """
        Raises:
            NoIndex: A long text has other tokens than its pieces together.
        """
        count, cuts = self._count_behind, self._cuts
        for first in range(0, len(cuts) // 2, _STRETCH):
            last = min(first + _STRETCH, len(cuts) - 1)
            if count(self._text[cuts[first] : cuts[last]]) != self._before[last] - self._before[first]:
                raise NoIndex
