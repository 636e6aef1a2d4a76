"""Child processes beside a run, lines to and from them, and what they print without secrets."""

from __future__ import annotations

from aiperf.logs import scrub_output
from aiperf.processes.local import Inbox, SideProcess, fate, ignore_endings, send_reply
from aiperf.registry.imports import leave

__all__ = ["Inbox", "SideProcess", "fate", "ignore_endings", "leave", "scrub_output", "send_reply"]
