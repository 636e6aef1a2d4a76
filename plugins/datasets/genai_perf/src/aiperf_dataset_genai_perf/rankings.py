"""genai_perf_rankings: a directory with queries and passages, paired by row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aiperf import BadDataset, Conversation, Dataset, DatasetContext, Turn
from aiperf_dataset_single_turn.dataset import Rows, jsonl_files, typed
from aiperf_dataset_synthetic.file import FileDefaults

from aiperf_dataset_genai_perf.options import PairsOptions

_QUERIES, _PASSAGES = ("queries", "query"), ("passages", "passage")


class Pairs(Dataset[PairsOptions]):
    """Conversations of one turn, as many as the shorter file has rows."""

    def __init__(self, options: PairsOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._defaults = FileDefaults(options, context)
        if "passages" not in context.capabilities.named:
            raise BadDataset(
                "queries with passages are for an endpoint type that ranks", "write for example --endpoint-type cohere_rankings"
            )

    def __iter__(self) -> Iterator[Conversation]:
        queries, passages = (self._texts(names) for names in (_QUERIES, _PASSAGES))
        for number, (query, several) in enumerate(zip(queries, passages, strict=False)):
            named = {"query": query, "passages": several}
            yield self._defaults.conversation(number, None, (Turn(texts=(*query, *several), named=named),), alone=True)

    def _texts(self, names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """The texts of each row of the file with one of the names."""
        path = self._defaults.path
        files = [file for name, file in jsonl_files(path) if name in names] if path.is_dir() else []
        if len(files) != 1:
            found = "no" if not files else f"{len(files)}"
            raise BadDataset(f"{path} has {found} file {' or '.join(f'{name}.jsonl' for name in names)}", "it has one of each")
        return self._rows(files[0])

    def _rows(self, file: Path) -> Iterator[tuple[str, ...]]:
        reader = Rows(file)
        for line, row in typed(file):
            turn = reader.turn(row, line)
            if not turn.texts:
                raise reader.wrong(line, "the row has no text")
            yield turn.texts


__all__ = ["Pairs"]
