"""Modules whose names are loaded from other modules when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any


def door(name: str, where: Mapping[str, str], aliases: Mapping[str, str] = MappingProxyType({})) -> Callable[[str], Any]:
    """The ``__getattr__`` of the module *name*.

    *where*: by module below ``aiperf``, its public names, separated by spaces.  *aliases*: earlier names, with those of today.
    """
    modules = by_name(where)

    def load(attribute: str) -> Any:
        today = aliases.get(attribute, attribute)
        if today not in modules:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        value = getattr(import_module(f"aiperf.{modules[today]}"), today)
        setattr(sys.modules[name], attribute, value)
        return value

    return load


def by_name(where: Mapping[str, str]) -> dict[str, str]:
    """The module of each name."""
    return {name: module for module, names in where.items() for name in names.split()}
