"""The contract of configuration files: ``aiperf profile --config FILE``, in whatever format a package reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from aiperf.errors import UsageError
from aiperf.sdk.descriptor import OptionSpec


class OptionTarget(Struct, frozen=True):
    """Whose an option is: *owner* is ``category:name`` of a plugin, "" for the command itself."""

    owner: str
    field: str


class Option(Struct, frozen=True):
    """An option as a command line knows it: declared once or by several packages alike, delivered to all of them."""

    spec: OptionSpec
    targets: tuple[OptionTarget, ...]


class OptionValue(Struct):
    """The text of an option, validated later.

    typed: the flag as typed, or the place in a file (``endpoint.timeout (run.yaml:7)``); errors begin with it.
    values: one word of an option that takes one.  on: the state of a flag, None for other options.
    """

    option: Option
    typed: str
    values: list[str]
    on: bool | None = None


class Configuration:
    """A configuration file.

    The manifest's capability ``suffixes`` lists the endings of its files, ``.toml`` or ``*`` for all that no plugin has.

    Raises:
        ConfigError: The file can't be read; the message names path and line.
    """

    def __init__(self, path: Path) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define __init__(path)")

    def plugins(self) -> Mapping[str, Sequence[str]]:
        """The words of ``--plugin`` and ``--disable-plugin``, as ``pins`` and ``disabled``; asked before :meth:`values`."""
        return {}

    def values(self, options: Sequence[Option]) -> Iterable[OptionValue | UsageError]:
        """The options in the file, at most one value each, and its errors, which name their line.

        *options*: of the kernel and of all plugins in use.  A value is left out where the command line has the option.
        """
        raise NotImplementedError(f"{type(self).__name__} must define values(options)")


__all__ = ["Configuration", "Option", "OptionTarget", "OptionValue"]
