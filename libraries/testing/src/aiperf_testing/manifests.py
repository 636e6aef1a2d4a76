"""Checks of a plugin's row in the manifest of its installed package."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from aiperf.registry import manifest
from aiperf.registry.third_party import load
from aiperf.sdk.descriptor import PluginRef, canonical
from aiperf.sdk.exporter import LEVELS, Exporter
from msgspec.structs import replace

from aiperf_testing.findings import unlike


def row_of(category: str, plugin: Any) -> manifest.ManifestRow:
    """The manifest row of *plugin*; AssertionError where its package lacks the entry point or the row."""
    return _found(category, plugin)[0]


def _found(category: str, plugin: Any) -> tuple[manifest.ManifestRow, manifest.Manifest]:
    module, value = _where(plugin)
    package = module.partition(".")[0]
    names = [
        entry.name
        for entry in importlib.metadata.entry_points(group=f"aiperf.{category}")
        if entry.value.partition(":")[0].partition(".")[0] == package
        and load(PluginRef(category, entry.name, entry.value, "", "")) is plugin
    ]
    assert names, f"no entry point of aiperf.{category} names {value}; is its package installed?"
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations, f"{package} is no package"
    path = Path(spec.submodule_search_locations[0]) / manifest.FILE_NAME
    read = manifest.read(path.read_bytes())
    rows = [manifest.read_row(row) for row in read.plugins]
    matching = [row for row in rows if row.category == category and canonical(row.name) in map(canonical, names)]
    assert matching, f"{path} has no row for {category}:{names[0]}"
    return matching[0], read


def _class(reference: str) -> Any:
    """The class of ``module:Class``."""
    return load(PluginRef("", "", reference, "", ""))


def _where(plugin: Any) -> tuple[str, str]:
    """Module and entry-point value of a class, a function, an object, or a module."""
    if isinstance(plugin, ModuleType):
        return plugin.__name__, plugin.__name__
    named = plugin if hasattr(plugin, "__qualname__") else type(plugin)
    return named.__module__, f"{named.__module__}:{named.__qualname__}"


def check_row(category: str, plugin: Any) -> manifest.ManifestRow:
    """The manifest row, with the options of its groups, after checks of its summary and of its options against their model."""
    row, read = _found(category, plugin)
    assert row.summary, f"the row of {row.category}:{row.name} has no summary"
    if row.options_model is None:
        assert not row.options + row.option_groups, f"{row.category}:{row.name} lists options without a model"
        return row
    from aiperf.registry.specs import specs

    groups = {name: specs(_class(name)) for name in row.option_groups} | read.option_groups
    written, declared = manifest.with_groups(row, groups), specs(_class(row.options_model))
    assert written == declared, f"the options of {row.category}:{row.name} are out of date: run aiperf plugins manifest"
    return replace(row, options=written)


def check_taken(row: manifest.ManifestRow) -> None:
    """What an endpoint takes of ``--extra-inputs`` are fields of its options."""
    taken = set(row.capabilities.get("takes", ()))
    fields = set() if row.options_model is None else set(_class(row.options_model).option_defaults)
    missing = ", ".join(sorted(taken - fields))
    assert not missing, f"endpoints:{row.name} takes {missing}, and its options_model has no such field"


def check_exporter_row(exporter: type[Exporter]) -> None:
    """The row of an exporter declares the files of its class."""
    row = check_row("exporters", exporter)
    assert exporter.level in LEVELS, unlike(exporter.level, LEVELS, "take one of them")
    files, early = row.capabilities.get("files", {}), row.capabilities.get("before_load", False)
    assert files == exporter.files, f"the files of exporters:{row.name} are {exporter.files}, its manifest says {files}"
    assert early is exporter.before_load, f"before_load of exporters:{row.name} is {exporter.before_load}, its manifest differs"
