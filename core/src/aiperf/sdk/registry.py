"""What a command sees of the installed plugins: :attr:`aiperf.Command.registry`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from aiperf.sdk.categories import CATEGORIES, find_category, singular
from aiperf.sdk.descriptor import Descriptor, OptionSpec, PluginRef, canonical


class InstalledPlugins(Protocol):
    """Every installed plugin by category and name, with the pins and switches of the command line.  Importing none of them."""

    kernel_options: tuple[OptionSpec, ...]
    problems: tuple[str, ...]
    """Sentences about packages that cannot be read at all."""
    disabled: tuple[Descriptor, ...]
    """Plugins that are switched off."""

    @property
    def broken(self) -> list[Descriptor]:
        """Plugins that cannot be used, with the cause."""

    def categories(self) -> list[str]:
        """Every category, also those of which nothing is installed."""

    def names(self, category: str) -> list[str]:
        """Names of the usable plugins of a category, without aliases."""

    def all(self, category: str) -> list[Descriptor]:
        """The usable plugins of a category, by name."""

    def find(self, category: str, name: str) -> Descriptor | None:
        """The plugin of that name or alias, usable or broken; None where no plugin has it."""

    def descriptor(self, category: str, name: str) -> Descriptor:
        """Like :meth:`find`.

        Raises:
            PluginError: No plugin has the name; the message says what is installed.
        """

    def choosing(self, *, pins: Mapping[str, str], disabled: Iterable[str]) -> InstalledPlugins:
        """The same plugins with further pins (``category:name`` to its distribution) and further disabled names.

        Raises:
            UsageError: A pin or a disabled name that isn't installed.
        """

    def ref(self, category: str, name: str) -> PluginRef:
        """What another process needs to load the plugin.

        Raises:
            PluginError: No plugin has the name, or it is broken.
        """

    def load(self, category: str, name: str) -> Any:
        """Import the plugin.

        Raises:
            PluginError: No plugin has the name, it is broken, or its import fails.
        """

    def load_options_model(self, one: Descriptor) -> Any:
        """The class of the plugin's own options; None where it declares none.

        Raises:
            PluginError: The class cannot be imported.
        """


__all__ = ["CATEGORIES", "Descriptor", "InstalledPlugins", "OptionSpec", "PluginRef", "canonical", "find_category", "singular"]
