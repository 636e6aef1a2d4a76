"""A look at the servers behind a load at whose end no request succeeded: verdicts ask, and what they find is kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from aiperf.registry.third_party import isolated, load
from aiperf.sdk.verdict import Look, Verdict

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry
    from aiperf.sdk.descriptor import Descriptor, PluginRef
    from aiperf.sdk.fetch import Servers
    from aiperf.sdk.plan import Plan

_LOOK_S = 3.0
"""Of all verdicts together."""
_POLL_S = 0.01


def looked(
    plan: Plan, causes: tuple[str, ...], servers: Servers, registry: Registry, blame: Callable[[str], None]
) -> dict[str, str]:
    """What the plan's verdicts find, by name.

    *causes*: kinds of the failures.  *blame*: hears of each verdict that fails.
    """
    found: dict[str, str] = {}
    until_s = time.monotonic() + _LOOK_S
    for ref in plan.plugins.verdicts:
        with isolated(ref, blame):
            verdict: type[Verdict] = load(ref)
            if verdict.look is not Verdict.look:
                look = Look(causes, plan.public(), servers, endpoints(registry))
                found |= _asked(ref, verdict(plan.plugins.options_of(ref)), look, until_s, blame)
    return found


def _asked(ref: PluginRef, verdict: Verdict, look: Look, until_s: float, blame: Callable[[str], None]) -> dict[str, str]:
    """What the verdict finds in time, or before a signal."""
    found, failures = dict[str, str](), list[str]()

    def ask() -> None:
        with isolated(ref, failures.append):
            found.update({str(name): str(text) for name, text in verdict.look(look).items()})

    # A daemon: a server that never answers must not keep the program from ending.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    while asking.is_alive() and time.monotonic() < until_s and look.servers.wait(_POLL_S):
        pass
    for sentence in failures:
        blame(sentence)
    return dict(found)


def endpoints(registry: Registry) -> tuple[Descriptor, ...]:
    """The installed endpoint types, the one that runs have without an option first."""
    usual = next((option.default for option in registry.kernel_options if option.field == "endpoint_type"), None)
    return tuple(sorted(registry.all("endpoints"), key=lambda each: each.name != usual))
