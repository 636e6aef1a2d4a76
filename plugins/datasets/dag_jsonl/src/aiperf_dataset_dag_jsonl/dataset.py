"""dag_jsonl: a file of conversations that start others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from aiperf import BadDataset, Conversation, Dataset, DatasetContext
from aiperf.sdk.trace import Trace, TraceRow
from aiperf.sdk.trees import stream_at
from aiperf_dataset_synthetic.file import FileDefaults
from msgspec.structs import replace

from aiperf_dataset_dag_jsonl.options import DagJsonlOptions
from aiperf_dataset_dag_jsonl.sessions import DagFile
from aiperf_dataset_dag_jsonl.trees import SessionTree

_BLOCK_TOKENS = 64
"""How long the pieces are whose prefixes are compared, as in other traces of agents."""


class DagJsonl(Dataset[DagJsonlOptions]):
    """One tree for each session that no other starts, in the order of the file."""

    preferred_sampling: ClassVar[str] = "random"

    def __init__(self, options: DagJsonlOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._defaults = FileDefaults(options, context)

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        if not isinstance(first_row, dict) or "session_id" not in first_row:
            return False
        turns = first_row.get("turns")
        started = isinstance(turns, list) and any(isinstance(turn, dict) and "messages" in turn for turn in turns)
        return started or first_row.get("orchestrator") is True

    @classmethod
    def recorded(cls, path: Path) -> Trace:
        return Trace(_recorded(path), _BLOCK_TOKENS)

    def __iter__(self) -> Iterator[Conversation]:
        path, cap_s = self._defaults.path, self.options.delay_cap_s
        if self._defaults.stands_before:
            raise BadDataset(f"{path}: messages are sent unchanged: the {self._defaults.stands_before} can't come before them")
        file = DagFile(path)
        for number, root in enumerate(file.roots):
            tree = SessionTree(file, root, None if cap_s is None else cap_s * 1000)
            made = self._defaults.conversation(number, root, tuple(tree.turns))
            yield replace(made, streams=tree.streams) if len(tree.streams) > 1 else made


def _recorded(path: Path) -> Iterator[TraceRow]:
    """Each request with the texts that the file gives its prompt; the answers before it are not known."""
    file = DagFile(path)
    for number, root in enumerate(file.roots):
        tree = SessionTree(file, root, None)
        chat = Conversation(root, tuple(tree.turns), streams=tree.streams)
        for place, turn in enumerate(tree.turns):
            stream = stream_at(tree.streams, place)
            texts = [text for message in chat.messages(place) for text in message.words]
            yield TraceRow(
                output_tokens=turn.max_tokens or 0, delay_ms=turn.delay_ms, session=tree.streams[stream].id, tree=number,
                stream=stream, depth=tree.streams[stream].depth, texts=texts,
            )  # fmt: skip


__all__ = ["DagJsonl"]
