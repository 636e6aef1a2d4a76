"""A file of rounds, read into its index."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import msgspec
from aiperf_dataset_weka_trace.corpus import IndexedCorpus
from aiperf_dataset_weka_trace.index import IndexWriter

from aiperf_dataset_tracelab.options import TracelabOptions
from aiperf_dataset_tracelab.recording import Recording, switches


class RoundCorpus(IndexedCorpus):
    """The sessions of *source* that the options leave, with the subagents that they started.

    Raises:
        BadDataset: A row breaks a rule, or no session is left.
    """

    def __init__(self, source: Path, options: TracelabOptions) -> None:
        self._source, self._block_tokens = source, options.block_size
        depends = ["tracelab", options.block_size, msgspec.to_builtins(switches())]
        super().__init__(str(source), [source], depends, options)

    def _write(self, file: BinaryIO) -> None:
        writer, recording = IndexWriter(file), Recording(self._source, self._block_tokens)
        for session, _ in recording.sessions():
            self.added(writer, session, self.name)
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
