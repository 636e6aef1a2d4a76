"""Statistics by name, and the user's choice of them: ``--percentiles`` and ``--columns``."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

from aiperf.sdk.options import Before

_NAMES = ("avg", "min", "max", "sum", "std", "count")
"""Statistics other than percentiles."""
_DECIMALS = 9
"""Decimals of a percentile, at most."""
_EXAMPLE = "50,90,99.9"
_OTHER_WORDS = {
    "mean": "avg", "average": "avg", "median": "p50", "stddev": "std", "stdev": "std", "sd": "std", "total": "sum",
    "n": "count", "minimum": "min", "maximum": "max",
}  # fmt: skip


def percentile(statistic: str) -> float | None:
    """The percentile of a statistic's name, 99.9 of ``p99.9``; None where the statistic is another."""
    if statistic[:1] != "p" or not statistic[1:].replace(".", "", 1).isdecimal():
        return None
    return float(statistic[1:])


def percentile_name(percent: float) -> str:
    """``p50`` or ``p99.9``: the name of a percentile among the statistics."""
    return _named(percent)


@lru_cache(1024)
def _named(percent: float) -> str:
    return f"p{percent:.{_DECIMALS}f}".rstrip("0").rstrip(".")


def _percentiles(given: object) -> list[str]:
    found: dict[float, str] = {}
    for word in given if isinstance(given, list | tuple) else [given]:
        try:
            number = float(str(word))
        except ValueError:
            raise ValueError(f"{word!r} is no percentile; write numbers above 0 and below 100, such as {_EXAMPLE}") from None
        _check(number, str(word))
        if number in found:
            raise ValueError(f"{word} is given twice; give each percentile once")
        found[number] = repr(number)
    return list(found.values())


def _check(number: float, shown: str) -> None:
    if not 0 < number < 100:
        extremes = "the extremes are the columns min and max"
        raise ValueError(f"{shown} is out of range: a percentile is above 0 and below 100; {extremes}")
    if float(percentile_name(number)[1:]) != number:
        raise ValueError(f"{shown} has too many digits; a percentile has at most {_DECIMALS} decimals")


def _columns(given: object) -> list[str]:
    found: dict[str, None] = {}
    for word in given if isinstance(given, list | tuple) else [given]:
        name, percent = str(word), percentile(str(word))
        if percent is not None:
            _check(percent, name)
            name = percentile_name(percent)
        elif name not in _NAMES:
            raise ValueError(_unknown(name))
        if name in found:
            raise ValueError(f"{word} is given twice; give each column once")
        found[name] = None
    return list(found)


def _unknown(word: str) -> str:
    from difflib import get_close_matches

    lower = word.lower()
    close = [f"p{word}"] if percentile(f"p{word}") else get_close_matches(lower, [*_NAMES, *_OTHER_WORDS], 1, 0.6)
    near = _OTHER_WORDS.get(lower) or next((_OTHER_WORDS.get(name, name) for name in close), None)
    hint = f"did you mean {near}? There" if near else "there"
    return f"{word!r} is no statistic; {hint} are {', '.join(_NAMES)}, and percentiles such as p50 or p99.9"


Percentiles = Annotated[list[float], Before(_percentiles)]
"""Type of an option: different percentiles, above 0 and below 100."""
Columns = Annotated[list[str], Before(_columns)]
"""Type of an option: different names of statistics, ``count`` and any percentile among them."""

__all__ = ["Columns", "Percentiles", "percentile", "percentile_name"]
