"""Importing a plugin, at last: stevedore loads, and what goes wrong becomes a sentence."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

from stevedore.driver import DriverManager

from aiperf.descriptor import Descriptor
from aiperf.errors import PluginError


class _Chosen(DriverManager[Any]):
    """Stevedore's driver loading, for the one entry point that precedence chose: the others are never imported."""

    def __init__(self, descriptor: Descriptor) -> None:
        self._entry_point = EntryPoint(descriptor.name, descriptor.value, f"aiperf.{descriptor.category}")
        super().__init__(self._entry_point.group, descriptor.name)

    def list_entry_points(self) -> list[EntryPoint]:
        return [self._entry_point]


def load(descriptor: Descriptor) -> Any:
    """The object the entry point names.

    Raises:
        PluginError: It can't be imported; the message names package and version.
    """
    try:
        return _Chosen(descriptor).extensions[0].plugin
    except ImportError as error:
        raise PluginError(f"{_who(descriptor)} can't be imported: {error}", *descriptor.requires) from error
    except (Exception, SystemExit) as error:  # a stranger's module may raise anything while it is imported
        raise PluginError(f"{_who(descriptor)} can't be imported: {type(error).__name__}: {error}") from error


def _who(descriptor: Descriptor) -> str:
    return f"plugin {descriptor.category}:{descriptor.name} of {descriptor.distribution} {descriptor.version}".rstrip()
