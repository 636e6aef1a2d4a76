"""What is installed: every plugin by category and name, known without importing any of them.

Names, packages and versions come from entry points, everything else from each package's ``aiperf.yaml``.  A plugin is
imported when it is used.

Several packages may claim one name.  A pin decides; else the higher priority; else a third party's package over a first-party
one, so that a fork can override.  Two third parties at equal priority are refused, both named.  A broken package never takes a
name from a usable one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from aiperf.errors import PluginError, UnknownPlugin, UsageError
from aiperf.registry import discovery, manifest
from aiperf.registry.guides import where_is
from aiperf.registry.option_claims import settle
from aiperf.sdk.categories import CATEGORIES, find_category, singular
from aiperf.sdk.descriptor import Descriptor, OptionSpec, PluginRef, canonical, normal

if TYPE_CHECKING:
    from aiperf.registry.hooks import Hooks

T = TypeVar("T")
_PIN, _SWITCH, _VARIABLE = "--plugin", "--disable-plugin", "AIPERF_DISABLE_PLUGINS"
RESERVED = ("--help", "-h", "--version", "--config", "-f", _PIN, _SWITCH)
"""Flags that are read before the others are known."""
_SWITCHED_OFF = f"it is switched off by {_SWITCH} or {_VARIABLE}"


class Registry:
    """Every installed plugin.

    *candidates*: the installed plugins, conflicts unresolved.  *pins*: ``category:name`` to the distribution that gets the
    name.  *disabled*: ``category:name`` of plugins to leave out.  *kernel_options*: None reads the kernel's own.
    """

    def __init__(
        self, candidates: Iterable[Descriptor] = (), *, pins: Mapping[str, str] | None = None, disabled: Iterable[str] = (),
        kernel_options: Sequence[OptionSpec] | None = None, problems: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._candidates = candidates = list(candidates)
        self._pins, self._off = dict(pins or {}), tuple(disabled)
        self._unreadable = tuple(problems)
        self.kernel_options = tuple(_kernel_options() if kernel_options is None else kernel_options)
        chosen = {_key(pin, _PIN): normal(owner) for pin, owner in (pins or {}).items()}
        self._check_pins(candidates, chosen)
        self._pinned = frozenset(chosen)
        off = {self._checked(word, candidates, _SWITCH) for word in self._off}
        self.disabled = tuple(plugin for plugin in candidates if (plugin.category, plugin.name) in off)
        """Plugins that are switched off."""
        enabled = [plugin for plugin in candidates if (plugin.category, plugin.name) not in off]
        self.problems = self._unreadable
        """Sentences on packages that cannot be read, or should not be installed, and on aliases that nobody got."""
        self._usable_ones: dict[str, list[Descriptor]] = {}
        self._models: dict[str, Any] = {}
        self._named, self._broken, losses = resolve(enabled, chosen, self.kernel_options)
        self.losses = tuple(losses)
        """Sentences on packages that work without some of their flags, which belong to others."""
        self._aliases = self._claim_aliases()
        self._hooks: Hooks | None = None

    @classmethod
    def discover(cls, *, pins: Mapping[str, str] | None = None, disabled: Iterable[str] = (), cache: bool = True) -> Registry:
        """The plugins of this environment; *cache* False reads all packages again.

        ``AIPERF_DISABLE_PLUGINS`` (``category:name``, by commas) counts like *disabled*; its names needn't be installed.

        Raises:
            UsageError: A pin or a disabled name that isn't installed.
        """
        installed = discovery.load() if cache else None
        if installed is None:
            installed = discovery.discover()
            if cache:
                discovery.save(installed)
        words, problems = _disabled_by_environment(installed.candidates)
        return cls(
            installed.candidates, pins=pins, disabled=[*disabled, *words], kernel_options=installed.kernel_options or None,
            problems=[*installed.problems, *problems],
        )  # fmt: skip

    def choosing(self, *, pins: Mapping[str, str], disabled: Iterable[str]) -> Registry:
        """The same plugins with further pins and further disabled names.

        Raises:
            UsageError: A pin or a disabled name that isn't installed.
        """
        return Registry(
            self._candidates, pins={**self._pins, **pins}, disabled=(*self._off, *disabled), kernel_options=self.kernel_options,
            problems=self._unreadable,
        )  # fmt: skip

    @property
    def broken(self) -> list[Descriptor]:
        """Plugins that can't be used, with the cause; also those that lost their name to a usable plugin."""
        return list(self._broken)

    def categories(self) -> list[str]:
        """All categories, also those without an installed plugin."""
        return list(CATEGORIES)

    def names(self, category: str) -> list[str]:
        """Names of the usable plugins of a category, without aliases."""
        return [plugin.name for plugin in self.all(category)]

    def all(self, category: str) -> list[Descriptor]:
        """The usable plugins of a category, by name."""
        if category not in self._usable_ones:
            named = sorted(self._named.items())
            self._usable_ones[category] = [one for key, one in named if key[0] == category and one.broken is None]
        return list(self._usable_ones[category])

    def find(self, category: str, name: str) -> Descriptor | None:
        """The plugin of that name or alias, usable or broken; None where no plugin has it."""
        name = canonical(name)
        return self._named.get((category, name)) or self._named.get((category, self._aliases.get((category, name), "")))

    def descriptor(self, category: str, name: str) -> Descriptor:
        """Like :meth:`find`.

        Raises:
            PluginError: No plugin has the name; the message lists installed names and the nearest.
        """
        plugin = self.find(category, name)
        if plugin is not None:
            return plugin
        kind = singular(category)
        key = canonical(name)
        if any((plugin.category, plugin.name) == (category, key) for plugin in self.disabled):
            raise PluginError(f"the {kind} plugin {name!r} can't be used: {_SWITCHED_OFF}")
        installed = self.names(category)
        from difflib import get_close_matches  # only where a name is unknown: it costs a start 1 ms

        close = get_close_matches(key, [*installed, *(alias for owner, alias in self._aliases if owner == category)], 1, 0.7)
        hints = [f"did you mean {word!r}?" for word in close]
        hints = where_is(category, name, self, hints)
        raise UnknownPlugin(f"no {kind} plugin is called {name!r}", f"installed: {', '.join(installed) or 'none'}", *hints)

    def rank(self, plugin: Descriptor) -> tuple[int, int, int]:
        """What decides between plugins that claim one thing, such as a metric's tag: pinned, priority, not one of ours."""
        return int((plugin.category, plugin.name) in self._pinned), plugin.priority, int(not plugin.first_party)

    def ref(self, category: str, name: str) -> PluginRef:
        """The part of a plugin that another process needs to load it.

        Raises:
            PluginError: No plugin has the name, or it is broken; the message names cause, package and version.
        """
        return self._usable(category, name).ref

    def load(self, category: str, name: str) -> Any:
        """Import the plugin.

        Raises:
            PluginError: As :meth:`ref`; or its import fails.
        """
        plugin = self._usable(category, name)
        from aiperf.registry.third_party import load_by_name  # not where nothing is loaded

        return load_by_name(plugin, *plugin.requires)

    def load_options_model(self, one: Descriptor) -> Any:
        """The class of the plugin's own options; None where it declares none.

        Raises:
            PluginError: It can't be imported, or another process can't decode its instances.
        """
        if one.options_model is None:
            return None
        known = f"{one.key} {one.options_model} {one.distribution}"
        if known in self._models:
            return self._models[known]
        from aiperf.registry.third_party import load
        from aiperf.sdk.options import undecodable

        options_class = load(msgspec.structs.replace(one, value=one.options_model), *one.requires)
        fault = undecodable(options_class)
        if fault is not None:
            raise PluginError(f"{one} can't be used: its options class {one.options_model}: {fault}")
        self._models[known] = options_class
        return options_class

    def mark_broken(self, one: Descriptor, cause: str) -> None:
        """Take a plugin out of use for the rest of the process.

        The plugin's name at the beginning of *cause* becomes "it", because lists show the name before the cause.
        """
        itself = str(one)
        if cause.startswith(itself):
            cause = f"it{cause.removeprefix(itself)}"
        failed = msgspec.structs.replace(one, broken=cause, options=())
        self._named[one.category, one.name] = failed
        self._usable_ones.clear()
        self._broken.append(failed)

    def hooks(self) -> Hooks:
        """The hooks of this process, with every usable ``hooks`` plugin registered; a plugin that can't be is one warning."""
        if self._hooks is None:
            from aiperf.registry.hooks import Hooks
            from aiperf.registry.third_party import load

            self._hooks = Hooks()
            for plugin in self.all("hooks"):
                if plugin.capabilities.get("guide"):
                    continue
                try:
                    self._hooks.register(plugin.ref, load(plugin, *plugin.requires))
                except PluginError as error:
                    self.mark_broken(plugin, error.message)
                    self._hooks.report(f"{error.message}; it is left out")
        return self._hooks

    def _usable(self, category: str, name: str) -> Descriptor:
        one = self.descriptor(category, name)
        if one.broken is not None:
            raise PluginError(f"the {singular(category)} plugin {one.name!r} of {one.package} can't be used: {one.broken}")
        return one

    def _claim_aliases(self) -> dict[tuple[str, str], str]:
        """Alias to name.  Aliases follow the rules for names; an alias with two equal claims belongs to neither."""
        claims: dict[tuple[str, str], list[Descriptor]] = {}
        for one in self._named.values():
            for alias in one.aliases if one.broken is None else ():
                claims.setdefault((one.category, alias), []).append(one)
        settled = {}
        for key, owners in claims.items():
            rivals, _ = strongest(owners, rank)
            if len(rivals) == 1:
                settled[key] = rivals[0].name
                continue
            both = " and ".join(f"{rival.name} ({rival.package})" for rival in rivals[:2])
            self.problems += (f"the {singular(key[0])} plugins {both} both claim the alias {key[1]!r}: neither has it",)
        return settled

    def _check_pins(self, candidates: list[Descriptor], pins: Mapping[tuple[str, str], str]) -> None:
        for (category, name), owner in pins.items():
            self._checked(f"{category}:{name}", candidates, _PIN)
            owners = [one.distribution for one in candidates if (one.category, one.name) == (category, name)]
            if owner not in owners:
                what = f"--plugin {category}:{name}={owner}: {owner} does not provide it"
                raise UsageError(what, f"provided by: {', '.join(owners)}")

    def _checked(self, word: str, candidates: list[Descriptor], flag: str) -> tuple[str, str]:
        category, name = _key(word, flag)
        names = [one.name for one in candidates if one.category == category]
        if name not in names:
            from difflib import get_close_matches  # of a wrong name alone

            installed = ", ".join(sorted(set(names))) or "none"
            near = [f"did you mean {close!r}?" for close in get_close_matches(name, names, 1, 0.7)]
            raise UsageError(f"{flag}: no {singular(category)} plugin is called {name!r}", f"installed: {installed}", *near)
        return category, name


