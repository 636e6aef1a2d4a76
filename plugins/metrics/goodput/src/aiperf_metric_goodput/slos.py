"""Objectives as people type them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from msgspec import Struct

_WORD = re.compile(r"(?P<tag>[^:]*):(?P<rest>.*)", re.DOTALL)
_PERCENTILE = re.compile(r"(?P<name>[pP]\d+(?:\.\d+)?)\s*(?P<sign>[<>]=?)\s*(?P<number>.*)", re.DOTALL)
PERCENTILES = ("p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99")


class Slo(Struct, frozen=True):
    """A bound on a metric, in its display unit.

    percentile: the percentile of the run that is bound, None where each request's own value is.
    above: whether the person wrote that it is a lower bound (``p5>20``); None where nothing was written.
    """

    tag: str
    bound: float
    percentile: str | None = None
    above: bool | None = None

    @property
    def key(self) -> str:
        """What may be bound only once."""
        return self.tag if self.percentile is None else f"{self.tag}:{self.percentile}"


def read_slos(words: Iterable[str]) -> list[Slo]:
    """``TAG:NUMBER`` for each request, ``TAG:p99<NUMBER`` for a percentile of the run; several in one word, by spaces.

    Raises:
        ValueError: One of them is neither, or a bound is given twice; the text is a sentence.
    """
    found: dict[str, Slo] = {}
    for word in words:
        if not word.strip():
            raise ValueError("an objective is TAG:NUMBER, and what was given is empty")
        for text in word.split():
            slo = _read(text)
            if slo.key in found:
                raise ValueError(f"{slo.key} is bound twice, to {found[slo.key].bound:g} and to {slo.bound:g}")
            found[slo.key] = slo
    return list(found.values())


def _read(text: str) -> Slo:
    match = _WORD.fullmatch(text)
    if match is None or not match["tag"] or not match["rest"]:
        raise ValueError(f"{text!r} is not TAG:NUMBER, for example request_latency:2000")
    tag, rest = match["tag"].lower().replace("-", "_"), match["rest"]
    percentile = _PERCENTILE.fullmatch(rest)
    if percentile is None:
        return Slo(tag, _number(rest, text))
    name = percentile["name"].lower()
    if name not in PERCENTILES:
        raise ValueError(f"{text!r}: there are {', '.join(PERCENTILES[:-1])} and {PERCENTILES[-1]}, and no {name}")
    return Slo(tag, _number(percentile["number"], text), name, percentile["sign"][0] == ">")


def _number(word: str, text: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{text!r}: {word!r} is no number; write TAG:NUMBER, or TAG:p99<NUMBER for a percentile of the run")
    return number
