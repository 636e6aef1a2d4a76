"""A plan's sampler: the function that gives each session its entry, checked."""

from __future__ import annotations

from aiperf.errors import PluginError
from aiperf.registry.third_party import blamed, load
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
