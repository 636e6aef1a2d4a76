"""The bounds of a template hold in a sandbox that is immutable, too."""

from __future__ import annotations

import pytest
from aiperf_rendering.bounds import Bounded, TooCostly, joined
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Both(Bounded, ImmutableSandboxedEnvironment):
    pass


@pytest.mark.parametrize("environment", [Bounded(), Both()], ids=["sandbox", "immutable"])
@pytest.mark.parametrize(
    "text",
    [
        "{{ 'a' * 10**9 }}",
        "{{ 'a'.ljust(10**9) }}",
        "{% for n in range(99999) %}{{ 'a' * 10**6 }}{% endfor %}",
        "{% set ns = namespace(t='a') %}{% for n in range(99) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}",
    ],
    ids=["times", "padding", "output", "doubling"],
)
def test_what_grows_is_ended(environment: Bounded, text: str) -> None:
    environment.begin()
    with pytest.raises(TooCostly, match="it makes more than"):
        joined(environment.from_string(text).generate())
