"""speed_bench: questions of SPEED-Bench, a benchmark of speculative decoding; every message of a row is a turn."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset, Conversation, Dataset, DatasetContext, Turn
from aiperf_dataset_single_turn.dataset import Rows, grouped, shown
from aiperf_dataset_synthetic.file import FileDefaults

from aiperf_dataset_speed_bench.options import SpeedBenchOptions

log = logging.getLogger(__name__)

_FILES = ("qualitative.jsonl", *(f"throughput_{size}k.jsonl" for size in (1, 2, 8, 16, 32)))
_ID_LENGTH = 32
"""Characters of a ``question_id``."""
_PLACEHOLDER = "FULL BENCHMARK DATA SHOULD BE FETCHED"
"""How the content of a row begins whose text the public file leaves out."""
_FETCH = "fetch the whole data from its source, with the benchmark's own script"


class SpeedBench(Dataset[SpeedBenchOptions]):
    """Rows of a file, those of a category where the chosen name has one."""

    def __init__(self, options: SpeedBenchOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._defaults = FileDefaults(options, context)

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return path.name in _FILES and isinstance(first_row, dict)

    def __iter__(self) -> Iterator[Conversation]:
        path, wanted = self._defaults.path, self.context.row.get("category")
        expected = self.context.row.get("file", path.name)
        if path.name != expected:
            log.warning("%s is read as %s, whose file is %s", path, self.context.name, expected)
        reader, number, found = Rows(path), 0, set()
        for identity, session in grouped(path, _question):
            turns: list[Turn] = []
            for line, row in session:
                category, messages = _category(reader, row, line), tuple(_turns(reader, row, line))
                found.add(category)
                if wanted in (None, category):
                    turns += messages
            if turns:
                yield self._defaults.conversation(number, identity, tuple(turns))
                number += 1
        if not number and found:
            raise BadDataset(
                f"{path} has no rows of the category {wanted}, which {self.context.name} selects",
                f"its categories: {', '.join(sorted(found))}",
            )


def _question(row: dict[str, Any], line: int) -> str | None:
    identity = row.get("question_id")
    return identity if isinstance(identity, str) else None


def _category(reader: Rows, row: dict[str, Any], line: int) -> str:
    identity = reader.string(row, "question_id", line)
    if identity is None or len(identity) != _ID_LENGTH:
        raise reader.wrong(line, f"question_id is {shown(identity)}; it must have {_ID_LENGTH} characters")
    category = reader.string(row, "category", line)
    if not category:
        raise reader.wrong(line, "the row has no category")
    return category


def _turns(reader: Rows, row: dict[str, Any], line: int) -> Iterator[Turn]:
    for message in reader.messages(row, line):
        role, text = message["role"], message.get("content")
        if not isinstance(role, str) or not role.strip() or not isinstance(text, str) or not text.strip():
            raise reader.wrong(line, f"the message {shown(message)} must have a role and a content, texts that are not blank")
        if text.startswith(_PLACEHOLDER):
            raise BadDataset(f"{reader.path}:{line}: the row has a placeholder in place of its text", _FETCH)
        yield Turn(texts=(text,), role=role)


__all__ = ["SpeedBench"]
