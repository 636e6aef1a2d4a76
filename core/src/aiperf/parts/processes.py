"""Child processes beside a run, what they say and print without secrets, and temporary directories."""

from __future__ import annotations

from aiperf.logs import scrub_output
from aiperf.processes.local import Inbox, SideProcess, fate, ignore_endings, send_reply
from aiperf.registry.imports import leave
from aiperf.rundir.temporary import temporary_directory

__all__ = ["Inbox", "SideProcess", "fate", "ignore_endings", "leave", "scrub_output", "send_reply", "temporary_directory"]
