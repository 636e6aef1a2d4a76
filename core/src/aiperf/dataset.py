"""The dataset contract: conversations from a source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct

from aiperf.endpoint import Capabilities
from aiperf.model import Conversation
from aiperf.tokenizer import Tokenizer


class DatasetContext(Struct, frozen=True):
    """What a dataset may know of the run.

    entries: conversations wanted (a source that is what it is, such as a trace, may give fewer or all).
    seed: every draw derives from it.  seeded: whether the user gave it (ids are then readable).
    tokenizer: None for endpoints that neither tokenize nor produce tokens.
    capabilities: the endpoint's, to leave out what it can't take.
    source: file or directory, for formats that read one.
    """

    entries: int
    seed: int
    seeded: bool
    tokenizer: Tokenizer | None
    capabilities: Capabilities
    source: Path | None = None


class Dataset:
    """A source of conversations.  Streams: it may be larger than memory.

    *options* has the dataset's own options as attributes (None where it declares none).
    """

    preferred_sampling: ClassVar[str] = "sequential"
    trace: ClassVar[bool] = False

    def __init__(self, options: Any, context: DatasetContext) -> None:
        self.options = options
        self.context = context

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        """Whether the file is of this format; *first_row* is its first line parsed as JSON, None if it isn't JSON."""
        return False

    def __iter__(self) -> Iterator[Conversation]:
        """The conversations, the same for the same seed.

        Raises:
            BadDataset: The source can't be read; the message gives path and line.
        """
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")
