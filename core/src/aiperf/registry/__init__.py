"""What is installed: every plugin by category and name, known without importing any of them.

Names, packages and versions come from entry points, everything else from each package's ``aiperf.yaml``.  A plugin is
imported when it is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from aiperf.descriptor import CATEGORIES, Descriptor, OptionSpec, PluginRef, canonical
from aiperf.errors import PluginError, UsageError
from aiperf.registry import snapshot
from aiperf.registry.precedence import label, rank, resolve
from aiperf.registry.snapshot import Found

if TYPE_CHECKING:
    import pluggy

_SWITCHED_OFF = "it is switched off by --disable-plugin or AIPERF_DISABLE_PLUGINS"


class Registry:
    """Every installed plugin.

    *candidates* are what was found, conflicts unresolved.  *pins*: ``category:name`` to the distribution that shall have the
    name.  *disabled*: ``category:name`` to leave out.  *kernel_options*: None reads the kernel's own.
    """

    def __init__(
        self,
        candidates: Iterable[Descriptor] = (),
        *,
        pins: Mapping[str, str] | None = None,
        disabled: Iterable[str] = (),
        kernel_options: Sequence[OptionSpec] | None = None,
        problems: Sequence[str] = (),
    ) -> None:
        candidates = list(candidates)
        self._candidates = candidates
        self._pins, self._off = dict(pins or {}), tuple(disabled)
        self.problems = tuple(problems)
        """Sentences about packages that could not be read at all, or should not be installed."""
        self.kernel_options = tuple(_kernel_options() if kernel_options is None else kernel_options)
        chosen = {_key(pin): _distribution(owner) for pin, owner in (pins or {}).items()}
        self._check_pins(candidates, chosen)
        off = {self._checked(word, candidates) for word in self._off}
        self.disabled = tuple(one for one in candidates if (one.category, one.name) in off)
        """Plugins that were switched off."""
        kept = [one for one in candidates if (one.category, one.name) not in off]
        resolved = resolve(kept, chosen, self.kernel_options)
        self._named = resolved.named
        self._broken = list(resolved.broken)
        self._aliases = self._claim_aliases()
        self._hooks: pluggy.PluginManager | None = None

    @classmethod
    def discover(
        cls, *, pins: Mapping[str, str] | None = None, disabled: Iterable[str] = (), cache: bool = True
    ) -> Registry:
        """What is installed in this environment; *cache* False reads everything again.

        ``AIPERF_DISABLE_PLUGINS`` (``category:name``, by commas) counts like *disabled*, but may name what isn't installed.

        Raises:
            UsageError: A pin or a switched-off name that isn't installed.
        """
        found = snapshot.load() if cache else None
        if found is None:
            from aiperf.registry.discovery import discover

            found = discover()
            if cache:
                snapshot.save(found)
        words, problems = _switched_off_by_environment(found)
        return cls(
            found.candidates,
            pins=pins,
            disabled=[*disabled, *words],
            kernel_options=found.kernel_options or None,
            problems=[*found.problems, *problems],
        )

    def choosing(self, *, pins: Mapping[str, str], disabled: Iterable[str]) -> Registry:
        """The same plugins with further pins, and further ones switched off.

        Raises:
            UsageError: A pin or a switched-off name that isn't installed.
        """
        return Registry(
            self._candidates,
            pins={**self._pins, **pins},
            disabled=(*self._off, *disabled),
            kernel_options=self.kernel_options,
            problems=self.problems,
        )

    @property
    def broken(self) -> list[Descriptor]:
        """Everything that can't be used, with its cause; a plugin that lost its name to a usable one too."""
        return list(self._broken)

    def categories(self) -> list[str]:
        """Every category, also those of which nothing is installed."""
        return list(CATEGORIES)

    def names(self, category: str) -> list[str]:
        """Names a person may type, aliases left out."""
        return [one.name for one in self.all(category)]

    def all(self, category: str) -> list[Descriptor]:
        """The usable plugins of a category, by name."""
        return [one for key, one in sorted(self._named.items()) if key[0] == category and one.broken is None]

    def find(self, category: str, name: str) -> Descriptor | None:
        """The plugin of that name or alias, broken or not; None where nothing has it."""
        name = canonical(name)
        return self._named.get((category, name)) or self._named.get((category, self._aliases.get((category, name), "")))

    def descriptor(self, category: str, name: str) -> Descriptor:
        """Like :meth:`find`.

        Raises:
            PluginError: Nothing has the name; says what is installed and what is near.
        """
        found = self.find(category, name)
        if found is not None:
            return found
        kind = singular(category)
        key = canonical(name)
        if any((one.category, one.name) == (category, key) for one in self.disabled):
            raise PluginError(f"the {kind} plugin {name!r} can't be used: {_SWITCHED_OFF}")
        installed = self.names(category)
        hints = [f"installed: {', '.join(installed) or 'none'}"]
        typed = [*installed, *(alias for owner, alias in self._aliases if owner == category)]
        close = get_close_matches(key, typed, 1, 0.7)
        if close:
            hints.append(f"did you mean {close[0]!r}?")
        raise PluginError(f"no {kind} plugin is called {name!r}", *hints)

    def ref(self, category: str, name: str) -> PluginRef:
        """Enough to load it in another process.

        Raises:
            PluginError: Nothing has the name, or what has it is broken; names cause, package and version.
        """
        one = self._usable(category, name)
        return PluginRef(one.category, one.name, one.value, one.distribution, one.version)

    def load(self, category: str, name: str) -> Any:
        """Import it.

        Raises:
            PluginError: As :meth:`ref`; or its import fails.
        """
        one = self._usable(category, name)
        from aiperf.registry.loading import load

        return load(one)

    def load_options_model(self, one: Descriptor) -> Any:
        """The pydantic model of the plugin's own options; None where it declares none.

        Raises:
            PluginError: It can't be imported.
        """
        if one.options_model is None:
            return None
        from aiperf.registry.loading import load

        return load(msgspec.structs.replace(one, value=one.options_model))

    def mark_broken(self, one: Descriptor, cause: str) -> None:
        """Take a plugin out of use for the rest of the process, because loading it showed a fault.

        A *cause* that begins with the plugin's name begins with "it" from then on: whoever shows it names the plugin.
        """
        itself = f"plugin {one.category}:{one.name} of {label(one)}"
        if cause.startswith(itself):
            cause = f"it{cause.removeprefix(itself)}"
        failed = msgspec.structs.replace(one, broken=cause, options=())
        self._named[one.category, one.name] = failed
        self._broken.append(failed)

    def hooks(self) -> pluggy.PluginManager:
        """The hook caller, with every usable ``hooks`` plugin registered; one warning for each that can't be."""
        if self._hooks is None:
            from aiperf.registry.hooking import manager

            self._hooks = manager(self)
        return self._hooks

    def _usable(self, category: str, name: str) -> Descriptor:
        one = self.descriptor(category, name)
        if one.broken is not None:
            raise PluginError(f"the {singular(category)} plugin {one.name!r} of {label(one)} can't be used: {one.broken}")
        return one

    def _claim_aliases(self) -> dict[tuple[str, str], str]:
        """Alias to name.  Precedence as for names; an alias that two equals claim belongs to neither."""
        claims: dict[tuple[str, str], list[Descriptor]] = {}
        for one in self._named.values():
            for alias in one.aliases if one.broken is None else ():
                claims.setdefault((one.category, alias), []).append(one)
        settled = {}
        for key, owners in claims.items():
            ranked = sorted(owners, key=rank, reverse=True)
            if len(ranked) > 1 and rank(ranked[0]) == rank(ranked[1]):
                both = f"{ranked[0].name} ({label(ranked[0])}) and {ranked[1].name} ({label(ranked[1])})"
                self.problems += (f"the {singular(key[0])} plugins {both} both claim the alias {key[1]!r}: neither has it",)
                continue
            settled[key] = ranked[0].name
        return settled

    def _check_pins(self, candidates: list[Descriptor], pins: Mapping[tuple[str, str], str]) -> None:
        for (category, name), owner in pins.items():
            self._checked(f"{category}:{name}", candidates)
            owners = [one.distribution for one in candidates if (one.category, one.name) == (category, name)]
            if owner not in owners:
                raise UsageError(
                    f"--plugin {category}:{name}={owner}: {owner} does not provide it", f"provided by: {', '.join(owners)}"
                )

    def _checked(self, word: str, candidates: list[Descriptor]) -> tuple[str, str]:
        category, name = _key(word)
        names = [one.name for one in candidates if one.category == category]
        if name not in names:
            raise UsageError(
                f"no {singular(category)} plugin is called {name!r}", f"installed: {', '.join(sorted(set(names))) or 'none'}"
            )
        return category, name


