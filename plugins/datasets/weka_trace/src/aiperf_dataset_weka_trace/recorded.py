"""What a corpus recorded, for tools that make no prompts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aiperf.sdk.trace import Trace, TraceRow
from aiperf_traces.agents import crew_of
from aiperf_traces.sessions import RecordedRequest, pause_ms
from aiperf_traces.settings import settings

from aiperf_dataset_weka_trace.corpus import sessions
from aiperf_dataset_weka_trace.files import files_of
from aiperf_dataset_weka_trace.options import AUTO, WekaOptions
from aiperf_dataset_weka_trace.records import ClockBasis, EarlierRequest

BLOCK_TOKENS = 64
"""Of traces that say nothing else."""


def recorded(path: Path) -> Trace:
    """The requests of all agents of all traces, trace by trace.

    Raises:
        BadDataset: A trace breaks a rule; raised by its rows, too.
    """
    files, seen = files_of(path), ClockBasis(relative=False)
    size = BLOCK_TOKENS
    try:
        for number, (_, session) in enumerate(sessions(files, AUTO, seen)):
            size = session.block_tokens if not number else size
    except EarlierRequest:
        seen.relative = True
    return Trace(_rows(files, seen), size)


def _rows(files: list[Path], seen: ClockBasis) -> Iterator[TraceRow]:
    rules, options = settings().workers, WekaOptions()
    for tree, (_, session) in enumerate(sessions(files, AUTO, seen)):
        for stream, agent in enumerate(crew_of(session, rules).agents):
            before: RecordedRequest | None = None
            for request in agent.requests:
                delay_ms = None if before is None else pause_ms(before, request, options)
                answer_s = request.end_s - request.at_s
                before = request
                yield TraceRow(
                    request.input_tokens, request.output_tokens, request.blocks, 1000.0 * request.at_s, delay_ms,
                    1000.0 * answer_s if answer_s else None, agent.id, tree, stream, int(stream > 0), tree,
                )  # fmt: skip


__all__ = ["recorded"]
