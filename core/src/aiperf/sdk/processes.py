"""Child processes beside a run, and lines to and from them.

The names come from a room above this one, so they are loaded when a plugin uses them, as in the door ``aiperf`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

_WHERE = {"processes.local": "Inbox SideProcess fate ignore_endings send_reply"}

__all__ = ["Inbox", "SideProcess", "fate", "ignore_endings", "send_reply"]

__getattr__ = door(__name__, _WHERE)

if TYPE_CHECKING:
    from aiperf.processes.local import Inbox, SideProcess, fate, ignore_endings, send_reply
