"""Packages, categories and single plugins, as ``aiperf plugins`` shows them."""

from __future__ import annotations

from typing import Any

from aiperf import PluginError, UsageError
from aiperf.parts.tools import known_plugins, package_lines, table, trouble_lines, width, wrapped
from aiperf.sdk.registry import CATEGORIES, Descriptor, InstalledPlugins, singular

from aiperf_command_plugins.report import Report

_OPTIONS = {"public": "--public-dataset", "benchmark": "--accuracy-benchmark"}


def packages(registry: InstalledPlugins) -> Report:
    """Every package that has plugins, and what is shadowed, broken or switched off."""
    known = known_plugins(registry)
    plugins: dict[tuple[str, str], list[str]] = {}
    for descriptor in known:
        if descriptor.version:  # a name that two packages claim belongs to neither
            plugins.setdefault((descriptor.distribution, descriptor.version), []).append(descriptor.key)
    lines = [*package_lines(registry), *trouble_lines(registry)]
    lines += ["", *wrapped("aiperf plugins CATEGORY shows one kind, aiperf plugins --all every name.", width())]
    plain = {
        "packages": [
            {"distribution": name, "version": version, "plugins": keys} for (name, version), keys in sorted(plugins.items())
        ],
        "shadowed": [
            {"category": descriptor.category, "name": descriptor.name, "by": descriptor.package, "packages": descriptor.shadows}
            for descriptor in known
            if descriptor.shadows
        ],
        "broken": [as_plain(descriptor) for descriptor in registry.broken],
        "disabled": [descriptor.key for descriptor in registry.disabled],
        "problems": list(registry.problems),
    }
    return Report(lines, plain)


def names(registry: InstalledPlugins) -> Report:
    """Every category with the names in it."""
    by_category = {category: registry.names(category) for category in registry.categories()}
    rows = [(category, ", ".join(installed) or "none") for category, installed in by_category.items()]
    return Report([*table(rows, width()), *trouble_lines(registry)], by_category)


def category(registry: InstalledPlugins, category: str) -> Report:
    """The plugins of one category."""
    usable = registry.all(category)
    broken = [descriptor for descriptor in registry.broken if descriptor.category == category]
    lines = [f"{category}: {CATEGORIES[category].summary}", ""]
    lines += table([(descriptor.name, _summary(descriptor)) for descriptor in usable], width()) or ["  none installed"]
    if broken:
        rows = ((descriptor.name, f"{descriptor.package}: {descriptor.broken}") for descriptor in broken)
        lines += ["", "Broken:", *table(rows, width())]
    if usable:
        lines += ["", f"aiperf plugins {singular(category).replace(' ', '_')} NAME shows one of them."]
    plain = {
        "category": category,
        "description": CATEGORIES[category].summary,
        "plugins": [as_plain(descriptor) for descriptor in usable],
        "broken": [as_plain(descriptor) for descriptor in broken],
    }
    return Report(lines, plain)


def plugin(registry: InstalledPlugins, category: str, name: str) -> Report:
    """Everything about one plugin.

    Raises:
        UsageError: No plugin of the category has the name.
    """
    try:
        descriptor = registry.descriptor(category, name)
    except PluginError as error:  # the name is wrong, not a package
        raise UsageError(error.message, *error.hints) from None
    rows = [
        ("Name", descriptor.name),
        ("Category", category),
        ("Package", descriptor.package),
        ("Object", descriptor.value),
        ("API", descriptor.api),
        ("Summary", descriptor.summary),
        ("Aliases", ", ".join(descriptor.aliases)),
        ("Priority", str(descriptor.priority)),
        ("Requires", "; ".join(descriptor.requires)),
        ("Shadows", ", ".join(descriptor.shadows)),
        ("Without", "; ".join(f"{flag}: {reason}" for flag, reason in descriptor.lost_flags.items())),
        ("Broken", descriptor.broken or ""),
    ]
    lines = table([(title, value) for title, value in rows if value], width())
    if descriptor.capabilities:
        capabilities = [(key, _shown(value)) for key, value in descriptor.capabilities.items()]
        lines += ["", "Capabilities:", *table(capabilities, width())]
    if descriptor.options:
        lines += ["", "Options:", *table([(spec.flags[0], spec.help) for spec in descriptor.options], width())]
    plain = as_plain(descriptor)
    if category == "hooks" and descriptor.broken is None:
        from aiperf_command_plugins.hook_page import implemented

        hooks = implemented(registry, descriptor)
        lines += ["", "Hooks:", *(f"  {hook}" for hook in hooks)]
        plain["hooks"] = hooks
    return Report(lines, plain)


def _summary(descriptor: Descriptor) -> str:
    """The summary, and of a data set that isn't a format its names and their option."""
    option = _OPTIONS.get(descriptor.capabilities.get("selected_by", "")) if descriptor.category == "datasets" else None
    if option is None:
        return descriptor.summary
    return f"{descriptor.summary} {option} {' | '.join(descriptor.capabilities.get('names') or [descriptor.name])}"


def as_plain(descriptor: Descriptor) -> dict[str, Any]:
    """A plugin for programs."""
    return {
        "category": descriptor.category,
        "name": descriptor.name,
        "aliases": descriptor.aliases,
        "summary": descriptor.summary,
        "distribution": descriptor.distribution,
        "version": descriptor.version,
        "object": descriptor.value,
        "api": descriptor.api,
        "priority": descriptor.priority,
        "first_party": descriptor.first_party,
        "capabilities": descriptor.capabilities,
        "requires": descriptor.requires,
        "options": [{"flags": spec.flags, "help": spec.help, "default": spec.default} for spec in descriptor.options],
        "shadows": descriptor.shadows,
        "lost_flags": descriptor.lost_flags,
        "broken": descriptor.broken,
    }


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)
