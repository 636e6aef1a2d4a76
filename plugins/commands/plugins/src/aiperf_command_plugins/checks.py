"""Manifests compared with the imported plugins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import msgspec
from aiperf import AiperfError
from aiperf.parts.hooks import Hooks
from aiperf.parts.tools import specs, without_flags
from aiperf.sdk.engine import SiteEngine
from aiperf.sdk.registry import CATEGORIES, Descriptor, InstalledPlugins


def faults(registry: InstalledPlugins, plugins: Iterable[Descriptor]) -> list[tuple[Descriptor, str]]:
    """Every fault of every plugin, as a sentence."""
    return [(plugin, fault) for plugin in plugins for fault in _faults(registry, plugin)]


def _faults(registry: InstalledPlugins, plugin: Descriptor) -> Iterator[str]:
    if plugin.broken is not None:
        yield plugin.broken
        return
    if not plugin.summary:
        yield "its manifest row has no summary"
    try:
        loaded = registry.load(plugin.category, plugin.name)
    except AiperfError as error:
        yield " ".join([error.message, *error.hints])
        return
    yield from _contract(plugin, loaded)
    yield from _options(registry, plugin)


def _contract(plugin: Descriptor, loaded: Any) -> Iterator[str]:
    base = CATEGORIES[plugin.category].base
    if base is not None:
        module, _, name = base.partition(":")
        base_class = getattr(import_module(module), name)
        if not (isinstance(loaded, type) and issubclass(loaded, base_class)):
            yield f"{plugin.value} is not a subclass of aiperf.{name}"
            return
    if plugin.category == "endpoints":
        yield from _capabilities(plugin, loaded)
    elif plugin.category == "commands" and loaded.arguments != plugin.capabilities.get("arguments", ""):
        yield f"its arguments are {loaded.arguments!r}, its manifest says {plugin.capabilities.get('arguments', '')!r}"
    elif plugin.category == "engines" and loaded.shares_memory is not plugin.capabilities.get("shares_memory", False):
        yield f"its shares_memory is {loaded.shares_memory}, its manifest says otherwise"
    elif plugin.category == "engines" and issubclass(loaded, SiteEngine) is not plugin.capabilities.get("sites", False):
        yield "its class has sites, or its manifest's capabilities say so, and not both"
    elif plugin.category == "exporters":
        for name, value in (("files", dict(loaded.files)), ("before_load", loaded.before_load)):
            declared = plugin.capabilities.get(name, type(value)())
            if value != declared:
                yield f"its {name} is {value}, its manifest says {declared}"
    elif plugin.category == "hooks":
        try:
            Hooks().register(plugin, loaded)
        except AiperfError as error:
            yield error.message


def _capabilities(plugin: Descriptor, loaded: Any) -> Iterator[str]:
    from aiperf.sdk.endpoint import Capabilities

    if not hasattr(loaded, "capabilities") or not isinstance(loaded.capabilities, Capabilities):
        yield f"{plugin.value} declares no capabilities"
        return
    declared = msgspec.convert(plugin.capabilities, Capabilities)
    for field in Capabilities.__struct_fields__:
        actual, listed = getattr(loaded.capabilities, field), getattr(declared, field)
        if actual != listed:
            yield f"its capability {field} is {actual!r}, its manifest says {listed!r}"


def _options(registry: InstalledPlugins, plugin: Descriptor) -> Iterator[str]:
    if plugin.options_model is None:
        if plugin.options:
            yield "its manifest has options but no options_model"
        return
    try:
        options = specs(registry.load_options_model(plugin))
    except (AiperfError, ValueError) as error:
        yield str(error)
        return
    for spec in options:
        if spec.metavar and len(spec.metavar.split()) > 1:
            yield f"the metavar of {spec.flags[0]} has a space"
    for flag, reason in plugin.lost_flags.items():
        yield f"it works without {flag}, since {reason}: give its option another name"
    options = without_flags(options, plugin.lost_flags)
    if options != plugin.options:
        stale = sorted({spec.flags[0] for spec in set(options) ^ set(plugin.options)}) or ["their order"]
        differing = f"{plugin.options_model} ({', '.join(stale)})"
        yield f"its manifest's options are not those of {differing}; run aiperf plugins manifest"
