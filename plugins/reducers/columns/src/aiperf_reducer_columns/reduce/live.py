"""How many requests were reduced."""

from __future__ import annotations


class Reduced:
    """done: requests so far."""

    def __init__(self) -> None:
        self.done = 0
