"""exgentic: traces of agents, a session a row; each span of a session sends its whole chat again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset, Conversation, Dataset, DatasetContext
from aiperf_dataset_synthetic.file import FileDefaults
from aiperf_rows.row_files import rows

from aiperf_dataset_exgentic.options import ExgenticOptions
from aiperf_dataset_exgentic.sessions import Sessions, source_model


class Exgentic(Dataset[ExgenticOptions]):
    """Sessions in the order of the file, their spans in the order of their times."""

    def __init__(self, options: ExgenticOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._defaults = FileDefaults(options, context)

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return isinstance(first_row, dict) and isinstance(first_row.get("spans"), list)

    def __iter__(self) -> Iterator[Conversation]:
        path, context = self._defaults.path, self.context
        if self._defaults.stands_before:
            raise BadDataset(f"{path}: messages are sent unchanged: the {self._defaults.stands_before} can't come before them")
        sessions = Sessions(context.capabilities, apart=context.replay)
        number = 0
        for line, row in rows(path):
            for name, turns in sessions.of(row, f"{path}:{line}"):
                yield self._defaults.conversation(number, name, turns, alone=True)
                number += 1
        sessions.finish(path)


__all__ = ["Exgentic", "Sessions", "source_model"]
