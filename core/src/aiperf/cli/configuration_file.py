"""The configuration file of a command line, and the plugin that reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf.errors import UsageError
from aiperf.registry.guides import INSTALL_SUITE
from aiperf.sdk.configuration import Configuration, Option, OptionValue, SweepSection

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry
    from aiperf.sdk.study import Setting


class ConfigurationFile:
    """A configuration file and the plugin that reads it, the first by rank of those with the file's suffix.

    Raises:
        UsageError: No usable plugin reads such files.
    """

    def __init__(self, registry: Registry, path: Path) -> None:
        from aiperf.registry.third_party import blamed, made  # not where no file is given

        plugins = sorted(registry.all("configurations"), key=registry.rank)
        by_suffix = {suffix: plugin for plugin in plugins for suffix in plugin.capabilities.get("suffixes", ())}
        plugin = by_suffix.get(path.suffix.lower()) or by_suffix.get("*")
        if plugin is None:
            message = f"--config {path}: no installed package reads such a file"
            causes = [f"{each.key}: {each.broken}" for each in registry.broken if each.category == "configurations"]
            raise UsageError(message, *(causes or [INSTALL_SUITE]))
        self.plugin = plugin.ref
        self._configuration: Configuration = made(plugin.ref, path)
        self._blamed = partial(blamed, plugin, "failed")

    def plugins(self) -> dict[str, Sequence[str]]:
        with self._blamed():
            return dict(self._configuration.plugins())

    def sweep(self, options: Sequence[Option]) -> SweepSection | None:
        with self._blamed():
            return self._configuration.sweep(options)

    def values(
        self, options: Sequence[Option], parameters: Mapping[str, Setting] | None = None
    ) -> list[OptionValue | UsageError]:
        """The values of the file, or of the cell of a sweep that has these *parameters*."""
        with self._blamed():  # a reader of files without sweeps takes no parameters
            values = self._configuration.values
            return list(values(options) if parameters is None else values(options, parameters))
