"""The dataset contract: conversations from a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal

from msgspec import Struct, field

from aiperf.errors import BadDataset
from aiperf.foreign import SAMPLER
from aiperf.sdk.endpoint import Capabilities
from aiperf.sdk.model import Conversation
from aiperf.sdk.options import OptionsT
from aiperf.sdk.tokenizer import ChatTemplate, Tokenizer
from aiperf.sdk.trace import Trace
from aiperf.sdk.trees import TreeOutline


class DatasetFacts(Struct, frozen=True):
    """What the manifest says of a data set, below ``capabilities``.

    reads: it reads ``--input-file``.  trace: its rows have recorded times.
    keys: what its rows have: one of these keys, or all of one of these lists of keys.  In a list ``!key`` is a key that they
    don't have, ``data.payloads`` a key of an object, or of objects in a list, below ``data``; ``/`` says that the file is
    a directory.  The format with the longest list that fits is the file's.
    endings: ends of the names of its files, where not every name is one; ``/`` is a directory.
    prefixes: words that choose it in front of a file's name, as in ``--input-file payload:FILE``; a format with prefixes and
    without keys and endings is never recognised.  Where it reads no file, what stands behind the word is the context's name.
    timed: every row has a recorded time; else a ``timestamp`` in the first row tells.  A row of ``names`` may say so, too.
    selected_by: the option that names it: ``format`` (--custom-dataset-type), ``public`` (--public-dataset) or ``benchmark``
    (--accuracy-benchmark).  names: rows of data by the names that the class serves; {} is the plugin's name, without a row.
    A format is also chosen by its own name, or recognised, without a row.
    once: a run uses each entry at most once; without a stop condition every entry once.
    implied: by the field of an option of its own, the one of *names* that is chosen where the option is given.
    grader: name of the grader of its answers, where ``--accuracy-grader`` names none; a row of ``names`` may name another one.
    """

    reads: bool = False
    trace: bool = False
    keys: tuple[str | tuple[str, ...], ...] = ()
    selected_by: Literal["format", "public", "benchmark"] = "format"
    names: dict[str, dict[str, Any]] = field(default_factory=dict)
    once: bool = False
    endings: tuple[str, ...] = ()
    timed: bool = False
    prefixes: tuple[str, ...] = ()
    grader: str = ""
    implied: dict[str, str] = field(default_factory=dict)


class DatasetContext(Struct, frozen=True):
    """The part of the run that a data set sees.

    entries: requested number of conversations; a recorded source may give fewer or more.
    seed: root of every draw.  seeded: whether the user gave the seed (ids are then readable).
    tokenizer: None for endpoints that neither tokenize nor produce tokens.
    capabilities: those of the endpoint, to omit unsupported content.
    source: file or directory, for formats that read one; of a public data set or benchmark its local copy.
    replay: the run keeps to recorded times (fixed schedule).
    name, row: the chosen one of the manifest's ``names`` and its data; "" and {} where none was.
    marker_tokens: tokens that the run adds to the first turn (``--cache-bust``); marker_in_system: to the system message
    instead, where there is one.
    chat_template: of the tokenizer, where prompts are counted with it (``--apply-chat-template``); None where they are not.
    models: the run's, the first one first; for data that says which of several a turn asks.
    """

    entries: int
    seed: int
    seeded: bool
    tokenizer: Tokenizer | None
    capabilities: Capabilities
    source: Path | None = None
    name: str = ""
    row: dict[str, Any] = field(default_factory=dict)
    marker_tokens: int = 0
    marker_in_system: bool = False
    replay: bool = False
    chat_template: ChatTemplate | None = None
    models: tuple[str, ...] = ()


class Promise(Struct, frozen=True):
    """What a data set knows of its conversations before it makes them; a broken promise ends the run.

    count: how many the iteration gives, at least 1.
    turns: how many turns each has that send requests, or by number where they differ; None where only the making tells.
    timestamp_ms: by number, when the only turn was recorded, None where a row has no time; None where that is unknown, or
    conversations have several turns.
    any_order: ``chosen`` gives any of them.
    turn_timestamp_ms: by number and turn, from 0, when that was recorded, None where it has no time; in place of *timestamp_ms*
    where conversations may have several turns.
    trees: some start others (``Conversation.streams``); the load then begins once all conversations are made, unless *outline*
    says by number what each will be.
    sparing: the source is read to the end, and conversations are large: each is made shortly before the load uses it, and one
    that it doesn't use is not made.
    """

    count: int
    turns: int | Callable[[int], int] | None = 1
    timestamp_ms: Callable[[int], float | None] | None = None
    any_order: bool = False
    turn_timestamp_ms: Callable[[int, int], float | None] | None = None
    trees: bool = False
    outline: Callable[[int], TreeOutline] | None = None
    sparing: bool = False


class Dataset(Generic[OptionsT]):
    """A source of conversations.  It streams: a data set may be larger than memory.

    options: the data set's own (None where it declares none).
    """

    preferred_sampling: ClassVar[str] = SAMPLER
    trace: ClassVar[bool] = False

    def __init__(self, options: OptionsT, context: DatasetContext) -> None:
        self.options, self.context = options, context

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        """Whether the file is of this format; asked where the manifest's ``keys`` and ``endings`` fit it best.

        *first_row*: its first row, as far as it stands in the first 64 KiB; None where there is none.
        """
        return False

    @classmethod
    def recorded(cls, path: Path) -> Trace:
        """What the file recorded: lengths, times and blocks, without prompts.  For tools such as ``aiperf analyze-trace``.

        Raises:
            BadDataset: The format records no lengths; or, by the rows, the file can't be read: path and line.
        """
        raise BadDataset(f"{path}: its format ({cls.__name__}) records no lengths of prompts and answers")

    def promise(self) -> Promise | None:
        """What is known before the iteration; None where only all conversations tell how many there are.

        With a promise, requests may be sent while later conversations are still made.  Asked at most once, before the
        iteration; a quick scan of a file is fine.
        """
        return None

    def chosen(self, numbers: Iterable[int]) -> Iterator[Conversation]:
        """The conversations with these numbers, from 0, in the order of the numbers; each as the iteration gives it.

        Asked only behind a promise of any order.

        Raises:
            BadDataset: As the iteration.
        """
        raise NotImplementedError(f"{type(self).__name__} promises any order, and must define chosen(numbers)")

    def source_facts(self) -> dict[str, Any]:
        """What the results tell of the source, JSON values by name: revision, files, rows that were skipped.  {} is nothing.

        ``provenance``, an object, stands in the summary JSON as ``metadata.dataset``: of a public data set ``source_type``
        (``public_dataset``), ``loader`` (its name), ``hf_dataset_name``, ``hf_split``, ``hf_subset`` and ``hf_revision``.

        Asked once the iteration is over; behind a promise before it, because requests may be sent while it goes on.
        """
        return {}

    def __iter__(self) -> Iterator[Conversation]:
        """The conversations, the same for the same seed.

        Raises:
            BadDataset: The source can't be read; the message gives path and line.
        """
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")


__all__ = ["Dataset", "DatasetContext", "Promise"]
