"""The words that a command takes, from its manifest, and what may follow those that are typed."""

from __future__ import annotations

from aiperf.sdk.registry import InstalledPlugins, find_category
from typer import Context


class Words:
    """The forms of a command's words: ``completes`` of its manifest.

    A form is a line of words.  ``{category}`` stands for a plugin category, ``{name}`` for a plugin of the category before it,
    ``{distribution}`` for an installed package with plugins.
    """

    def __init__(self, registry: InstalledPlugins, command: str) -> None:
        plugin = registry.find("commands", command.replace(" ", "_"))
        self._registry = registry
        self._forms = [] if plugin is None else [str(form).split() for form in plugin.capabilities.get("completes", ())]

    def __bool__(self) -> bool:
        return bool(self._forms)

    def matching(self, context: Context, incomplete: str) -> list[str]:
        """What may stand where *incomplete* does."""
        return self.after(context.params.get("words") or (), incomplete)

    def after(self, typed: list[str] | tuple[str, ...], incomplete: str) -> list[str]:
        """The words that may follow those *typed* and begin with *incomplete*."""
        here = len(typed)
        fitting = (form for form in self._forms if len(form) > here)
        words = dict.fromkeys(
            word
            for form in fitting
            if all(known in self._possible(part, typed[:at]) for at, (part, known) in enumerate(zip(form, typed, strict=False)))
            for word in self._possible(form[here], typed)
        )
        return [word for word in words if word.startswith(incomplete)]

    def _possible(self, part: str, typed: list[str] | tuple[str, ...]) -> list[str]:
        registry = self._registry
        if part == "{category}":
            return registry.categories()
        if part == "{name}":
            category = find_category(typed[-1]) if typed else None
            return [] if category is None else registry.names(category)
        if part == "{distribution}":
            every = (plugin.distribution for category in registry.categories() for plugin in registry.all(category))
            return sorted(set(every))
        return [part]


__all__ = ["Words"]
