"""The dataset contract: conversations from a source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Generic

from msgspec import Struct

from aiperf.sdk.endpoint import Capabilities
from aiperf.sdk.model import Conversation
from aiperf.sdk.options import OptionsT
from aiperf.sdk.tokenizer import Tokenizer


class DatasetContext(Struct, frozen=True):
    """The part of the run that a data set sees.

    entries: requested number of conversations; a recorded source may give fewer or more.
    seed: root of every draw.  seeded: whether the user gave the seed (ids are then readable).
    tokenizer: None for endpoints that neither tokenize nor produce tokens.
    capabilities: those of the endpoint, to omit unsupported content.
    source: file or directory, for formats that read one.
    """

    entries: int
    seed: int
    seeded: bool
    tokenizer: Tokenizer | None
    capabilities: Capabilities
    source: Path | None = None


class Dataset(Generic[OptionsT]):
    """A source of conversations.  It streams: a data set may be larger than memory.

    options: the data set's own (None where it declares none).
    """

    preferred_sampling: ClassVar[str] = "sequential"
    trace: ClassVar[bool] = False

    def __init__(self, options: OptionsT, context: DatasetContext) -> None:
        self.options, self.context = options, context

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        """Whether the file is of this format.  *first_row*: its first line parsed as JSON, None where that fails."""
        return False

    def __iter__(self) -> Iterator[Conversation]:
        """The conversations, the same for the same seed.

        Raises:
            BadDataset: The source can't be read; the message gives path and line.
        """
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")


__all__ = ["Dataset", "DatasetContext"]
