"""Code of other plugins: looking it up, loading it, and stopping its errors where they can be named.

The names come from a room above this one, so they are loaded when a plugin uses them, as in the door ``aiperf`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

_WHERE = {
    "registry.hooks": "Hooks REQUEST_PREPARED", "registry.registry": "Registry strongest",
    "registry.third_party": "blamed failure isolated left_out load made why",
}  # fmt: skip

__all__ = [
    "REQUEST_PREPARED", "Hooks", "Registry", "blamed", "failure", "isolated", "left_out", "load", "made", "strongest", "why",
]  # fmt: skip

__getattr__ = door(__name__, _WHERE)

if TYPE_CHECKING:
    from aiperf.registry.hooks import REQUEST_PREPARED, Hooks
    from aiperf.registry.registry import Registry, strongest
    from aiperf.registry.third_party import blamed, failure, isolated, left_out, load, made, why
