"""A file of rounds, read into its index."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from aiperf import BadDataset
from aiperf_dataset_weka_trace.corpus import kept_entries
from aiperf_dataset_weka_trace.index import IndexWriter, opened_index
from aiperf_traces.plans import SessionPlan, plan_of
from aiperf_traces.settings import settings

from aiperf_dataset_tracelab.options import TracelabOptions
from aiperf_dataset_tracelab.recording import Recording, switches

log = logging.getLogger("aiperf.datasets.tracelab")


class RoundCorpus:
    """The sessions of *source* that the options leave, with the subagents that they started.

    Raises:
        BadDataset: A row breaks a rule, or no session is left.
    """

    def __init__(self, source: Path, options: TracelabOptions) -> None:
        self.name, self._source, self._options, self._settings = str(source), source, options, settings()
        depends: list[object] = ["tracelab", options.block_size, options.max_isl, options.max_osl]
        depends += [msgspec.to_builtins(self._settings), msgspec.to_builtins(switches())]
        self._index = opened_index([source], depends, self._write)
        for remark in self._index.remarks:
            log.warning("%s", remark)
        self.entries = kept_entries(self._index.entries, options.max_context, self.name)

    def plan(self, number: int) -> SessionPlan:
        """The plan of a session, by its number among those that are left."""
        return self._index.plan(self.entries[number])

    @property
    def facts(self) -> dict[str, Any]:
        """What results tell of the file."""
        return {**self._index.facts, "traces_read": len(self._index.entries), "traces": len(self.entries)}

    def _write(self, file: BinaryIO) -> None:
        """Read the file, and write its index."""
        writer, recording = IndexWriter(file), Recording(self._source, self._options.block_size)
        most_output = self._options.max_osl
        for session, _ in recording.sessions():
            try:
                plan = plan_of(session, self._settings, self._options.max_isl, most_output)
            except BadDataset as error:
                raise BadDataset(f"{self.name}: {error.message}", *error.hints) from error
            if not plan.agents[0].turns:
                plan.agents, plan.starts = [], []
            writer.add(plan, session.longest_context(most_output))
        links = recording.links
        facts = {
            "spawn_windows": links.found, "subagents": len(links.windows) - links.deeper,
            "ambiguous_subagents": links.ambiguous, "subagents_of_subagents": links.deeper,
            "rounds_without_times": recording.undated, "rows_without_session": recording.stray,
        }  # fmt: skip
        writer.finish(facts=facts, remarks=_remarks(self.name, recording))


def _remarks(name: str, recording: Recording) -> list[str]:
    links, remarks = recording.links, []
    if recording.undated:
        remarks.append(f"{name}: rounds without times are left out: {recording.undated}")
    if recording.stray:
        remarks.append(f"{name}: rows without a session_id are left out: {recording.stray}")
    if links.ambiguous:
        remarks.append(f"{name}: sessions within several calls that start agents, each of the shortest: {links.ambiguous}")
    return remarks


__all__ = ["RoundCorpus"]
