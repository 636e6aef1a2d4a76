"""The o200k_base tokenizer, from data that this package installs; it never downloads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from aiperf import BadTokenizer

from aiperf_tokenizer_builtin.plain import Plain, TooMuch
from aiperf_tokenizer_builtin.remembered import Counts, NoGain, Texts
from aiperf_tokenizer_builtin.vocabulary import PATTERN, SPECIAL, TOKENS, ranks

if TYPE_CHECKING:
    from tiktoken import Encoding

_MAX_BLANK = 250_000
"""Characters of a text that are tokenized together: longer blanks are cut."""
NAMES = (
    "builtin", "o200k_base", "gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano", "gpt-5", "o1", "o3", "o3-mini",
    "o4-mini",
)  # fmt: skip
"""The package's own name, tiktoken's of the encoding, and those of models that tiktoken gives this encoding."""
_KNOWN = {name.replace("_", "-") for name in NAMES}
_BLANKS = re.compile(r"\s{2,}")


class Builtin:
    """Opens the tokenizer ``builtin``, also by tiktoken's names for it."""

    def __init__(self, options: object = None) -> None:
        pass

    def recognises(self, name: str) -> bool:
        return name.strip().lower().replace("_", "-") in _KNOWN

    def open(self, name: str) -> O200kBase:
        """The tokenizer; all calls in a process share one instance.

        Raises:
            BadTokenizer: *name* is none of NAMES, or the installed data is damaged.
        """
        if not self.recognises(name):
            raise BadTokenizer(f"the builtin tokenizer is called 'builtin', not {name!r}", "use --tokenizer builtin")
        return _opened()


class O200kBase:
    """Text to o200k_base ids and back; special tokens such as ``<|endoftext|>`` are plain text.

    Plain English in small amounts is encoded by :mod:`aiperf_tokenizer_builtin.plain`, with the same ids.  The first text that
    is anything else loads tiktoken and the vocabulary, which encode everything from then on.
    """

    name = "builtin"
    counts_add_up = True
    """No piece of the pattern has a space behind another character, and ids are made piece by piece."""

    def __init__(self) -> None:
        self._plain: Plain | None = Plain()
        self._counts: Counts | None = None

    @cached_property
    def _texts(self) -> Texts:
        return Texts(self._encoding.decode_single_token_bytes)

    @cached_property
    def _encoding(self) -> Encoding:
        import tiktoken

        self._plain = None
        merges = ranks()
        encoding = tiktoken.Encoding(name="o200k_base", pat_str=PATTERN, mergeable_ranks=merges, special_tokens=SPECIAL)
        merges.clear()  # tiktoken keeps its own copy; clearing saves a third of the memory
        self._counts = Counts(encoding.encode_ordinary)
        return encoding

    @property
    def size(self) -> int:
        """Number of ordinary ids, 199,998; the two special ids follow after a gap and don't count."""
        return TOKENS

    def encode(self, text: str) -> list[int]:
        if self._plain is not None:
            try:
                return self._plain.encode(text)
            except TooMuch:
                pass
        if len(text) <= _MAX_BLANK:
            return self._encoding.encode_ordinary(text)
        return [token for piece in _pieces(text) for token in self._encoding.encode_ordinary(piece)]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids; invalid bytes become U+FFFD."""
        if self._plain is not None:
            try:
                return self._plain.decode(ids)
            except TooMuch:
                pass
        try:
            return "".join(map(self._texts.__getitem__, ids))
        except KeyError:
            text = self._encoding.decode(ids)
            self._texts.learn(ids)
            return text

    def count(self, text: str) -> int:
        if self._plain is not None:
            try:
                return self._plain.count(text)
            except TooMuch:
                pass
        if self._counts is not None and len(text) <= _MAX_BLANK and text.isascii():
            try:
                return self._counts.of(text)
            except NoGain:
                self._counts = None
        return len(self.encode(text))


def _pieces(text: str) -> list[str]:
    """The text, cut inside long blanks, because tiktoken's pattern panics from about 500,000 blank characters on."""
    cuts = [0]
    for blank in _BLANKS.finditer(text):
        cuts += range(blank.start() + _MAX_BLANK, blank.end(), _MAX_BLANK)
    return [text[start:end] for start, end in pairwise([*cuts, len(text)])]


@cache
def _opened() -> O200kBase:
    return O200kBase()
