"""Child processes beside a run, lines to and from them, and what they print without secrets.

The names come from rooms above this one, so they are loaded when a plugin uses them, as in the door ``aiperf`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

_WHERE = {"logs": "scrub_output", "processes.local": "Inbox SideProcess fate ignore_endings send_reply"}

__all__ = ["Inbox", "SideProcess", "fate", "ignore_endings", "scrub_output", "send_reply"]

__getattr__ = door(__name__, _WHERE)

if TYPE_CHECKING:
    from aiperf.logs import scrub_output
    from aiperf.processes.local import Inbox, SideProcess, fate, ignore_endings, send_reply