def _key(word: str, flag: str) -> tuple[str, str]:
    """Category and name of ``category:name``, a value of *flag*.

    Raises:
        UsageError: The word has another form, or there is no such category.
    """
    category, colon, name = word.partition(":")
    found = find_category(category)
    if not colon or not name:
        raise UsageError(f"{flag}: {word!r} is not CATEGORY:NAME", "for example: endpoints:chat")
    if found is None:
        raise UsageError(f"{flag}: there is no plugin category {category!r}", f"categories: {', '.join(CATEGORIES)}")
    return found, canonical(name)


def _disabled_by_environment(candidates: Iterable[Descriptor]) -> tuple[list[str], list[str]]:
    """Installed names in ``AIPERF_DISABLE_PLUGINS``, and a sentence on each other name: it may serve another environment."""
    installed = {(plugin.category, plugin.name) for plugin in candidates}
    words, problems = [], []
    for word in filter(None, map(str.strip, os.environ.get(_VARIABLE, "").split(","))):
        try:
            if _key(word, _VARIABLE) in installed:
                words.append(word)
            else:
                problems.append(f"{_VARIABLE} names {word}, which is not installed")
        except UsageError as error:
            problems.append(str(error))
    return words, problems


@cache
def _kernel_options() -> tuple[OptionSpec, ...]:
    return manifest.read((Path(__file__).parent.parent / manifest.FILE_NAME).read_bytes()).options


