"""What a conversation goes through before it is encoded, and the files of data set exporters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from msgspec.structs import replace

from aiperf.errors import BadDataset
from aiperf.registry.third_party import isolated
from aiperf.rundir.media import with_media
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.exporter import DatasetExporter
from aiperf.sdk.model import Answers, Conversation, Media, Turn, names

log = logging.getLogger(__name__)

_READ_AHEAD = 16
"""Conversations whose media are read at once."""
_AT_ONCE, _AT_ONCE_BYTES = 64, 1 << 18
"""Conversations that an exporter writes at once, and the size of their bodies."""
_KNOWN_ANSWERS = tuple(Answers)
_ANSWERS = f"the answers in a history are {names(_KNOWN_ANSWERS)}"


class DatasetExport:
    """The file of one data set exporter: a draft beside the final path, which replaces it when the file is whole.

    An exporter that fails is reported and leaves no file; the run continues without it.
    """

    def __init__(self, ref: PluginRef, exporter: DatasetExporter) -> None:
        self._ref, self._exporter = ref, exporter
        self._path = exporter.target.file(exporter.kind)
        self._draft = self._path.with_name(f".{self._path.name}.draft")
        self._file: BinaryIO | None = None
        self._first = True
        self._entries: list[tuple[Conversation, Sequence[bytes]]] = []
        self._bytes = 0

    def __enter__(self) -> DatasetExport:
        self._draft.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._draft.open("wb")
        self._write(self._exporter.header)
        return self

    def entry(self, conversation: Conversation, bodies: Sequence[bytes]) -> None:
        """Write one conversation, with others.  *bodies*: request bodies by turn."""
        self._entries.append((conversation, bodies))
        self._bytes += sum(map(len, bodies))
        if len(self._entries) == _AT_ONCE or self._bytes > _AT_ONCE_BYTES:
            self._flush()

    def finish(self) -> None:
        """Write the end and move the draft to the final path."""
        self._flush()
        self._write(self._exporter.footer)
        if self._file is not None:
            self._file.close()
            self._draft.replace(self._path)

    def _flush(self) -> None:
        entries, self._entries, self._bytes = self._entries, [], 0
        if entries:
            self._write(partial(self._exporter.entries, entries, first=self._first))
            self._first = False

    def _write(self, piece: Callable[[], bytes]) -> None:
        if self._file is not None:
            # An OSError is a fault of the disk, not of the exporter.
            with isolated(self._ref, self._failed, f"failed, and {self._path.name} is not written", passing=OSError):
                self._file.write(piece())

    def _failed(self, message: str) -> None:
        log.error("%s", message)
        self.__exit__()

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._draft.unlink(missing_ok=True)


def with_inlined_media(conversations: Iterator[Conversation], source: str | None) -> Iterator[Conversation]:
    """The conversations with their media as ``data:`` URIs; those of several are read at once.

    *source*: the input file; paths may be relative to its folder.

    Raises:
        BadDataset: A medium can't be read.
    """
    from aiperf.sdk.media import MediaReader  # threads, only for such an endpoint

    reader = MediaReader(None if source is None else Path(source).parent)

    def inlined(media: Media) -> Media:
        return reader.inlined((media,))[0]

    while some := list(islice(conversations, _READ_AHEAD)):
        reader.inlined([media for one in some if isinstance(one, Conversation) for turn in one.turns for media in turn.media])
        for one in some:
            yield with_media(one, inlined) if isinstance(one, Conversation) else one


def check_tools(tools: Any, where: str) -> None:
    """
    Raises:
        BadDataset: The ``tools`` of a request are not what its dialect has; None is none.
    """
    if tools is not None and not (isinstance(tools, list | tuple) and all(isinstance(tool, dict) for tool in tools)):
        shown = repr(tools)
        shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
        raise BadDataset(f"{where} has tools that are no list of objects: {shown}", "write definitions as the API has them")


def without_silent_turns(conversation: Conversation) -> Conversation:
    """The turns that send requests; the messages of a silent turn, its delay and tools join the next one.

    Raises:
        BadDataset: The conversation contradicts itself.
    """
    if conversation.answers not in _KNOWN_ANSWERS:
        raise BadDataset(f"the answers of conversation {conversation.id!r} are {conversation.answers!r}", _ANSWERS)
    for turn in conversation.turns:  # half the time of any()
        if turn.silent:
            break
    else:
        return conversation
    if conversation.alone:
        raise BadDataset(f"conversation {conversation.id!r} has silent turns, and its turns are sent without history")
    turns: list[Turn] = []
    waiting = Turn()
    for turn in conversation.turns:
        if turn.silent and turn.role == "assistant" and turn.items is None and conversation.answers != Answers.AUTHORED:
            continue
        before = (*(() if turn.reset else waiting.before), *turn.before)
        delay_ms = (waiting.delay_ms or 0) + (turn.delay_ms or 0) or turn.delay_ms
        tools, reset = waiting.tools if turn.tools is None else turn.tools, waiting.reset or turn.reset
        if turn.silent:
            waiting = Turn(before=(*before, *turn.own), delay_ms=delay_ms, tools=tools, reset=reset)
        else:
            turns.append(replace(turn, before=before, delay_ms=delay_ms, tools=tools, reset=reset))
            waiting = Turn()
    return replace(conversation, turns=tuple(turns))


def with_delays(conversation: Conversation, ratio: float) -> Conversation:
    """The conversation with its delays multiplied by *ratio*."""
    turns = (replace(turn, delay_ms=turn.delay_ms * ratio) if turn.delay_ms else turn for turn in conversation.turns)
    return replace(conversation, turns=tuple(turns))


def has_items(conversation: Conversation) -> bool:
    """Whether a request of the conversation has tools or verbatim messages; a payload replaces both."""
    for turn in conversation.turns:
        messages = (*conversation.opening, *turn.before, *(turn.items or ()))
        if turn.payload is None and (turn.tools or any(message.item is not None for message in messages)):
            return True
    return False
