"""Distributions of a length, in the forms of the configuration file.

A number; ``{mean, stddev}``, normal; ``{mean, median}``, log-normal; ``{peaks: [{…, weight}, …]}``, a mixture;
``{points: [{value, weight}, …]}``, these values alone; each with ``min`` and ``max``.
"""

from __future__ import annotations

import contextlib
import math
from difflib import get_close_matches
from typing import Annotated, Any

import msgspec
from aiperf.sdk.draws import normal, uniform
from aiperf.sdk.options import After
from msgspec import Struct

_REDRAWS = 64
"""Draws of 0 or less, after which the mean is taken."""
_DEEPEST = 4
"""Distributions within each other."""
_KEYS = {
    "fixed": ("value",),
    "normal": ("mean", "stddev"),
    "lognormal": ("mean", "median"),
    "multimodal": ("peaks",),
    "empirical": ("points",),
}
"""The keys of each type; with ``min`` and ``max``, and ``type`` itself."""
_TELLING = {
    "peaks": "multimodal", "points": "empirical", "median": "lognormal", "stddev": "normal", "value": "fixed", "mean": "normal",
}  # fmt: skip
"""The type by the first of its keys that is there."""
_BOUNDS = ("min", "max")
LARGEST = 1e9
"""The largest number that a distribution takes or gives."""
_DEVIATIONS = 4.0
"""What ``largest`` counts as far as a distribution without an end reaches."""


class Normal(Struct, frozen=True):
    """Drawn again until it is positive.  stddev: >= 0; with 0, *mean* alone."""

    mean: float
    stddev: float

    def drawn(self, seed: int, stream: str, index: int) -> float:
        if not self.stddev:
            return self.mean
        for attempt in range(_REDRAWS):
            value = self.mean + self.stddev * normal(seed, f"{stream}.{attempt}", index)
            if value > 0:
                return value
        return self.mean

    @property
    def largest(self) -> float:
        return self.mean + _DEVIATIONS * self.stddev


class LogNormal(Struct, frozen=True):
    """Its logarithm is normal with the mean ln(*median*) and the variance 2 ln(*mean* / *median*)."""

    mean: float
    median: float

    @property
    def sigma(self) -> float:
        """The deviation of its logarithm."""
        return math.sqrt(2 * math.log(self.mean / self.median))

    @property
    def largest(self) -> float:
        return self.median * math.exp(_DEVIATIONS * self.sigma)

    def drawn(self, seed: int, stream: str, index: int) -> float:
        return min(LARGEST, math.exp(math.log(self.median) + self.sigma * normal(seed, stream, index)))


class Mixture(Struct, frozen=True):
    """One of the *parts* is drawn by its weight, and a value from it."""

    parts: tuple[tuple[float, Distribution], ...]

    def drawn(self, seed: int, stream: str, index: int) -> float:
        left = uniform(seed, f"{stream}.peak", index) * math.fsum(weight for weight, _ in self.parts)
        last = len(self.parts) - 1
        for number, (weight, part) in enumerate(self.parts):
            left -= weight
            if left < 0 or number == last:
                return part.drawn(seed, f"{stream}.peak{number}", index)
        raise AssertionError("a mixture has parts")

    @property
    def largest(self) -> float:
        return max(part.largest for _, part in self.parts)


class Distribution(Struct, frozen=True):
    """A distribution whose values are between the bounds; what falls outside becomes the bound."""

    shape: Normal | LogNormal | Mixture
    low: float = -math.inf
    high: float = math.inf

    def drawn(self, seed: int, stream: str, index: int) -> float:
        return min(self.high, max(self.low, self.shape.drawn(seed, stream, index)))

    @property
    def largest(self) -> float:
        """The largest value, of a distribution without an end four deviations above the mean, or of its logarithm."""
        return min(self.high, max(self.low, self.shape.largest))

    def size(self, seed: int, stream: str, index: int, least: float) -> float:
        """A number drawn as by :meth:`drawn`, between *least* and :attr:`largest`."""
        return max(least, min(self.largest, self.drawn(seed, stream, index)))

    def length(self, seed: int, stream: str, index: int) -> int:
        """A whole number, at least 1: draw *index* of a stream."""
        return max(1, round(self.drawn(seed, stream, index)))