def resolve(
    candidates: Iterable[Descriptor], pins: Mapping[tuple[str, str], str], kernel_options: Sequence[OptionSpec] = ()
) -> tuple[dict[tuple[str, str], Descriptor], list[Descriptor], list[str]]:
    """Settle all names and flags.

    The plugin of each (category, name), usable or broken; all broken plugins, losers too; and a sentence on each package that
    lost flags.

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
    return named, broken, settle(named, kernel_options, RESERVED)


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
    return msgspec.structs.replace(first, distribution=distributions, version="", options=(), broken=cause)


def rank(claim: Descriptor) -> tuple[int, bool]:
    """What decides between claims of one name, the greater wins."""
    return claim.priority, not claim.first_party


def strongest(claims: Sequence[T], rank_of: Callable[[T], Any]) -> tuple[list[T], list[T]]:
    """The claims of the greatest rank, of which more than one exclude each other, and the claims that they shadow."""
    ranked = sorted(claims, key=rank_of, reverse=True)
    rivals = [claim for claim in ranked if rank_of(claim) == rank_of(ranked[0])]
    return rivals, ranked[len(rivals) :]


def _over(winner: Descriptor, losers: list[Descriptor]) -> Descriptor:
    return msgspec.structs.replace(winner, shadows=tuple(loser.package for loser in losers)) if losers else winner