def find_category(word: str) -> str | None:
    """The category a person means: its name in singular or plural, any case."""
    word = canonical(word)
    return next((category for category in CATEGORIES if word in (category, singular(category).replace(" ", "_"))), None)


def singular(category: str) -> str:
    """``endpoints`` to ``endpoint``, ``url_strategies`` to ``url strategy``."""
    word = category.replace("_", " ")
    if word.endswith("ies"):
        return word.removesuffix("ies") + "y"
    return word.removesuffix("s")


def _key(word: str) -> tuple[str, str]:
    """``category:name`` taken apart.

    Raises:
        UsageError: It isn't that, or there is no such category.
    """
    category, colon, name = word.partition(":")
    found = find_category(category)
    if not colon or not name:
        raise UsageError(f"{word!r} is not CATEGORY:NAME", "for example: endpoints:chat")
    if found is None:
        raise UsageError(f"there is no plugin category {category!r}", f"categories: {', '.join(CATEGORIES)}")
    return found, canonical(name)


def _switched_off_by_environment(found: Found) -> tuple[list[str], list[str]]:
    """Names from the environment that are installed, and a sentence on each that isn't: it may serve other environments."""
    installed = {(one.category, one.name) for one in found.candidates}
    words, problems = [], []
    for word in filter(None, (part.strip() for part in os.environ.get("AIPERF_DISABLE_PLUGINS", "").split(","))):
        try:
            known = _key(word) in installed
        except UsageError as error:
            problems.append(f"AIPERF_DISABLE_PLUGINS: {error}")
            continue
        if known:
            words.append(word)
        else:
            problems.append(f"AIPERF_DISABLE_PLUGINS names {word}, which is not installed")
    return words, problems


def _distribution(name: str) -> str:
    import re

    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _kernel_options() -> tuple[OptionSpec, ...]:
    from aiperf.registry import manifest

    return manifest.read((Path(__file__).parent.parent / manifest.FILE_NAME).read_bytes()).options
