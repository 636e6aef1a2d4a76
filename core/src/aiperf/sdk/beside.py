"""Processes of one's own beside the run, as companions have them, and plugins in those.

The names come from rooms above this one, so they are loaded when a companion uses them, as in the door ``aiperf`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

_WHERE = {
    "logs": "scrub_output", "processes.local": "Inbox SideProcess fate ignore_endings send_reply", "registry.hooks": "Hooks",
    "registry.third_party": "isolated load why",
}  # fmt: skip

__all__ = ["Hooks", "Inbox", "SideProcess", "fate", "ignore_endings", "isolated", "load", "scrub_output", "send_reply", "why"]

__getattr__ = door(__name__, _WHERE)

if TYPE_CHECKING:
    from aiperf.logs import scrub_output
    from aiperf.processes.local import Inbox, SideProcess, fate, ignore_endings, send_reply
    from aiperf.registry.hooks import Hooks
    from aiperf.registry.third_party import isolated, load, why
