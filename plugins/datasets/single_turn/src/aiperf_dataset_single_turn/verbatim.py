"""Chats and bodies that are sent as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aiperf import Message, Turn
from msgspec.structs import replace

NO_HISTORY = "messages is a chat; this endpoint type sends no history, --endpoint-type chat does"
"""Why a chat is refused by an endpoint without a history."""


def verbatim(turn: Turn) -> Turn:
    """A turn whose *extra* is a chat, with verbatim messages and tools instead; their tokens then count as they are sent."""
    extra = {**turn.extra}
    items, tools = tuple(map(Message.of, extra.pop("messages"))), extra.get("tools")
    if isinstance(tools, list) and tools and all(isinstance(tool, dict) for tool in tools):  # others are sent, too
        return replace(turn, items=items, tools=tuple(extra.pop("tools")), extra=extra)
    return replace(turn, items=items, extra=extra)


def texts_of(value: Any) -> Iterator[str]:
    """The texts of a chat or a body: contents, prompts and inputs."""
    if isinstance(value, list):
        for element in value:
            yield from texts_of(element)
    elif isinstance(value, dict):
        for key, element in value.items():
            if isinstance(element, str) and key in ("content", "text", "prompt", "input"):
                yield element
            elif isinstance(element, list | dict) and key in ("content", "messages", "prompt", "input"):
                yield from texts_of(element)
