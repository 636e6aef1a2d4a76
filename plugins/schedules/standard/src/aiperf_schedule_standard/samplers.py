"""Orders in which the entries of a data set are used."""

from __future__ import annotations

from aiperf.sdk.draws import shuffled, uniform


def sequential(seed: int, session: int, count: int) -> int:
    """In order, wrapping around."""
    return session % count


def shuffle(seed: int, session: int, count: int) -> int:
    """All entries once, then all of them again in another order."""
    return shuffled(seed, session // count, count, session % count)


def random(seed: int, session: int, count: int) -> int:
    """A random entry, with replacement."""
    return int(uniform(seed, "entry", session) * count)
