"""The conformance suite: a plugin's tests subclass the contract of its category.

The names are those of a library, and loaded when they are used, as in the door ``aiperf`` itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aiperf.foreign import TESTING

if TYPE_CHECKING:
    from aiperf_testing import *  # noqa: F403


def __getattr__(name: str) -> Any:
    try:
        suite = import_module(TESTING)
    except ModuleNotFoundError as error:
        if error.name != TESTING:
            raise
        message = 'aiperf.testing is in a package that is not installed: pip install "aiperf-core[testing]"'
        raise ImportError(message, name=error.name) from error
    return getattr(suite, name)
