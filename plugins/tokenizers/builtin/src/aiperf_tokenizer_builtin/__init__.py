"""The o200k_base tokenizer from data that is installed with this package: no download, ever."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import tiktoken
from aiperf import BadTokenizer

from aiperf_tokenizer_builtin.vocabulary import PATTERN, SPECIAL, ranks

_LONGEST_BLANK = 250_000
_BLANKS = re.compile(r"\s{2,}")


class Builtin:
    """Opens ``builtin``, and nothing else."""

    def __init__(self, options: object = None) -> None:
        pass

    def recognises(self, name: str) -> bool:
        return name.strip().lower() == "builtin"

    def open(self, name: str) -> O200kBase:
        """The tokenizer; one per process, however often it is opened.

        Raises:
            BadTokenizer: *name* is another's, or the installed data is damaged.
        """
        if not self.recognises(name):
            raise BadTokenizer(f"the builtin tokenizer is called 'builtin', not {name!r}", "use --tokenizer builtin")
        return _opened()


class O200kBase:
    """Text to o200k_base ids and back; ``<|endoftext|>`` and its kind are plain text."""

    name = "builtin"

    def __init__(self) -> None:
        merges = ranks()
        self._encoding = tiktoken.Encoding(name="o200k_base", pat_str=PATTERN, mergeable_ranks=merges, special_tokens=SPECIAL)
        self._size = len(merges)
        merges.clear()  # tiktoken has its own copy, and would hold this one for nothing: a third of what it takes

    @property
    def size(self) -> int:
        """Number of ordinary ids, 199,998; the two special ids come after a gap and are not among them."""
        return self._size

    def encode(self, text: str) -> list[int]:
        if len(text) <= _LONGEST_BLANK:
            return self._encoding.encode_ordinary(text)
        return [token for piece in _pieces(text) for token in self._encoding.encode_ordinary(piece)]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the ids; bytes that make no character become U+FFFD."""
        return self._encoding.decode(ids)

    def count(self, text: str) -> int:
        return len(self.encode(text))


def _pieces(text: str) -> list[str]:
    """The text, cut inside blanks that tiktoken's pattern can't take: from about 500,000 characters on it panics."""
    cuts = [0]
    for blank in _BLANKS.finditer(text):
        cuts += range(blank.start() + _LONGEST_BLANK, blank.end(), _LONGEST_BLANK)
    return [text[start:end] for start, end in pairwise([*cuts, len(text)])]


@cache
def _opened() -> O200kBase:
    return O200kBase()
