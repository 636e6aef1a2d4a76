"""Who gets a flag, or a place in a configuration file, that several packages declare differently.

The kernel keeps its own, then a first-party package, then of third parties the one of highest manifest priority; of two with
equal priority none has it.  A plugin that loses a flag works without it.  What packages declare alike they share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from aiperf.sdk.categories import CATEGORIES
from aiperf.sdk.descriptor import Descriptor, OptionSpec

Named = dict[tuple[str, str], Descriptor]
_Claim = tuple[Descriptor, OptionSpec]
_KERNEL = "aiperf itself"


def same(one: OptionSpec, other: OptionSpec) -> bool:
    """Whether two declarations are the same option."""
    return (one.flags, one.type, one.arity, one.negative) == (other.flags, other.type, other.arity, other.negative)


def claimed(spec: OptionSpec) -> tuple[str, ...]:
    """The option's flags, and its place in a configuration file."""
    return (*spec.flags, *filter(None, (spec.negative, spec.place)))


def without_flags(options: Iterable[OptionSpec], lost: Mapping[str, str]) -> tuple[OptionSpec, ...]:
    """*options* without these flags and places; an option that has no flag left is left out."""
    kept = []
    for spec in options:
        flags = tuple(flag for flag in spec.flags if flag not in lost)
        negative, place = None if spec.negative in lost else spec.negative, "" if spec.place in lost else spec.place
        if flags:
            kept.append(msgspec.structs.replace(spec, flags=flags, negative=negative, place=place))
    return tuple(kept)


def flags_of_lost(declared: Iterable[OptionSpec], lost: Mapping[str, str]) -> dict[str, str]:
    """By field, the flag of each option in *declared* that has *lost* all it had."""
    return {spec.field: spec.flags[0] for spec in declared if all(flag in lost for flag in spec.flags)}


def settle(named: Named, kernel_options: Iterable[OptionSpec], reserved: Iterable[str]) -> list[str]:
    """Take from the plugins in *named* every flag that belongs to another; a sentence on each package that lost some.

    *reserved*: further flags of the kernel.
    """
    kernel = {*reserved, *(flag for spec in kernel_options for flag in claimed(spec))}
    claims: dict[str, list[_Claim]] = {}
    for plugin in _in_order(named):
        for spec in plugin.options:
            for flag in claimed(spec):
                claims.setdefault(flag, []).append((plugin, spec))
    lost: dict[tuple[str, str], dict[str, str]] = {}
    for flag, rivals in claims.items():
        for plugin, reason in _losers(flag, rivals, kernel):
            lost.setdefault((plugin.category, plugin.name), {})[flag] = reason
    for key, flags in lost.items():
        named[key] = msgspec.structs.replace(named[key], options=without_flags(named[key].options, flags), lost_flags=flags)
    return _sentences(named[key] for key in lost)


def _in_order(named: Named) -> list[Descriptor]:
    """The usable plugins of runs: first-party ones first, then by category and name."""
    order = list(CATEGORIES)
    usable = [plugin for plugin in named.values() if plugin.broken is None and plugin.category != "commands"]
    return sorted(usable, key=lambda plugin: (not plugin.first_party, order.index(plugin.category), plugin.name))


def _losers(flag: str, rivals: Sequence[_Claim], kernel: set[str]) -> Iterable[tuple[Descriptor, str]]:
    """Who doesn't get the flag, each with the reason.  *rivals* are in the order of precedence, apart from priorities."""
    if flag in kernel:
        return [(plugin, f"{_KERNEL} has it") for plugin, _ in rivals]
    first = max((plugin for plugin, _ in rivals), key=_rank)  # of several the first
    keeps = next(spec for plugin, spec in rivals if plugin is first)
    others = [plugin for plugin, spec in rivals if not same(spec, keeps)]
    equals = [plugin for plugin in others if _rank(plugin) == _rank(first) and plugin.distribution != first.distribution]
    if not equals or first.first_party:
        return [(plugin, f"{first.key} of {first.package} has it") for plugin in others]
    both = " and ".join(sorted({plugin.package for plugin in (first, *equals)}))
    return [(plugin, f"{both} declare it with equal priority, so nobody has it") for plugin, _ in rivals]


def _rank(plugin: Descriptor) -> tuple[bool, int]:
    return plugin.first_party, 0 if plugin.first_party else plugin.priority


def _sentences(losers: Iterable[Descriptor]) -> list[str]:
    """One for each package."""
    packages: dict[str, tuple[list[str], dict[str, list[str]]]] = {}
    for plugin in losers:
        keys, reasons = packages.setdefault(plugin.package, ([], {}))
        keys.append(plugin.key)
        for flag, reason in plugin.lost_flags.items():
            flags = reasons.setdefault(reason, [])
            flags += [] if flag in flags else [flag]
    return [
        f"{', '.join(keys)} of {package} {'works' if len(keys) == 1 else 'work'} without {'; without '.join(_groups(reasons))}"
        for package, (keys, reasons) in packages.items()
    ]


def _groups(reasons: Mapping[str, list[str]]) -> Iterable[str]:
    for reason, flags in reasons.items():
        plural = reason.replace("has it", "has them").replace("declare it", "declare them")
        yield f"{', '.join(flags)}: {plural if flags[1:] else reason}"


__all__ = ["claimed", "flags_of_lost", "same", "settle", "without_flags"]
