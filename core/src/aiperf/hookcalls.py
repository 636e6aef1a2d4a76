"""Hook plugins as plain calls, in the processes that have no registry."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from aiperf.descriptor import PluginRef
from aiperf.strangers import who, why

log = logging.getLogger(__name__)


def equipped(plugin: Any, options: Any) -> Any:
    """What is registered of a hooks plugin: a class is made first; where it declares options, they are its ``options``."""
    target = plugin() if isinstance(plugin, type) else plugin
    if options is not None:
        target.options = options
    return target


def implementations(plugins: Iterable[tuple[PluginRef, Any]], hook: str) -> list[tuple[str, Callable[..., Any]]]:
    """Who of *plugins*, each with its options, implements the hook, in the order of registration; the calls take its arguments
    by name, and may raise anything.

    A plugin that can't be had is left out with a warning.
    """
    plugins = list(plugins)
    if not plugins:
        return []
    from pluggy import PluginManager

    from aiperf import hooks
    from aiperf.hooktrace import trace

    manager = PluginManager("aiperf")
    manager.add_hookspecs(hooks)
    for ref, options in plugins:
        try:
            manager.register(equipped(ref.load(), options), f"{ref.name} ({ref.distribution} {ref.version})")
        except (Exception, SystemExit) as error:  # noqa: BLE001  # strangers' code
            log.warning("%s is left out: %s", who(ref), why(error))
    trace(manager)
    calls = getattr(manager.hook, hook).get_hookimpls()
    return [(each.plugin_name, partial(_call, each.function, tuple(each.argnames))) for each in calls]


def _call(function: Callable[..., Any], wanted: tuple[str, ...], **given: Any) -> Any:
    """With the arguments the implementation asks for, and no others."""
    return function(**{name: given[name] for name in wanted})
