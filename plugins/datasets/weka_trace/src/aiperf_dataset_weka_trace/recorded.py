"""What a corpus recorded, for tools that make no prompts."""

from __future__ import annotations

from pathlib import Path

from aiperf.sdk.trace import Trace
from aiperf_traces.rows import trace_rows
from aiperf_traces.settings import settings

from aiperf_dataset_weka_trace.corpus import sessions
from aiperf_dataset_weka_trace.files import files_of
from aiperf_dataset_weka_trace.options import AUTO
from aiperf_dataset_weka_trace.records import ClockBasis, EarlierRequest

BLOCK_TOKENS = 64
"""Of a corpus without traces."""


def recorded(path: Path) -> Trace:
    """The requests of all agents of all traces, trace by trace.  Each trace has a clock of its own: rows have no times.

    Raises:
        BadDataset: A trace breaks a rule.
    """
    files, seen = files_of(path), ClockBasis(relative=False)
    size = None
    try:
        for _, session in sessions(files, AUTO, seen):
            size = size or session.block_tokens
    except EarlierRequest:
        seen.relative = True
        size = next(session.block_tokens for _, session in sessions(files, AUTO, seen))
    rows = trace_rows(((session, None) for _, session in sessions(files, AUTO, seen)), settings().workers)
    return Trace(rows, size or BLOCK_TOKENS)


__all__ = ["recorded"]