def distribution(text: str) -> Distribution:
    """The distribution of a JSON text.

    Raises:
        ValueError: It has none of the forms; the message is for the user.
    """
    try:
        value = msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ValueError(f"{text!r} is neither a number nor a distribution like {{\"mean\": 500, \"median\": 300}}") from error
    return _read(value, "the distribution", 0)


def _read(value: Any, what: str, depth: int) -> Distribution:
    if not isinstance(value, dict):
        return Distribution(Normal(_number({"": value}, "", what), 0.0))
    if depth > _DEEPEST:
        raise ValueError(f"{what} has peaks within peaks within peaks")
    kind = value.get("type") or next((kind for key, kind in _TELLING.items() if key in value), None)
    if kind is None:
        raise ValueError(f"{what} has none of the keys {', '.join(_TELLING)}")
    keys = _KEYS.get(kind) if isinstance(kind, str) else None
    if keys is None:
        raise ValueError(f"{what} has the type {kind!r}, which can't be drawn; {', '.join(_KEYS)} can")
    for key in value:
        if key not in (*keys, *_BOUNDS, "type"):
            near = get_close_matches(key, (*_TELLING, *_BOUNDS), 1, 0.7)
            known = f"did you mean {near[0]}?" if near and near != [key] else f"it has {', '.join((*keys, *_BOUNDS))}"
            raise ValueError(f"{what} of type {kind} has no {key}; {known}")
    low, high = (_number(value, key, what) if value.get(key) is not None else None for key in _BOUNDS)
    if low is not None and high is not None and low > high:
        raise ValueError(f"{what} has a min of {low:g} above its max of {high:g}")
    shape = _shape(kind, value, what, depth)
    return Distribution(shape, -math.inf if low is None else low, math.inf if high is None else high)


def _shape(kind: str, value: dict[str, Any], what: str, depth: int) -> Normal | LogNormal | Mixture:
    if kind == "fixed":
        return Normal(_number(value, "value", what), 0.0)
    if kind == "normal":
        return Normal(_number(value, "mean", what), _number(value, "stddev", what) if "stddev" in value else 0.0)
    if kind == "lognormal":
        mean, median = _number(value, "mean", what), _number(value, "median", what)
        if not 0 < median <= mean:
            numbers = f"a median of {median:g} and a mean of {mean:g}"
            raise ValueError(f"{what} has {numbers}; 0 < median <= mean in a log-normal one")
        return LogNormal(mean, median)
    name, least = ("peaks", 2) if kind == "multimodal" else ("points", 1)
    rows = value.get(name)
    if not isinstance(rows, list) or len(rows) < least:
        raise ValueError(f"{name} of {what} are a list of at least {least}")
    parts = [_part(row, f"{name}[{number}] of {what}", name, depth) for number, row in enumerate(rows)]
    heavy = tuple(part for part in parts if part[0])
    if not heavy:
        raise ValueError(f"{name} of {what} have no weight above 0")
    return Mixture(heavy)


def _part(row: Any, what: str, name: str, depth: int) -> tuple[float, Distribution]:
    """A peak or a point, with its weight; 1 where it has none."""
    if not isinstance(row, dict):
        raise ValueError(f"{what} is no mapping")
    weight = _number(row, "weight", what) if "weight" in row else 1.0
    rest = {key: value for key, value in row.items() if key != "weight"}
    if name == "points" and rest.keys() != {"value"}:
        raise ValueError(f"{what} has {', '.join(rest) or 'nothing'}; a point has value and weight")
    return weight, _read(rest.get("distribution") if rest.keys() == {"distribution"} else rest, what, depth + 1)


def _number(value: dict[str, Any], key: str, what: str) -> float:
    """The number below a key.

    Raises:
        ValueError: There is none, or it is outside 0 to 10⁹.
    """
    name = f"{key} of {what}" if key else what
    if key not in value:
        raise ValueError(f"{what} has no {key}")
    number = value[key]
    if isinstance(number, str):  # of a variable in a configuration file
        with contextlib.suppress(ValueError):
            number = float(number)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError(f"{name} is {number!r}, no number")
    if not 0 <= number <= LARGEST:
        raise ValueError(f"{name} is {number:g}; 0 to 10⁹ is allowed")
    return float(number)


def _checked(text: str) -> str:
    distribution(text)
    return text


Readable = Annotated[str, After(_checked)]
"""The type of an option that is a distribution."""
