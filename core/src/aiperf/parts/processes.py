"""Child processes beside a run, lines to and from them, and what they print without secrets."""

from __future__ import annotations

from aiperf.logs import scrub_output
from aiperf.processes.local import Inbox, SideProcess, fate, ignore_endings, send_reply

__all__ = ["Inbox", "SideProcess", "fate", "ignore_endings", "scrub_output", "send_reply"]
