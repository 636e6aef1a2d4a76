"""The reference of hooks, and the hooks that a package implements."""

from __future__ import annotations

import inspect

from aiperf import PluginError, UsageError
from aiperf.parts.hooks import Hooks
from aiperf.parts.tools import width, wrapped
from aiperf.sdk import hooks
from aiperf.sdk.registry import Descriptor, InstalledPlugins

from aiperf_command_plugins.report import Report


def reference() -> Report:
    """Every hook with its arguments and its docstring."""
    members = [
        (name, inspect.signature(member), inspect.getdoc(member) or "")
        for name, member in vars(hooks).items()
        if name.startswith("aiperf_") and callable(member)
    ]
    lines = wrapped((inspect.getdoc(hooks) or "").partition("\n")[0], width())
    for name, signature, text in members:
        lines += ["", *wrapped(f"{name}({', '.join(signature.parameters)})", width(), "", "    ")]
        for paragraph in text.split("\n\n"):
            lines += wrapped(" ".join(paragraph.split()), width(), "    ")
    plain = [
        {"hook": name, "arguments": list(signature.parameters), "description": " ".join(text.split())}
        for name, signature, text in members
    ]
    return Report(lines, plain)


def package(registry: InstalledPlugins, name: str) -> Report:
    """The hooks that a package implements; *name* is a hooks plugin's or its distribution's.

    Raises:
        UsageError: No hooks plugin and no distribution with one has the name.
        PluginError: The plugin is broken.
    """
    distribution = name.lower().replace("_", "-")
    of_package = [plugin for plugin in registry.all("hooks") if plugin.distribution == distribution]
    try:
        plugins = of_package or [registry.descriptor("hooks", name)]
    except PluginError as error:
        raise UsageError(error.message, *error.hints) from None
    lines, plain = [], []
    for plugin in plugins:
        implementations = implemented(registry, plugin)
        lines += [f"hooks:{plugin.name} ({plugin.package}): {plugin.summary}", *(f"  {hook}" for hook in implementations)]
        package = {"distribution": plugin.distribution, "version": plugin.version}
        plain.append({"name": plugin.name, **package, "hooks": implementations})
    return Report(lines, plain)


def implemented(registry: InstalledPlugins, plugin: Descriptor) -> list[str]:
    """Names of the hooks that a hooks plugin implements; the plugin is imported for that.

    Raises:
        PluginError: It is broken, or cannot be registered.
    """
    return list(Hooks().register(plugin, registry.load("hooks", plugin.name)))
