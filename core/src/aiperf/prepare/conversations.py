"""What a conversation goes through before it is encoded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from aiperf.errors import BadDataset, ConfigError
from aiperf.rundir.media import with_media
from aiperf.sdk.endpoint import Capabilities
from aiperf.sdk.headers import check_header_name, check_header_value
from aiperf.sdk.model import Answers, Conversation, Media, Turn, names
from aiperf.sdk.trees import faults

_READ_AHEAD = 16
"""Conversations whose media are read at once."""
_KNOWN_ANSWERS = tuple(Answers)
_ANSWERS = f"the answers in a history are {names(_KNOWN_ANSWERS)}"


def with_inlined_media(
    conversations: Iterator[Conversation], source: str | None, *, keeps_urls: bool = False
) -> Iterator[Conversation]:
    """The conversations with their media as ``data:`` URIs; those of several are read at once.

    *source*: the input file; paths may be relative to its folder.  *keeps_urls*: http(s) URLs stay as they are.

    Raises:
        BadDataset: A medium can't be read.
    """
    from aiperf.sdk.media import MediaReader  # threads, only for such an endpoint

    reader = MediaReader(None if source is None else Path(source).parent, keeps_urls=keeps_urls)

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
    if conversation.alone or conversation.streams:
        why = "its turns are sent without history" if conversation.alone else "it starts others: give their messages as before"
        raise BadDataset(f"conversation {conversation.id!r} has silent turns, and {why}")
    if any(turn.keeps is not None for turn in conversation.turns):
        why = "keeps a number of the messages before a turn"
        raise BadDataset(f"conversation {conversation.id!r} has silent turns, and {why}: give their messages as before")
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


def _check_problem(turn: Turn, where: str) -> None:
    """
    Raises:
        BadDataset: Its settings can't yield to the user's, or the number of its repeat is none.
    """
    named = isinstance(turn.settings, Mapping) and all(isinstance(name, str) for name in turn.settings)
    if not named:
        shown = repr(turn.settings)
        shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
        raise BadDataset(f"{where} has settings that are no fields of a body: {shown}", "give a dictionary of names and values")
    if turn.settings and turn.payload is not None:
        why = "which is sent as it is and yields to nothing"
        raise BadDataset(f"{where} has settings beside a whole body (payload), {why}", "put them into the body, or drop it")
    if turn.repeat is not None and (type(turn.repeat) is not int or turn.repeat < 0):
        raise BadDataset(f"{where} has the repeat {turn.repeat!r}", "repeats of a problem are numbered from 0")


def _check_recorded(recorded_ms: tuple[float, float], where: str) -> None:
    """
    Raises:
        BadDataset: The times aren't finite, or the end comes before the start.
    """
    start_ms, end_ms = recorded_ms
    if not (math.isfinite(start_ms) and math.isfinite(end_ms) and start_ms <= end_ms):
        raise BadDataset(f"{where} was recorded from {start_ms} ms to {end_ms} ms", "give finite times, the end not first")


def check(conversation: Conversation, can: Capabilities, kind: str) -> None:
    """
    Raises:
        BadDataset: The endpoint of the type *kind*, which has the capabilities *can*, can't send the conversation.
    """
    where = f"conversation {conversation.id!r}"
    if not conversation.turns:
        raise BadDataset(f"{where} has no turns that send a request")
    if not can.verbatim and has_items(conversation):
        raise BadDataset(
            f"{where} has tools or verbatim messages, and the endpoint type {kind!r} can't send them",
            "use an endpoint type with the capability verbatim (chat)",
        )
    if conversation.streams:
        for fault in faults(conversation.streams, len(conversation.turns)):
            raise BadDataset(f"{where}: {fault}")
        if conversation.alone:
            raise BadDataset(f"{where} starts others, and its turns are sent without history", "give a reset to each turn")
    earlier = conversation.opening or any(turn.before for turn in conversation.turns)
    if earlier and not can.multi_turn:
        raise BadDataset(
            f"{where} has earlier messages, and the endpoint type {kind!r} takes no history", "use --endpoint-type chat"
        )
    if len(conversation.turns) > 1 and not conversation.alone and not can.multi_turn:
        raise BadDataset(
            f"{where} has {len(conversation.turns)} turns, and the endpoint type {kind!r} sends single turns only",
            "use an endpoint type with a history (chat), or a data set with one turn per conversation",
        )
    accepted = can.media_in
    for index, turn in enumerate(conversation.turns):
        for media in turn.media:
            if media.kind not in accepted:
                takes = f"takes {names(accepted)}" if accepted else "takes text alone"
                raise BadDataset(
                    f"turn {index} of {where} has {media.kind}, and the endpoint type {kind!r} {takes}",
                    f"drop the row, or use an endpoint type that takes {media.kind} (aiperf plugins endpoints NAME)",
                )
        if turn.keeps is not None and (turn.keeps < 0 or conversation.answers == Answers.LIVE):
            why = "below 0" if turn.keeps < 0 else "beside live answers, whose number only the run knows"
            raise BadDataset(f"turn {index} of {where} keeps {turn.keeps} messages, {why}", "use reset, or authored answers")
        if turn.recorded_ms is not None:
            _check_recorded(turn.recorded_ms, f"turn {index} of {where}")
        if turn.settings or turn.repeat is not None:
            _check_problem(turn, f"turn {index} of {where}")
        if "tools" in turn.extra and can.verbatim:
            check_tools(turn.extra["tools"], f"turn {index} of {where}")
        for name, value in turn.headers.items():
            try:
                check_header_name(name)
                check_header_value(name, value)
            except ConfigError as error:
                raise BadDataset(f"turn {index} of {where}: {error.message}", *error.hints) from error
