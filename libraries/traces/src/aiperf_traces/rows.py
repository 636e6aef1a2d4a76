"""The requests of recorded sessions as rows of a trace, for tools that make no prompts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aiperf.sdk.trace import TraceRow

from aiperf_traces.agents import crew_of
from aiperf_traces.sessions import RecordedSession
from aiperf_traces.settings import WorkerRules


def trace_rows(sessions: Iterable[tuple[RecordedSession, float | None]], rules: WorkerRules) -> Iterator[TraceRow]:
    """The requests that a run sends of each session, in the order of their recorded times.

    sessions: each with the time of its first request in ms on a clock that all have; None where they have none, so that the
    rows have no times.

    Raises:
        BadDataset: Two subagents of a session have one id.
    """
    for number, (session, began_ms) in enumerate(sessions):
        crew = crew_of(session, rules)
        sent = [(request, stream) for stream, agent in enumerate(crew.agents) for request in agent.requests]
        for request, stream in sorted(sent, key=lambda one: one[0].at_s):
            yield TraceRow(
                request.input_tokens, request.output_tokens, request.blocks,
                None if began_ms is None else began_ms + 1000.0 * request.at_s, None,
                None if request.answer_s is None else 1000.0 * (request.end_s - request.at_s),
                crew.agents[stream].id, number, stream, 1 if stream else 0, number + 1,
            )  # fmt: skip


__all__ = ["trace_rows"]
