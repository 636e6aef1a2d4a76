"""The contract of a subcommand: ``aiperf simulate`` and the like are plugins too.

Options come from the command's options class, as everywhere else; positional words are named by *arguments*.

A word of a command is a command, too: the manifest of a plugin ``config_init`` says ``capabilities: {word: "config init"}``,
and ``aiperf config init`` runs it, with options and help of its own.  Any package may add a word to any command.  A plugin
``config`` beside it is what ``aiperf config`` without such a word runs; without one that is an error which lists the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from msgspec import Struct

from aiperf.sdk.options import OptionsT

if TYPE_CHECKING:
    from aiperf.sdk.registry import InstalledPlugins

LATER = "a later version will have it"
"""The answer of the hook ``aiperf_unknown_option`` that gives way to installed options of a similar name."""


class PluginOptions(Struct, frozen=True):
    """Options of other plugins on the command line, for a command whose manifest takes them (``options_of``).

    options: by ``category:name``, the options of each installed plugin of those categories; a plugin that lacks a required
    option is missing.  given: likewise, the fields that were given.
    """

    registry: InstalledPlugins
    options: dict[str, Any]
    given: dict[str, tuple[str, ...]]


class Command(Generic[OptionsT]):
    """A subcommand of ``aiperf``.

    arguments: metavar of positional words as help shows them ("DIR..."); "" takes none.
    registry: the installed plugins, with the pins and switches of the command line; set before ``run``.
    plugin_options: set before ``run`` where the manifest's capability ``options_of`` lists categories, whose plugins'
    options the command takes like ``profile``.
    """

    arguments: ClassVar[str] = ""
    registry: InstalledPlugins
    plugin_options: PluginOptions | None = None

    def run(self, options: OptionsT, words: Sequence[str]) -> int:
        """Run the command; returns the exit code.  options: the command's own (None where it declares none).

        Raises:
            AiperfError: Printed as a sentence, with its exit code.
        """
        raise NotImplementedError(f"{type(self).__name__} must define run(options, words)")


__all__ = ["LATER", "Command", "PluginOptions"]
