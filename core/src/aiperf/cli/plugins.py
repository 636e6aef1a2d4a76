"""The kernel's own ``aiperf plugins``: packages, and the faults of their manifests.

A package of the suite has the whole command, which stands in this one's place where it is installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from aiperf.cli.commandline import Subcommand, options_of
from aiperf.cli.help_text import table, width
from aiperf.errors import UsageError
from aiperf.registry.guides import INSTALL_SUITE

if TYPE_CHECKING:
    from aiperf.sdk.descriptor import Descriptor, OptionSpec
    from aiperf.sdk.registry import InstalledPlugins

_SUMMARY = "Show which plugins are installed and whether their manifests are sound."
_MORE = "Without a word: packages. 'validate': faults of manifests; exit 1 on a fault. The suite has more."


def plugins_command(registry: InstalledPlugins, name: str, options: Sequence[OptionSpec]) -> Subcommand:
    """The subcommand, by its *name*; *options* choose between plugins (pins, switches)."""

    def call(words: list[str]) -> int:
        if words not in ([], ["validate"]):
            raise UsageError(
                f"aiperf plugins of the kernel alone lists packages, or takes 'validate', not {' '.join(words)!r}",
                INSTALL_SUITE,
            )
        lines = _fault_lines(registry) if words else [*package_lines(registry), *trouble_lines(registry)]
        print("\n".join(lines))
        return 1 if words and lines[1:] else 0

    return Subcommand(name, _SUMMARY, options_of(options), lambda scan: partial(call, scan.words), "[WORD...]", _MORE)


def known_plugins(registry: InstalledPlugins) -> list[Descriptor]:
    """Every plugin, broken ones last."""
    return [plugin for category in registry.categories() for plugin in registry.all(category)] + registry.broken


def package_lines(registry: InstalledPlugins) -> list[str]:
    """A line for each package that has plugins, with their names."""
    packages: dict[str, list[str]] = {}
    for plugin in known_plugins(registry):
        if plugin.version:  # a name that two packages claim belongs to neither
            served = ", ".join(plugin.capabilities.get("names", ())) if plugin.category == "datasets" else ""
            packages.setdefault(plugin.package, []).append(f"{plugin.key} ({served})" if served else plugin.key)
    lines = ["Installed packages:", *table(((name, ", ".join(names)) for name, names in sorted(packages.items())), width())]
    return lines if len(packages) > 1 else [*lines, "", "No plugin package is installed beside the kernel."]


def trouble_lines(registry: InstalledPlugins) -> list[str]:
    """Plugins that are shadowed, broken or switched off, each kind below its heading; empty where there are none."""
    shadowing = [plugin for plugin in known_plugins(registry) if plugin.shadows]
    lines = _headed("Shadowed", ((plugin, f"{plugin.package} over {', '.join(plugin.shadows)}") for plugin in shadowing))
    lines += _headed("Broken", ((plugin, f"{plugin.package}: {plugin.broken}") for plugin in registry.broken))
    losing = [plugin for plugin in known_plugins(registry) if plugin.lost_flags]
    lost = ((plugin, f"{flag}: {reason}") for plugin in losing for flag, reason in plugin.lost_flags.items())
    lines += _headed("Without a flag", lost)
    return lines + _headed("Switched off", ((plugin, plugin.package) for plugin in registry.disabled))


def _headed(heading: str, rows: Iterable[tuple[Descriptor, str]]) -> list[str]:
    cells = [(plugin.key, text) for plugin, text in rows]
    return ["", f"{heading}:", *table(cells, width())] if cells else []


def _fault_lines(registry: InstalledPlugins) -> list[str]:
    known, broken = len(known_plugins(registry)), registry.broken
    lines = [f"{plugin.key} ({plugin.package}): {plugin.broken}" for plugin in broken]
    for plugin in known_plugins(registry):
        lines += [f"{plugin.key} ({plugin.package}): without {flag}: {why}" for flag, why in plugin.lost_flags.items()]
    return [*lines, f"{known} manifest rows checked, {len(lines) or 'no'} fault{'s' if len(lines) > 1 else ''}"]
