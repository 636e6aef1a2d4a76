"""The pluggy side: who implements which hook."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pluggy

from aiperf import hooks
from aiperf.errors import PluginError
from aiperf.hooktrace import trace

if TYPE_CHECKING:
    from aiperf.descriptor import Descriptor
    from aiperf.registry import Registry

log = logging.getLogger(__name__)


def manager(registry: Registry) -> pluggy.PluginManager:
    """A plugin manager that knows the specification, with every usable ``hooks`` plugin registered."""
    made = pluggy.PluginManager("aiperf")
    made.add_hookspecs(hooks)
    for one in registry.all("hooks"):
        try:
            register(made, one, registry.load("hooks", one.name))
        except PluginError as error:
            registry.mark_broken(one, str(error))
            log.warning("%s; it is left out", error)
    trace(made)
    return made


def scratch(one: Descriptor, plugin: Any) -> tuple[pluggy.PluginManager, Any]:
    """The plugin alone in a manager of its own, and what was registered.

    Raises:
        PluginError: As :func:`register`.
    """
    made = pluggy.PluginManager("aiperf")
    made.add_hookspecs(hooks)
    return made, register(made, one, plugin)


def register(made: pluggy.PluginManager, one: Descriptor, plugin: Any) -> Any:
    """Register a module or object; a class is instantiated first.  Returns what was registered.

    Raises:
        PluginError: It implements a hook that doesn't exist, asks for an argument the hook doesn't have, or has no hook.
    """
    who = f"plugin hooks:{one.name} of {one.distribution} {one.version}"
    try:
        target = plugin() if isinstance(plugin, type) else plugin
        made.register(target, name=f"hooks:{one.name}")
    except Exception as error:  # a stranger's constructor, or pluggy refusing a signature
        raise PluginError(f"{who} can't be registered: {error}") from error
    callers = made.get_hookcallers(target) or []
    unknown = [caller.name for caller in callers if not caller.has_spec()]
    if unknown or not callers:
        made.unregister(target)
        raise PluginError(f"{who} implements {unknown[0]}, which is no hook" if unknown else f"{who} implements no hook")
    return target
