"""The input tokens of a body of the chat dialect: texts of messages, tool calls and tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from aiperf.sdk.endpoint import Prompt


def prompt_of(body: bytes) -> Prompt | None:
    """The texts that count: of each message its content and tool calls, then name, description and parameters of each tool.

    None: the body is no chat.  Media count as media, not as tokens.
    """
    try:
        sent = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # a payload of the data set may be anything
        return None
    if not isinstance(sent, dict) or not isinstance(sent.get("messages"), list):
        return None
    texts = [text for message in _objects(sent["messages"]) for text in _of_message(message)]
    return Prompt([*texts, *(text for tool in _objects(sent.get("tools")) for text in _of_tool(tool))])


def _of_message(message: dict[str, Any]) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        yield content
    yield from (text for part in _objects(content) if isinstance(text := part.get("text"), str))
    for call in _objects(message.get("tool_calls")):
        function = call.get("function")
        if isinstance(function, dict):
            yield from _texts(function, "name", "arguments")


def _of_tool(tool: dict[str, Any]) -> Iterator[str]:
    """A tool, and the function in it: servers accept both forms."""
    function = tool.get("function")
    for described in (function, tool):
        if isinstance(described, dict):
            yield from _texts(described, "name", "description", "parameters")


def _texts(values: dict[str, Any], *keys: str) -> Iterator[str]:
    """The values of the keys: text as it is, objects as compact JSON."""
    for key in keys:
        value = values.get(key)
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            yield msgspec.json.encode(value).decode()


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())
