"""``AIPERF_TRACE_HOOKS=1``: every hook call on standard error, with its plugin and the time it took."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from aiperf import environment

if TYPE_CHECKING:
    import pluggy

_FUNCTION = "function"


def trace(manager: pluggy.PluginManager) -> None:
    """Let every implementation registered so far tell of its calls, where the environment asks for it.

    The implementations themselves are wrapped, because most of the kernel's callers bind them once and never ask pluggy again.
    """
    if not environment.trace_hooks():
        return
    for plugin in manager.get_plugins():
        for caller in manager.get_hookcallers(plugin) or ():
            for found in caller.get_hookimpls():
                if found.plugin is plugin:
                    # pluggy gives no other way in; the names of the arguments are known to it already.
                    setattr(found, _FUNCTION, _told(found.function, caller.name, found.plugin_name))


def _told(function: Callable[..., Any], hook: str, plugin: str) -> Callable[..., Any]:
    @wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        began_ns, end = time.perf_counter_ns(), ""
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            end = f", raised {type(error).__name__}"
            raise
        finally:
            took_ms = (time.perf_counter_ns() - began_ns) / 1e6
            print(f"{time.strftime('%H:%M:%S')} hook {hook} of {plugin}: {took_ms:.3f} ms{end}", file=sys.stderr)

    return told
