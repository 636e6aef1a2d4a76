"""Plugins that a plan names, in the processes that have no registry: loading them, and saying what they did wrong."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from aiperf.descriptor import PluginRef
from aiperf.errors import AiperfError, PluginError

log = logging.getLogger(__name__)


def load(ref: PluginRef) -> Any:
    """Import a plugin the plan names.

    Raises:
        PluginError: It doesn't import; names package and version.
    """
    try:
        return ref.load()
    except (Exception, SystemExit) as error:  # a stranger's module may raise anything while it is imported
        raise failure(who(ref), "can't be imported", error) from error


def made(ref: PluginRef, *arguments: Any) -> Any:
    """What the plan's plugin, a class or a function, makes of *arguments*.

    Raises:
        PluginError: It doesn't import, or fails; names package and version.
    """
    found = load(ref)
    with blamed(who(ref), "can't be used"):
        return found(*arguments)


def who(ref: PluginRef) -> str:
    """A plugin by name, package and version, as messages begin."""
    return f"the plugin {ref.category}:{ref.name} of {ref.distribution} {ref.version}"


def why(error: BaseException) -> str:
    """What went wrong, of an error that nobody made a sentence of."""
    return f"{type(error).__name__}: {error}"


def failure(name: str, what: str, error: BaseException) -> PluginError:
    """The error to raise for a stranger's; its traceback goes to the log, for the stranger."""
    log.debug("the traceback:", exc_info=error)
    return PluginError(f"{name} {what}: {why(error)}")


@contextlib.contextmanager
def blamed(name: str, what: str) -> Iterator[None]:
    """What a stranger's code raises inside becomes an error that names it; errors with a sentence of their own pass."""
    try:
        yield
    except AiperfError:
        raise
    except Exception as error:  # strangers' code
        raise failure(name, what, error) from error
