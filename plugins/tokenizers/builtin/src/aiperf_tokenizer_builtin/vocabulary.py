"""The merge table: tokens in rank order, packed.

``o200k_base.bin`` is the zlib-compressed list of the tokens' bytes, lowest rank first, joined by byte FF.  FF never
occurs in UTF-8, so only one token contains it: FF itself, which is an empty entry of the list.  The file has 0.95 MB and
unpacks in 40 ms; lzma would save another 0.15 MB and cost 30 ms at each start.
"""

from __future__ import annotations

import pkgutil
import zlib

from aiperf import BadTokenizer

TOKENS = 199_998
"""Ordinary tokens of o200k_base."""

SPECIAL = {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}

_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PATTERN = "|".join(
    [
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
"""The pattern that splits text before merging; part of the encoding's definition."""

ASCII_PATTERN = (
    PATTERN.replace(r"\p{N}{1,3}", "[0-9]{1,3}")
    .replace(_UPPER, "[A-Z]")
    .replace(_LOWER, "[a-z]")
    .replace(r"\p{L}", "A-Za-z")
    .replace(r"\p{N}", "0-9")
)
"""The pattern for ASCII text alone, as Python's ``re`` reads it with ``re.ASCII``."""

_SEPARATOR = b"\xff"


def pack(tokens: list[bytes]) -> bytes:
    """The packed form of tokens in rank order."""
    return zlib.compress(_SEPARATOR.join(b"" if token == _SEPARATOR else token for token in tokens), 9)


def unpack(packed: bytes) -> list[bytes]:
    """The tokens in rank order.

    Raises:
        BadTokenizer: The bytes are not o200k_base in the form of :func:`pack`.
    """
    try:
        tokens = zlib.decompress(packed).split(_SEPARATOR)
    except zlib.error as error:
        raise _damaged(str(error)) from error
    # The token FF is an empty entry between two separators.
    if tokens.count(b"") != 1 or len(tokens) != TOKENS:
        raise _damaged(f"{len(tokens)} tokens instead of {TOKENS}")
    tokens[tokens.index(b"")] = _SEPARATOR
    return tokens


def ranks() -> dict[bytes, int]:
    """The id of each token, which is its rank.

    Raises:
        BadTokenizer: The installed data is missing or damaged.
    """
    tokens = unpack(read("o200k_base.bin"))
    return dict(zip(tokens, range(len(tokens)), strict=True))


def read(name: str) -> bytes:
    """A file of the package.

    Raises:
        BadTokenizer: It is missing.
    """
    try:
        data = pkgutil.get_data(__name__.rpartition(".")[0], name)
    except OSError as error:
        raise _damaged(str(error)) from error
    assert data is not None  # every loader of packages gives data
    return data


def _damaged(why: str) -> BadTokenizer:
    return BadTokenizer(f"the vocabulary of the builtin tokenizer is damaged: {why}", "reinstall aiperf-tokenizer-builtin")
