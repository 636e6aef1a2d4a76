"""A corpus of traces: read into its index, with one decision on the clock of subagents."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from aiperf import BadDataset
from aiperf_traces.agents import FLAT
from aiperf_traces.options import AgentTraceOptions
from aiperf_traces.plans import SessionPlan, plan_of
from aiperf_traces.sessions import RecordedSession
from aiperf_traces.settings import settings

from aiperf_dataset_weka_trace.files import files_of, traces
from aiperf_dataset_weka_trace.index import IndexWriter, TraceEntry, TraceIndex, opened_index
from aiperf_dataset_weka_trace.options import ABSOLUTE, AUTO, RELATIVE, WekaOptions
from aiperf_dataset_weka_trace.records import ClockBasis, EarlierRequest, session_of

log = logging.getLogger("aiperf.datasets.weka_trace")
_SHOWN = 5
"""Traces and subagents that a message names."""


def sessions(files: Sequence[Path], basis: str, seen: ClockBasis) -> Iterator[tuple[str, RecordedSession]]:
    """Places and sessions of the files' traces.  *seen* and errors as of :func:`session_of`.

    Raises:
        BadDataset: Two traces have one id.
        EarlierRequest: The corpus is to be read again, with ``seen.relative``.
    """
    known: dict[str, str] = {}
    for place, text in traces(files):
        session = session_of(text, place, basis, seen)
        if session.id in known:
            raise BadDataset(f"{place}: the trace id {session.id!r} is that of {known[session.id]}, too")
        known[session.id] = place
        yield place, session


def kept_entries(entries: Sequence[TraceEntry], most: int | None, name: str) -> list[TraceEntry]:
    """The traces whose longest request has at most so many tokens with its answer; None is no limit.

    *name*: of the corpus.  A trace whose root has no requests is left out.

    Raises:
        BadDataset: None is left.
    """
    empty = sum(entry.turns == 0 for entry in entries)
    if empty:
        log.warning("%s: left out, because their root has no requests: %d of %d traces", name, empty, len(entries))
    sent = [entry for entry in entries if entry.turns]
    if not sent:
        raise BadDataset(f"{name} has {'no trace whose root has a request' if entries else 'no traces'}")
    kept = [entry for entry in sent if most is None or entry.longest <= most]
    if not kept:
        least = min(entry.longest for entry in sent)
        why = f"the shortest has a request of {least} tokens with its answer"
        raise BadDataset(f"{name}: --max-context-length {most} leaves no trace: {why}", f"give {least} or more")
    if len(kept) < len(sent):
        log.info("%s: --max-context-length %s leaves %d of %d traces", name, most, len(kept), len(sent))
    return kept


class IndexedCorpus:
    """The traces of *files* that the options leave, by their index.

    name: of the corpus, for messages.
    *depends*: on what plans depend besides the files, the variables and the bounds of lengths.

    Raises:
        BadDataset: A trace breaks a rule, or none is left.
    """

    def __init__(self, name: str, files: Sequence[Path], depends: Sequence[object], options: AgentTraceOptions) -> None:
        self.name, self._bounds, self._rules = name, (options.max_isl, options.max_osl), settings()
        every = [*depends, *self._bounds, msgspec.to_builtins(self._rules)]
        self._index: TraceIndex = opened_index(files, every, self._write)
        for remark in self._index.remarks:
            log.warning("%s", remark)
        self.entries = kept_entries(self._index.entries, options.max_context, name)

    def plan(self, number: int) -> SessionPlan:
        """The plan of a trace, by its number among those that are left."""
        return self._index.plan(self.entries[number])

    @property
    def facts(self) -> dict[str, Any]:
        """What results tell of the corpus."""
        return {**self._index.facts, "traces_read": len(self._index.entries), "traces": len(self.entries)}

    def added(self, writer: IndexWriter, session: RecordedSession, place: str) -> SessionPlan:
        """The plan of a session, which the index has from now on; without agents where its root has no requests.

        Raises:
            BadDataset: The session contradicts itself; the message begins with *place*.
        """
        most_input, most_output = self._bounds
        try:
            plan = plan_of(session, self._rules, most_input, most_output)
        except BadDataset as error:
            raise BadDataset(f"{place}: {error.message}", *error.hints) from error
        if not plan.agents[0].turns:
            plan.agents, plan.starts = [], []
        writer.add(plan, session.longest_context(most_output))
        return plan

    def _write(self, file: BinaryIO) -> None:
        """Read the corpus, and write its index."""
        raise NotImplementedError(f"{type(self).__name__} must define _write(file)")


class Corpus(IndexedCorpus):
    """The traces of *source*, a file or directory, that the options leave."""

    def __init__(self, source: Path, options: WekaOptions, files: Sequence[Path] = (), name: str = "") -> None:
        self._basis, self._files = options.basis, files or files_of(source)
        super().__init__(name or str(source), self._files, ["weka_trace", options.basis], options)

    def _write(self, file: BinaryIO) -> None:
        seen = ClockBasis(self._basis == RELATIVE)
        try:
            self._write_by(file, seen)
        except EarlierRequest:
            seen.relative = True
            self._write_by(file, seen)

    def _write_by(self, file: BinaryIO, seen: ClockBasis) -> None:
        writer, dropped, seams, workers = IndexWriter(file), list[str](), 0, 0
        for place, session in sessions(self._files, self._basis, seen):
            plan = self.added(writer, session, place)
            dropped += [f"{identity!r} of {session.id!r}" for identity in plan.dropped]
            seams, workers = seams + plan.seams, workers + sum(agent.kind == FLAT for agent in plan.agents)
        if workers:
            log.info("%s: %d agents stood among the requests of others; %d contexts were cut", self.name, workers, seams)
        facts = {"nested_timestamp_basis": RELATIVE if seen.relative else ABSOLUTE}
        writer.finish(facts=facts, remarks=_remarks(self.name, self._basis, seen, dropped))


def _remarks(name: str, basis: str, seen: ClockBasis, dropped: Sequence[str]) -> list[str]:
    remarks = []
    if seen.relative and basis == AUTO:
        remarks.append(f"{name}: times of subagents count from their begin, by {seen.evidence}")
    if seen.relative and seen.against:
        remarks.append(f"{name}: times of subagents count from their begin, but {seen.against}: it may mix two clocks")
    if dropped:
        shown = f"{', '.join(dropped[:_SHOWN])}{', …' if len(dropped) > _SHOWN else ''}"
        remarks.append(f"{name}: no request stands before {len(dropped)} subagents, which are left out: {shown}")
    return remarks


__all__ = ["Corpus", "IndexedCorpus", "kept_entries", "sessions"]
