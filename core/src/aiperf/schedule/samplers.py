"""Orders in which the entries of a data set are used."""

from __future__ import annotations

from aiperf.errors import PluginError
from aiperf.registry.third_party import blamed, load
from aiperf.sdk.draws import shuffled, uniform
from aiperf.sdk.plan import Plan
from aiperf.sdk.sampler import Sampler


def sampler_of(plan: Plan) -> Sampler:
    """The function from a session of the plan to its entry.

    Raises:
        PluginError: The sampler can't be imported; a call fails or returns no entry.
    """
    ref = plan.plugins.samplers[plan.data.sampling]
    sample: Sampler = load(ref)

    def sampled(seed: int, session: int, count: int) -> int:
        try:
            entry = sample(seed, session, count)
            fits = 0 <= entry < count
        except (Exception, SystemExit):  # for each session: a context manager costs as much as the rest
            with blamed(ref, "failed"):
                raise
        if not fits:
            raise PluginError(f"{ref} gave session {session} entry {entry}, of {count}")
        return entry

    return sampled


def sequential(seed: int, session: int, count: int) -> int:
    """In order, wrapping around."""
    return session % count


def shuffle(seed: int, session: int, count: int) -> int:
    """All entries once, then all of them again in another order."""
    return shuffled(seed, session // count, count, session % count)


def random(seed: int, session: int, count: int) -> int:
    """A random entry, with replacement."""
    return int(uniform(seed, "entry", session) * count)
