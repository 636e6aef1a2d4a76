"""Arrival patterns: gaps of mean 1."""

from __future__ import annotations

import math

import numpy as np
from aiperf.sdk.columns import Floats
from aiperf.sdk.draws import uniforms

_BOOST_LANE = 1 << 20
"""The lane of draws behind those of the gaps."""


def constant_gaps(seed: int, stream: str, block: int, count: int, smoothness: float) -> Floats:
    """All gaps equal the mean."""
    return np.ones(count)


def poisson_gaps(seed: int, stream: str, block: int, count: int, smoothness: float) -> Floats:
    """Exponential gaps: arrivals that are independent of each other."""
    gaps: Floats = -np.log(uniforms(seed, stream, block, count))
    return gaps


def gamma_gaps(seed: int, stream: str, block: int, count: int, smoothness: float) -> Floats:
    """Gamma gaps of shape *smoothness* > 0: coefficient of variation 1/√smoothness.

    Marsaglia & Tsang, ACM TOMS 26 (2000); a rejected draw continues in its own lanes, so that no draw depends on another.
    Shapes below 1 are boosted: Gamma(k) = Gamma(k + 1) · U^(1/k).
    """
    boosted = smoothness < 1.0
    shape = smoothness + 1.0 if boosted else smoothness
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    gaps = np.empty(count)
    left = np.arange(count)
    attempt = 0
    while len(left):
        u, v, w = (uniforms(seed, stream, block, count, lane=3 * attempt + k)[left] for k in range(3))
        x = np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * np.pi * v)
        cube = (1.0 + c * x) ** 3
        with np.errstate(invalid="ignore", divide="ignore"):
            good = (cube > 0) & (np.log(w) < 0.5 * x * x + d - d * cube + d * np.log(cube))
        gaps[left[good]] = d * cube[good]
        left = left[~good]
        attempt += 1
    if boosted:
        gaps *= uniforms(seed, stream, block, count, lane=_BOOST_LANE) ** (1.0 / smoothness)
    return gaps / smoothness
