"""Whether plugins are what their manifests say: every one is imported and compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import msgspec

from aiperf.descriptor import Descriptor
from aiperf.errors import AiperfError
from aiperf.registry import Registry

_BASES = {
    "endpoints": "aiperf.endpoint:Endpoint",
    "datasets": "aiperf.dataset:Dataset",
    "exporters": "aiperf.exporter:Exporter",
    "commands": "aiperf.command:Command",
    "graders": "aiperf.grader:Grader",
    "uis": "aiperf.ui:Ui",
    "engines": "aiperf.shards:ShardEngine",
    "telemetry": "aiperf.telemetry:TelemetrySource",
    "definitions": "aiperf.definition:Definition",
}
"""What a plugin of a category must derive from, where the contract is a class."""


def faults(registry: Registry, plugins: Iterable[Descriptor]) -> list[tuple[Descriptor, str]]:
    """Every fault of every plugin, as a sentence."""
    return [(one, fault) for one in plugins for fault in _faults(registry, one)]


def _faults(registry: Registry, one: Descriptor) -> Iterator[str]:
    if one.broken is not None:
        yield one.broken
        return
    if not one.summary:
        yield "its manifest row has no summary"
    try:
        found = registry.load(one.category, one.name)
    except AiperfError as error:
        yield " ".join([error.message, *error.hints])
        return
    yield from _contract(one, found)
    yield from _options(registry, one)


def _contract(one: Descriptor, found: Any) -> Iterator[str]:
    base = _BASES.get(one.category)
    if base is not None:
        module, _, name = base.partition(":")
        wanted = getattr(import_module(module), name)
        if not (isinstance(found, type) and issubclass(found, wanted)):
            yield f"{one.value} is not a subclass of aiperf.{name}"
            return
    if one.category == "endpoints":
        yield from _capabilities(one, found)
    elif one.category == "commands" and found.arguments != one.capabilities.get("arguments", ""):
        yield f"its arguments are {found.arguments!r}, its manifest says {one.capabilities.get('arguments', '')!r}"
    elif one.category == "engines" and found.shares_memory is not one.capabilities.get("shares_memory", False):
        yield f"its shares_memory is {found.shares_memory}, its manifest says otherwise"
    elif one.category == "hooks":
        from aiperf.registry.hooking import scratch

        try:
            scratch(one, found)
        except AiperfError as error:
            yield error.message


def _capabilities(one: Descriptor, found: Any) -> Iterator[str]:
    from aiperf.endpoint import Capabilities

    if not hasattr(found, "capabilities") or not isinstance(found.capabilities, Capabilities):
        yield f"{one.value} declares no capabilities"
        return
    said = msgspec.convert(one.capabilities, Capabilities)
    for field in Capabilities.__struct_fields__:
        has, says = getattr(found.capabilities, field), getattr(said, field)
        if has != says:
            yield f"its capability {field} is {has!r}, its manifest says {says!r}"


def _options(registry: Registry, one: Descriptor) -> Iterator[str]:
    if one.options_model is None:
        if one.options:
            yield "its manifest has options but no options_model"
        return
    from aiperf.optionspec import specs

    try:
        made = specs(registry.load_options_model(one))
    except (AiperfError, ValueError) as error:
        yield str(error)
        return
    for spec in made:
        if spec.metavar and len(spec.metavar.split()) > 1:
            yield f"the metavar of {spec.flags[0]} has a space"
    if made != one.options:
        stale = sorted({spec.flags[0] for spec in set(made) ^ set(one.options)}) or ["their order"]
        yield f"its manifest's options are not those of {one.options_model} ({', '.join(stale)}); run aiperf plugins manifest"
