"""Child processes beside a run, what they say and print without secrets, their CPUs, and temporary directories."""

from __future__ import annotations

from aiperf.cores import ask_for_short_slices, level_with_parent, set_session_nice, work_apart
from aiperf.environment import cpus
from aiperf.logs import scrub_output
from aiperf.processes.local import Inbox, SideProcess, fate, ignore_endings, send_reply
from aiperf.registry.imports import leave
from aiperf.rundir.temporary import temporary_directory

__all__ = [
    "Inbox", "SideProcess", "ask_for_short_slices", "cpus", "fate", "ignore_endings", "leave", "level_with_parent",
    "scrub_output", "send_reply", "set_session_nice", "temporary_directory", "work_apart",
]  # fmt: skip
