"""The contract of configuration files: ``aiperf profile --config FILE``, in whatever format a package reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aiperf.errors import UsageError
from aiperf.sdk.descriptor import OptionSpec

if TYPE_CHECKING:
    from aiperf.sdk.study import Dimension, Scenario, Setting


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


class SweepSection(Struct, frozen=True):
    """The part of a file that makes cells.

    planner: name of the planner (``grid``).  dimensions, scenarios: their paths are keys for *parameters* of
    :meth:`Configuration.values`.  typed: place in the file, for messages.
    settings: the other keys of the section, for the planner, in snake_case.  places: of each of these, for messages.
    """

    planner: str
    typed: str
    dimensions: tuple[Dimension, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    settings: Mapping[str, Any] = {}
    places: Mapping[str, str] = {}


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

    def sweep(self, options: Sequence[Option] = ()) -> SweepSection | None:
        """The cells that the file asks for; None where it is one run, repeated or not.

        *options*: of the kernel and of all plugins in use; a key that is the place of one is none of the planner's settings.

        Raises:
            ConfigError: The section can't be read; the message names path and line.
        """
        return None

    def values(
        self, options: Sequence[Option], parameters: Mapping[str, Setting] | None = None
    ) -> Iterable[OptionValue | UsageError]:
        """The options in the file, at most one value each, and its errors, which name their line.

        *options*: of the kernel and of all plugins in use.  A value is left out where the command line has the option.
        *parameters*: of a cell, by path: each replaces what the file has there, or is merged with it where both are mappings;
        None, and the values of the file itself, where no cell is meant.
        """
        raise NotImplementedError(f"{type(self).__name__} must define values(options, parameters)")


__all__ = ["Configuration", "Option", "OptionTarget", "OptionValue", "SweepSection"]
