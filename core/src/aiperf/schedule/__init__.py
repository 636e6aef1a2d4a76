"""Arithmetic of when: arrival patterns, rates, ramps, scheduling modes."""

from aiperf.moved import absent

__getattr__ = absent(__name__)
