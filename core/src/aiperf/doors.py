"""Modules whose names are loaded from other modules when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

_NONE: Mapping[str, str] = MappingProxyType({})


def door(
    name: str, where: Mapping[str, str], aliases: Mapping[str, str] = _NONE, packages: Mapping[str, str] = _NONE
) -> Callable[[str], Any]:
    """The ``__getattr__`` of the module *name*.

    *where*: by module below ``aiperf``, its public names, separated by spaces.  *aliases*: earlier names, with those of today.
    *packages*: public names that other packages have, with the module.
    """
    modules = {public: f"aiperf.{module}" for public, module in by_name(where).items()} | dict(packages)

    def load(attribute: str) -> Any:
        today = aliases.get(attribute, attribute)
        if today not in modules:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        try:
            value = getattr(import_module(modules[today]), today)
        except ModuleNotFoundError as error:
            if not any(module.partition(".")[0] == error.name for module in packages.values()):
                raise
            package = modules[today].partition(".")[0].replace("_", "-")
            message = f"{name}.{today} is in the package {package}, which is not installed: pip install {package}"
            raise ImportError(message, name=error.name) from error
        setattr(sys.modules[name], attribute, value)
        return value

    return load


def by_name(where: Mapping[str, str]) -> dict[str, str]:
    """The module of each name."""
    return {name: module for module, names in where.items() for name in names.split()}
