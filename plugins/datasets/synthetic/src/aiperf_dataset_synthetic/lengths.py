"""Sequence distributions: input and output lengths that are drawn together."""

from __future__ import annotations

import math
import re

import msgspec
from aiperf.sdk.draws import uniform
from msgspec import Struct


class Pair(Struct, frozen=True, forbid_unknown_fields=True):
    """Input and output length of *prob* percent of the draws; both are means of normal distributions."""

    isl: int
    osl: int
    prob: float
    isl_stddev: float = 0.0
    osl_stddev: float = 0.0


class _Pairs(Struct, forbid_unknown_fields=True):
    pairs: list[Pair]


class _Entry(Struct, forbid_unknown_fields=True):
    """A pair in the form of configuration files."""

    isl: int
    osl: int
    probability: float
    isl_stddev: float = 0.0
    osl_stddev: float = 0.0


_LENGTH = r"\s*(\d+)\s*(?:\|\s*([0-9.eE+-]+)\s*)?"
_PAIR = re.compile(rf"\s*\(?{_LENGTH},{_LENGTH}\)?\s*:\s*([0-9.eE+-]+)\s*%?\s*")
_BRACKETS = re.compile(r"\)\s*:\s*[^,()]*(,)")


def pairs(text: str) -> tuple[Pair, ...]:
    """A sequence distribution as typed.

    ``128,64:25;512|40,128|8:75``, ``[(128,64):25,(512|40,128|8):75]``, or JSON
    ``{"pairs": [{"isl": 128, "osl": 64, "prob": 25}, …]}``, or ``[{"isl": 128, "osl": 64, "probability": 25}, …]``.

    Raises:
        ValueError: The text has none of these forms, or the percentages don't total 100; the message is for the user.
    """
    text = text.strip()
    if text.startswith(("{", "[{")):
        try:
            distribution = _from_json(text)
        except msgspec.DecodeError as error:
            raise ValueError(f"the JSON of the sequence distribution has another form than expected: {error}") from error
    else:
        distribution = tuple(_pair(piece, text) for piece in _pieces(text))
    for pair in distribution:
        _check(pair)
    total = math.fsum(pair.prob for pair in distribution)
    if abs(total - 100) > 1e-6:
        raise ValueError(f"the percentages of the sequence distribution total {total:g}, not 100")
    return distribution


def _from_json(text: str) -> tuple[Pair, ...]:
    if text.startswith("{"):
        return tuple(msgspec.json.decode(text, type=_Pairs).pairs)
    entries = msgspec.json.decode(text, type=list[_Entry])
    return tuple(Pair(entry.isl, entry.osl, entry.probability, entry.isl_stddev, entry.osl_stddev) for entry in entries)


def _pieces(text: str) -> list[str]:
    if text.startswith("["):
        if not text.endswith("]"):
            raise ValueError(f"the sequence distribution {text!r} has no closing bracket")
        inside = text[1:-1]
        cuts = [match.start(1) for match in _BRACKETS.finditer(inside)]
        return [inside[start:end] for start, end in zip([0, *(cut + 1 for cut in cuts)], [*cuts, len(inside)], strict=True)]
    return text.removesuffix(";").split(";")


def _pair(piece: str, text: str) -> Pair:
    match = _PAIR.fullmatch(piece)
    if match is None or piece.count("(") != piece.count(")"):
        raise ValueError(f"{piece.strip()!r} in the sequence distribution {text!r} is not ISL,OSL:PERCENT")
    isl, isl_stddev, osl, osl_stddev, prob = match.groups()
    try:
        return Pair(int(isl), int(osl), float(prob), float(isl_stddev or 0), float(osl_stddev or 0))
    except ValueError as error:
        raise ValueError(f"{piece.strip()!r} in the sequence distribution {text!r} has a bad number") from error


def _check(pair: Pair) -> None:
    shown = f"the pair {pair.isl},{pair.osl}:{pair.prob:g} of the sequence distribution"
    if pair.isl < 1 or pair.osl < 1:
        raise ValueError(f"{shown} has a length below 1")
    if not 0 <= pair.prob <= 100:
        raise ValueError(f"{shown} has a percentage outside 0 to 100")
    if not (0 <= pair.isl_stddev < math.inf and 0 <= pair.osl_stddev < math.inf):
        raise ValueError(f"{shown} has a standard deviation that is not a finite number of at least 0")


def drawn_pair(known: tuple[Pair, ...], seed: int, stream: str, index: int) -> Pair:
    """The pair that draw *index* of a stream hits."""
    left = uniform(seed, stream, index) * 100
    for pair in known:
        left -= pair.prob
        if left < 0:
            break
    return pair
