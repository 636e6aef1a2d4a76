"""Arithmetic of when: arrival patterns, rates, ramps, scheduling modes."""

from typing import Any

from aiperf.moved import absent


def __getattr__(name: str) -> Any:
    raise absent(__name__, name)
