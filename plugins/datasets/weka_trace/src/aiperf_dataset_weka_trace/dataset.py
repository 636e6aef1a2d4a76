"""weka_trace: traces of agents from a file, JSON lines or a directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from aiperf import BadDataset, Conversation, Dataset, DatasetContext
from aiperf.sdk.dataset import Promise
from aiperf.sdk.trace import Trace
from aiperf_traces.options import AgentTraceOptions
from aiperf_traces.plans import SessionPlan

from aiperf_dataset_weka_trace.corpus import Corpus
from aiperf_dataset_weka_trace.index import TraceEntry
from aiperf_dataset_weka_trace.options import WekaOptions
from aiperf_dataset_weka_trace.recorded import recorded
from aiperf_dataset_weka_trace.replay import Replay

AgentOptionsT = TypeVar("AgentOptionsT", bound=AgentTraceOptions)
_KEYS = ("id", "requests", "block_size", "hash_id_scope")
"""What a trace has."""


class TraceCorpus(Protocol):
    """Traces, read and indexed."""

    @property
    def name(self) -> str:
        """The corpus, for messages."""

    @property
    def entries(self) -> Sequence[TraceEntry]:
        """The traces that the options leave."""

    @property
    def facts(self) -> dict[str, Any]:
        """What results tell of it."""

    def plan(self, number: int) -> SessionPlan:
        """The plan of a trace, by its number among the entries."""


class RecordedAgents(Dataset[AgentOptionsT]):
    """A tree for each trace that the options leave, in the order of the corpus."""

    def __init__(self, options: AgentOptionsT, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._corpus: TraceCorpus | None = None

    def corpus(self) -> TraceCorpus:
        """The traces.

        Raises:
            BadDataset: They can't be read, or none is left.
        """
        raise NotImplementedError(f"{type(self).__name__} must define corpus()")

    def source_facts(self) -> dict[str, Any]:
        return {} if self._corpus is None else self._corpus.facts

    def promise(self) -> Promise | None:
        corpus, replay = self._opened(), self._replay()
        turns = [entry.turns for entry in corpus.entries]
        trees = any(entry.agents > 1 for entry in corpus.entries)
        outline = (lambda number: replay.outline(corpus.plan(number))) if trees else None
        return Promise(len(turns), turns.__getitem__, any_order=True, trees=trees, outline=outline, sparing=True)

    def chosen(self, numbers: Iterable[int]) -> Iterator[Conversation]:
        corpus, replay = self._opened(), self._replay()
        for number in numbers:
            yield replay.conversation(corpus.plan(number))
        replay.texts.warn()

    def __iter__(self) -> Iterator[Conversation]:
        return self.chosen(range(len(self._opened().entries)))

    def _replay(self) -> Replay:
        return Replay(self.options, self.context, self._opened().name)

    def _opened(self) -> TraceCorpus:
        if self._corpus is None:
            self._corpus = self.corpus()
        return self._corpus


class WekaTrace(RecordedAgents[WekaOptions]):
    """Traces of the input file."""

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return isinstance(first_row, dict) and all(key in first_row for key in _KEYS)

    @classmethod
    def recorded(cls, path: Path) -> Trace:
        return recorded(path)

    def corpus(self) -> Corpus:
        if self.context.source is None:
            raise BadDataset("this data set reads a file, and the run has none", "add --input-file")
        return Corpus(self.context.source, self.options)


__all__ = ["RecordedAgents", "TraceCorpus", "WekaTrace"]
