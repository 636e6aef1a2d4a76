"""Requests of a finished run by session and by tree, from its file of requests: this program's, or the reference's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from aiperf import AiperfError
from aiperf_results import FinishedRun
from aiperf_results.table import lines
from msgspec import Struct

from aiperf_command_analyze.runs import NothingToShowError

_NS_PER_S = 1e9
_NS_PER_MS = 1e6


class About(Struct):
    """The metadata of a line, as far as it is needed; what versions of the reference lack has a default."""

    request_start_ns: int
    request_end_ns: int
    benchmark_phase: str = "profiling"
    was_cancelled: bool = False
    x_correlation_id: str = ""
    root_correlation_id: str = ""
    parent_correlation_id: str = ""
    conversation_id: str = ""
    turn_index: int = 0
    agent_depth: int = 0


class _Value(Struct, frozen=True):
    value: float = 0.0


class _Metrics(Struct, frozen=True):
    time_to_first_token: _Value | None = None
    input_sequence_length: _Value | None = None
    output_sequence_length: _Value | None = None


class _Line(Struct):
    metadata: About
    metrics: _Metrics = _Metrics()
    error: Annotated[object, "any form"] = None


class Request(Struct, frozen=True):
    """Times in s from the run's first request on.  first_s: of the first token, None without.  tokens: of prompt and answer."""

    start_s: float
    end_s: float
    first_s: float | None
    turn: int
    failed: bool
    tokens: tuple[int | None, int | None]


class LaneSession(Struct):
    """One conversation as it was sent: its requests by start.  depth: 0 for the root."""

    id: str
    conversation: str
    parent: str
    depth: int
    requests: list[Request]

    @property
    def start_s(self) -> float:
        return self.requests[0].start_s

    @property
    def end_s(self) -> float:
        return max(each.end_s for each in self.requests)


class Tree(Struct):
    """A root and its descendants, by start.  One whose root sent nothing has none of depth 0."""

    root: str
    sessions: list[LaneSession]

    @property
    def start_s(self) -> float:
        return min(each.start_s for each in self.sessions)

    @property
    def end_s(self) -> float:
        return max(each.end_s for each in self.sessions)


class Sessions(Struct):
    """The trees of a run's profiling phase, by start.  begin_ns: wall clock of its first request."""

    trees: list[Tree]
    begin_ns: int

    @property
    def end_s(self) -> float:
        return max(tree.end_s for tree in self.trees)


def sessions_of(run: FinishedRun) -> Sessions:
    """The requests of the run's profiling phase; cancelled ones are left out.

    Raises:
        NothingToShowError: The directory has no file of requests, none that can be read, or no request in it.
    """
    if not run.has("jsonl"):
        hint = "it is written with --export-level records, which is the default, and raw"
        raise NothingToShowError(f"{run.directory} has no {run.file('jsonl').name}", hint)
    path = run.file("jsonl")
    kept = [line for line in _lines(path) if line.metadata.benchmark_phase == "profiling" and not line.metadata.was_cancelled]
    if not kept:
        raise NothingToShowError(f"{path} has no request of a profiling phase that was not cancelled")
    begin_ns = min(line.metadata.request_start_ns for line in kept)
    found: dict[str, LaneSession] = {}
    roots: dict[str, str] = {}
    for number, line in enumerate(kept):
        about = line.metadata
        key = about.x_correlation_id or f"request {number}"
        session = found.setdefault(
            key, LaneSession(key, about.conversation_id or key, about.parent_correlation_id, about.agent_depth, [])
        )
        session.requests.append(_request(line, begin_ns))
        if about.root_correlation_id != key or not about.agent_depth:  # 0.13 takes a child for its own root from a turn on
            roots[key] = about.root_correlation_id or roots.get(key, "")
    trees: dict[str, Tree] = {}
    for session in found.values():
        session.requests.sort(key=lambda each: (each.start_s, each.turn))
        root = roots.get(session.id) or _root(session, found)
        trees.setdefault(root, Tree(root, [])).sessions.append(session)
    for tree in trees.values():
        tree.sessions.sort(key=lambda each: (each.start_s, each.depth, each.id))
    return Sessions(sorted(trees.values(), key=lambda tree: (tree.start_s, tree.root)), begin_ns)


def _lines(path: Path) -> Iterator[_Line]:
    try:
        yield from lines(path, _Line)
    except (AiperfError, msgspec.MsgspecError) as error:
        raise NothingToShowError(str(error)) from error


def _request(line: _Line, begin_ns: int) -> Request:
    about, metrics = line.metadata, line.metrics
    first = metrics.time_to_first_token
    first_ns = None if first is None else about.request_start_ns - begin_ns + first.value * _NS_PER_MS
    sizes = metrics.input_sequence_length, metrics.output_sequence_length
    return Request(
        (about.request_start_ns - begin_ns) / _NS_PER_S, (about.request_end_ns - begin_ns) / _NS_PER_S,
        None if first_ns is None else first_ns / _NS_PER_S, about.turn_index, bool(line.error),
        (None if sizes[0] is None else round(sizes[0].value), None if sizes[1] is None else round(sizes[1].value)),
    )  # fmt: skip


def _root(session: LaneSession, found: dict[str, LaneSession]) -> str:
    """The session's root by the ids of parents, of files that lack the root's; an id that no line has may be one."""
    seen = {session.id}
    while session.parent and session.parent not in seen:
        seen.add(session.parent)
        if session.parent not in found:
            return session.parent
        session = found[session.parent]
    return session.id
