"""A plugin's row in the manifest of its package, as an installed environment shows it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from aiperf.descriptor import PluginRef, canonical
from aiperf.registry import manifest


def row_of(category: str, plugin: Any) -> manifest.Row:
    """The row that describes *plugin*; AssertionError if its package doesn't register it or says nothing of it."""
    module, value = _where(plugin)
    package = module.partition(".")[0]
    found = [
        each.name
        for each in importlib.metadata.entry_points(group=f"aiperf.{category}")
        if each.value.partition(":")[0].partition(".")[0] == package
        and PluginRef(category, each.name, each.value, "", "").load() is plugin
    ]
    assert found, f"no entry point of aiperf.{category} names {value}; is its package installed?"
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations, f"{package} is no package"
    path = Path(spec.submodule_search_locations[0]) / manifest.FILE_NAME
    rows = [manifest.read_row(row) for row in manifest.read(path.read_bytes()).plugins]
    named = [row for row in rows if row.category == category and canonical(row.name) in map(canonical, found)]
    assert named, f"{path} has no row for {category}:{found[0]}"
    return named[0]


def _where(plugin: Any) -> tuple[str, str]:
    """Module and name of a class, a function, an object, or a module."""
    if isinstance(plugin, ModuleType):
        return plugin.__name__, plugin.__name__
    named = plugin if hasattr(plugin, "__qualname__") else type(plugin)
    return named.__module__, f"{named.__module__}:{named.__qualname__}"


def check_row(category: str, plugin: Any) -> manifest.Row:
    """The row, once its summary is there and its options are those of the model it names."""
    row = row_of(category, plugin)
    assert row.summary, f"the row of {row.category}:{row.name} has no summary"
    if row.options_model is None:
        assert not row.options, f"{row.category}:{row.name} lists options and names no model"
        return row
    from aiperf.optionspec import specs  # pydantic: only where a model is named

    model = PluginRef("", "", row.options_model, "", "").load()
    assert row.options == specs(model), f"the options of {row.category}:{row.name} are out of date: run aiperf plugins manifest"
    return row
