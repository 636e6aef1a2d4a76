"""Quantiles of Student's t distribution."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_MANY = 1000
"""Degrees of freedom from which the expansion about the normal quantile errs by less than 1e-12."""
_MOST_TERMS, _TINY, _EPSILON = 500, 1e-300, 1e-16
"""Terms of the continued fraction, what stands for a zero denominator, and the share at which further terms change nothing."""


@lru_cache(256)  # an aggregate asks for one of a few for each of its rows
def student_quantile(probability: float, degrees: int) -> float:
    """The t that a variable with so many degrees of freedom (at least 1) stays below with *probability*, in (0, 1).

    Raises:
        ValueError: A number is out of its range.
    """
    if not 0 < probability < 1 or degrees < 1:
        raise ValueError(f"no quantile at {probability} with {degrees} degrees of freedom")
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -_upper(probability, degrees)
    return _upper(1 - probability, degrees)


def _upper(tail: float, degrees: int) -> float:
    """The t with *tail*, below 0.5, above it."""
    if degrees == 1:
        return 1 / math.tan(math.pi * tail)
    if degrees == 2:
        return (1 - 2 * tail) / math.sqrt(2 * tail * (1 - tail))
    if degrees > _MANY:
        return _expanded(-NormalDist().inv_cdf(tail), degrees)
    low, high = 0.0, 1.0
    while student_tail(high, degrees) > tail:
        low, high = high, 2 * high
    t = (low + high) / 2
    for _ in range(100):  # Newton's method, kept between the bounds by bisection
        excess = student_tail(t, degrees) - tail
        if excess > 0:
            low = t
        else:
            high = t
        following = t + excess / _density(t, degrees)
        following = following if low < following < high else (low + high) / 2
        if abs(following - t) <= 1e-15 * t:
            break
        t = following
    return t


def student_tail(t: float, degrees: int) -> float:
    """The probability above *t*, at least 0: half the regularized incomplete beta function I_x(n/2, 1/2), x = n/(n + t²).

    Source: Abramowitz & Stegun 26.7.1 and 26.5.27.
    """
    square = t * t
    return 0.5 * _beta(degrees / 2, 0.5, degrees / (degrees + square), square / (degrees + square))


def _density(t: float, degrees: int) -> float:
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    return math.exp(scale - (degrees + 1) / 2 * math.log1p(t * t / degrees))


def _beta(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b), *rest* = 1 - x: the continued fraction 8.17.22 of the Digital Library of Mathematical Functions, by Lentz."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, rest, x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)) / a
    fraction = c = 1.0
    d = 0.0
    for step in range(_MOST_TERMS):
        m = step // 2
        if step == 0:
            part = 1.0
        elif step % 2 == 0:
            part = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            part = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + part * d or _TINY)
        c = 1 + part / c or _TINY
        fraction *= c * d
        if abs(1 - c * d) < _EPSILON:
            break
    return front * (fraction - 1)


def _expanded(z: float, degrees: int) -> float:
    """The quantile from the normal one.  Source: Abramowitz & Stegun 26.7.5."""
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / degrees**power for power, term in enumerate(terms))
