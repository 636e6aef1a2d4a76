"""What data sets of rows share, whether a row is a turn or a conversation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import TypeVar

from aiperf import Conversation, Dataset, DatasetContext
from aiperf_dataset_synthetic.file import FileDefaults

from aiperf_dataset_single_turn.counted import CountedRows, counted_rows
from aiperf_dataset_single_turn.options import RowOptions
from aiperf_dataset_single_turn.row import Rows
from aiperf_dataset_single_turn.sessions import Row, grouped

_OptionsT = TypeVar("_OptionsT", bound=RowOptions)


class RowFile(Dataset[_OptionsT]):
    """A file of rows; rows with the same ``session_id`` are one conversation, a row without an id is one of its own."""

    def __init__(self, options: _OptionsT, context: DatasetContext) -> None:
        super().__init__(options, context)
        self.defaults = FileDefaults(options, context)
        self.reader = Rows(self.defaults.path, anywhere=options.allow_paths)
        self._counted: CountedRows | None = None

    @abstractmethod
    def conversation(self, number: int, identity: str | None, session: list[Row]) -> Conversation:
        """Conversation *number*, counted from 0, with its session id (None: it has none) and its rows in order.

        Raises:
            BadDataset: A row that can't be used, with its line.
        """

    def counted(self) -> CountedRows | None:
        """The conversations, which from now on are read where they stand; None of a directory."""
        self._counted = counted_rows(self.defaults.path)
        return self._counted

    def __iter__(self) -> Iterator[Conversation]:
        if self._counted is not None:
            yield from self._made(self._counted, None)
            return
        for number, (identity, session) in enumerate(grouped(self.defaults.path, self.reader.session)):
            yield self.conversation(number, identity, session)

    def chosen(self, numbers: Iterable[int]) -> Iterator[Conversation]:
        assert self._counted is not None  # it promised any order
        return self._made(self._counted, numbers)

    def _made(self, counted: CountedRows, numbers: Iterable[int] | None) -> Iterator[Conversation]:
        return (self.conversation(*found) for found in counted.conversations(numbers))
