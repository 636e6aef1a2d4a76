"""The contract of samplers: which entry of the data set a session uses."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class SamplerFacts(Struct, frozen=True):
    """What the manifest says of an order, below ``capabilities``.

    in_order: entry after entry, and from the first one again.  repeats: an entry may come twice before each has come once.
    """

    in_order: bool = False
    repeats: bool = False


class Sampler(Protocol):
    """The order of a data set's entries: the entry, 0 to *count* - 1, of session number *session*.

    A function of its arguments alone.
    """

    def __call__(self, seed: int, session: int, count: int) -> int: ...


__all__ = ["Sampler"]
