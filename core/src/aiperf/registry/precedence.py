"""Which plugin gets a name that several packages claim.  Nothing is imported.

A pin decides; else the higher priority; else a third party's package over a first-party one, so that a fork can override.
Two third parties at equal priority are refused, both named.  A broken package never takes a name from a usable one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

from msgspec.structs import replace

from aiperf.sdk.categories import CATEGORIES
from aiperf.sdk.descriptor import Descriptor, OptionSpec

T = TypeVar("T")


def normal(distribution: str) -> str:
    """The normal form of a distribution's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution.strip()).lower()


def resolve(
    candidates: Iterable[Descriptor], pins: Mapping[tuple[str, str], str], kernel_options: Sequence[OptionSpec] = ()
) -> tuple[dict[tuple[str, str], Descriptor], list[Descriptor]]:
    """Settle all names: the plugin of each (category, name), usable or broken; and all broken plugins, losers too.

    *pins*: (category, name) to the distribution that gets the name.
    """
    named: dict[tuple[str, str], Descriptor] = {}
    broken: list[Descriptor] = []
    key_of = attrgetter("category", "name")
    for key, group in groupby(sorted(candidates, key=key_of), key=key_of):
        claims = list(group)
        winner = named[key] = _winner(claims, pins.get(key))
        losers = [claim for claim in claims if claim is not winner]
        broken += [claim for claim in (*losers, winner) if claim.broken is not None]
    _settle_options(named, broken, kernel_options)
    return named, broken


def _winner(claims: list[Descriptor], pin: str | None) -> Descriptor:
    claims = sorted(claims, key=lambda claim: claim.broken is not None)
    usable = [claim for claim in claims if claim.broken is None]
    pinned = next((claim for claim in claims if claim.distribution == pin), None)
    if pinned is not None:
        return _over(pinned, [claim for claim in usable if claim is not pinned])
    if not usable:
        return claims[0]
    rivals, losers = strongest(usable, rank)
    first = rivals[0]
    if len(rivals) == 1:
        return _over(first, losers)
    names = " and ".join(claim.package for claim in rivals)
    choices = " or ".join(f"--plugin {first.key}={claim.distribution}" for claim in rivals[:2])
    distributions, cause = ", ".join(claim.distribution for claim in rivals), f"{names} both provide it; choose with {choices}"
    return replace(first, distribution=distributions, version="", options=(), broken=cause)


def rank(claim: Descriptor) -> tuple[int, bool]:
    """What decides between claims of one name, the greater wins."""
    return claim.priority, not claim.first_party


def strongest(claims: Sequence[T], rank_of: Callable[[T], Any]) -> tuple[list[T], list[T]]:
    """The claims of the greatest rank, of which more than one exclude each other, and the claims that they shadow."""
    ranked = sorted(claims, key=rank_of, reverse=True)
    rivals = [claim for claim in ranked if rank_of(claim) == rank_of(ranked[0])]
    return rivals, ranked[len(rivals) :]


def _over(winner: Descriptor, losers: list[Descriptor]) -> Descriptor:
    return replace(winner, shadows=tuple(loser.package for loser in losers)) if losers else winner


def _settle_options(
    named: dict[tuple[str, str], Descriptor], broken: list[Descriptor], kernel_options: Sequence[OptionSpec]
) -> None:
    """Mark plugins as broken whose flag, or place in a configuration file, has another meaning already.

    Two packages may declare the same option (flags, type and arity): help shows it once, and both get its value.
    """
    taken = {flag: (spec, "the kernel") for spec in kernel_options for flag in _flags(spec)}
    order = list(CATEGORIES)
    profile = [plugin for plugin in named.values() if plugin.broken is None and plugin.category != "commands"]
    for plugin in sorted(profile, key=lambda plugin: (not plugin.first_party, order.index(plugin.category), plugin.name)):
        flags = [(flag, spec) for spec in plugin.options for flag in _flags(spec)]
        clash = next((flag for flag, spec in flags if flag in taken and not same(spec, taken[flag][0])), None)
        if clash is None:
            taken = {flag: (spec, f"{plugin.key} ({plugin.package})") for flag, spec in flags} | taken
            continue
        failed = replace(plugin, options=(), broken=f"its option {clash} is already that of {taken[clash][1]}")
        named[plugin.category, plugin.name] = failed
        broken.append(failed)


def same(one: OptionSpec, other: OptionSpec) -> bool:
    """Whether two declarations are the same option."""
    return (one.flags, one.type, one.arity, one.negative) == (other.flags, other.type, other.arity, other.negative)


def _flags(spec: OptionSpec) -> tuple[str, ...]:
    """The option's flags, and its place in a configuration file."""
    return (*spec.flags, *filter(None, (spec.negative, spec.place)))
