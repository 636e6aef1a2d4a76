"""The {{ cookiecutter.name }} order: a few entries often, most of them seldom."""

from __future__ import annotations

from aiperf import uniform


def sample(seed: int, session: int, count: int) -> int:
    """The entry, 0 to *count* - 1, of a session; a function of the arguments alone, so that any worker finds its own.

    The square of an even draw: half of the sessions use the first quarter of the entries.
    """
    return int(uniform(seed, "{{ cookiecutter.__key }}", session) ** 2 * count)
