"""dag_jsonl: a file of conversations that start others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from aiperf import BadDataset, Conversation, Dataset, DatasetContext
from aiperf_dataset_synthetic.file import FileDefaults
from msgspec.structs import replace

from aiperf_dataset_dag_jsonl.options import DagJsonlOptions
from aiperf_dataset_dag_jsonl.sessions import DagFile
from aiperf_dataset_dag_jsonl.trees import SessionTree


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

    def __iter__(self) -> Iterator[Conversation]:
        path, cap_s = self._defaults.path, self.options.delay_cap_s
        if self._defaults.stands_before:
            raise BadDataset(f"{path}: messages are sent unchanged: the {self._defaults.stands_before} can't come before them")
        file = DagFile(path)
        for number, root in enumerate(file.roots):
            tree = SessionTree(file, root, None if cap_s is None else cap_s * 1000)
            made = self._defaults.conversation(number, root, tuple(tree.turns))
            yield replace(made, streams=tree.streams) if len(tree.streams) > 1 else made


__all__ = ["DagJsonl"]
