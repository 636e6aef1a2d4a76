"""tracelab: recorded rounds of coding agents, as trees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset
from aiperf.sdk.trace import Trace
from aiperf_dataset_weka_trace.dataset import RecordedAgents
from aiperf_traces.rows import trace_rows
from aiperf_traces.sessions import RecordedSession
from aiperf_traces.settings import settings

from aiperf_dataset_tracelab.corpus import RoundCorpus
from aiperf_dataset_tracelab.options import BLOCK_TOKENS, TracelabOptions
from aiperf_dataset_tracelab.recording import Recording
from aiperf_dataset_tracelab.rounds import is_row


class Tracelab(RecordedAgents[TracelabOptions]):
    """A tree for each session that no other one started, in the order of the file."""

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return is_row(first_row)

    @classmethod
    def recorded(cls, path: Path) -> Trace:
        return Trace(trace_rows(_recorded(path), settings().workers), BLOCK_TOKENS)

    def corpus(self) -> RoundCorpus:
        if self.context.source is None:
            raise BadDataset("this data set reads a file, and the run has none", "add --input-file")
        return RoundCorpus(self.context.source, self.options)


def _recorded(path: Path) -> Iterator[tuple[RecordedSession, float]]:
    found = False
    for session, began_s in Recording(path, BLOCK_TOKENS).sessions():
        found = True
        yield session, 1000.0 * began_s
    if not found:
        raise BadDataset(f"{path}: no round has a time, and nothing tells their order", "timing_events have timestamps")


__all__ = ["Tracelab"]
