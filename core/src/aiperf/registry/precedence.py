"""Who gets a name when several packages claim it.  Pure: descriptors in, descriptors out, nothing imported.

A pin decides; else the higher priority; else a stranger's package over ours, so that a fork can override.  Two strangers
at equal priority are refused, both named.  A package that can't be used never takes a name from one that can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import msgspec
from msgspec import Struct

from aiperf.descriptor import CATEGORIES, Descriptor, OptionSpec


class Resolved(Struct, frozen=True):
    """*named*: who has each (category, name), usable or not.  *broken*: everything that can't be used, losers too."""

    named: dict[tuple[str, str], Descriptor]
    broken: tuple[Descriptor, ...]


def resolve(
    candidates: Iterable[Descriptor], pins: Mapping[tuple[str, str], str], kernel_options: Sequence[OptionSpec] = ()
) -> Resolved:
    """Settle every name.  *pins*: (category, name) to the distribution that shall have it."""
    named: dict[tuple[str, str], Descriptor] = {}
    broken: list[Descriptor] = []
    for key, group in groupby(sorted(candidates, key=_key), key=_key):
        claims = list(group)
        usable = [claim for claim in claims if claim.broken is None]
        failed = [claim for claim in claims if claim.broken is not None]
        winner = _winner(usable, failed, pins.get(key))
        named[key] = winner
        broken += [claim for claim in failed if claim is not winner]
        if winner.broken is not None:
            broken.append(winner)
    return _settle_options(Resolved(named, tuple(broken)), kernel_options)


def _key(claim: Descriptor) -> tuple[str, str]:
    return claim.category, claim.name


def label(claim: Descriptor) -> str:
    return f"{claim.distribution} {claim.version}".rstrip()


def _winner(usable: list[Descriptor], failed: list[Descriptor], pin: str | None) -> Descriptor:
    if pin is not None:
        pinned = [claim for claim in usable + failed if claim.distribution == pin]
        if pinned:
            return _over(pinned[0], [claim for claim in usable if claim is not pinned[0]])
    if not usable:
        return failed[0]
    ranked = sorted(usable, key=rank, reverse=True)
    first = ranked[0]
    rivals = [claim for claim in ranked if rank(claim) == rank(first)]
    if len(rivals) == 1:
        return _over(first, ranked[1:])
    names = " and ".join(label(claim) for claim in rivals)
    return msgspec.structs.replace(
        first,
        distribution=", ".join(claim.distribution for claim in rivals),
        version="",
        options=(),
        broken=f"{names} both provide it; choose with --plugin {first.category}:{first.name}={rivals[0].distribution}"
        f" or --plugin {first.category}:{first.name}={rivals[1].distribution}",
    )


def rank(claim: Descriptor) -> tuple[int, bool]:
    """What decides between claims of one name, the greater wins."""
    return claim.priority, not claim.first_party


def _over(winner: Descriptor, losers: list[Descriptor]) -> Descriptor:
    return msgspec.structs.replace(winner, shadows=tuple(label(loser) for loser in losers)) if losers else winner


def _settle_options(resolved: Resolved, kernel_options: Sequence[OptionSpec]) -> Resolved:
    """Break plugins that declare a flag, or a place in a file, which means something else already.

    Two packages may declare the very same option (the same flags, type and arity): it is shown once and both get it.
    """
    taken: dict[str, tuple[OptionSpec, str]] = {}
    for spec in kernel_options:
        taken |= dict.fromkeys(_flags(spec), (spec, "the kernel"))
    named, broken = dict(resolved.named), list(resolved.broken)
    order = list(CATEGORIES)
    profile = [one for one in named.values() if one.broken is None and one.category != "commands"]
    for plugin in sorted(profile, key=lambda one: (not one.first_party, order.index(one.category), one.name)):
        clash = next(_clashes(plugin, taken), None)
        if clash:
            flag, owner = clash
            failed = msgspec.structs.replace(plugin, options=(), broken=f"its option {flag} is already that of {owner}")
            named[plugin.category, plugin.name] = failed
            broken.append(failed)
            continue
        for spec in plugin.options:
            for flag in _flags(spec):
                taken.setdefault(flag, (spec, f"{plugin.category}:{plugin.name} ({label(plugin)})"))
    return Resolved(named, tuple(broken))


def _clashes(plugin: Descriptor, taken: Mapping[str, tuple[OptionSpec, str]]) -> Iterator[tuple[str, str]]:
    """Flags and places of the plugin that mean something else already, and whose they are."""
    for spec in plugin.options:
        for flag in _flags(spec):
            if flag in taken and not same(spec, taken[flag][0]):
                yield flag, taken[flag][1]


def same(one: OptionSpec, other: OptionSpec) -> bool:
    """Whether two packages mean one option."""
    return (one.flags, one.type, one.arity, one.negative) == (other.flags, other.type, other.arity, other.negative)


def _flags(spec: OptionSpec) -> tuple[str, ...]:
    """All by which the option is called, its place in a file too."""
    return (*spec.flags, *filter(None, (spec.negative, spec.place)))
