"""Tool calls of answers, in the form of chat completions: ``{"id", "function": {"name", "arguments"}}``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from aiperf.sdk.model import ToolCall


def arguments_text(arguments: Any) -> str:
    """Arguments as a text: as sent, or the JSON of an object; "" for None."""
    return arguments if isinstance(arguments, str) else "" if arguments is None else msgspec.json.encode(arguments).decode()


def called(identity: Any, name: Any, arguments: Any) -> ToolCall:
    """The call of these fields, of which a server may send anything."""
    identity, name = (text if isinstance(text, str) else "" for text in (identity, name))
    return ToolCall(identity, name, arguments_text(arguments))


def tool_calls(items: Iterable[Any]) -> list[ToolCall]:
    """The calls of the items that have a function, each item whole."""
    found = ((item, item.get("function")) for item in items if isinstance(item, dict))
    return [
        called(item.get("id"), function.get("name"), function.get("arguments"))
        for item, function in found if isinstance(function, dict)
    ]  # fmt: skip


__all__ = ["arguments_text", "called", "tool_calls"]
