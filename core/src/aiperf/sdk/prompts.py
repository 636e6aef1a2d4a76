"""What counts as input tokens of a JSON body, whatever API it is of: an endpoint's ``prompt_of`` in one call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from aiperf.sdk.endpoint import Prompt

_TEXT_PARTS = (None, "text", "input_text", "output_text", "thinking", "tool_use", "server_tool_use", "tool_result")
_FLAT = ("prompt", "input", "inputs", "query", "text_input", "input_ids", "token_ids", "text", "texts")
"""Fields with the whole input; the first one that a body has counts."""
_PASSAGES = ("passages", "texts", "documents")


def prompt_of(body: bytes) -> Prompt | None:
    """The texts and token ids of *body* that count as its input; None where it is no JSON, or has none of the known fields.

    Of messages and items: texts, tool calls and their results; before them instructions and system texts, behind them the
    tools.  Of rankings: the query and its passages.  Of other bodies: the first known field (``prompt``, ``input``,
    ``inputs``, ``query``, ``text_input``, ``input_ids``…).  Media count as media.
    """
    try:
        sent = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # a payload of a data set may be anything
        return None
    if not isinstance(sent, dict):
        return None
    for key in ("messages", "input"):
        items = sent.get(key)
        if isinstance(items, list) and (key == "messages" or any("role" in item or "type" in item for item in _objects(items))):
            head = [*_content(sent.get("instructions")), *_content(sent.get("system"))]
            texts = [text for item in _objects(items) for text in _of_item(item)]
            return Prompt([*head, *texts, *(text for tool in _objects(sent.get("tools")) for text in _of_tool(tool))])
    if "query" in sent and any(key in sent for key in _PASSAGES):
        return Prompt([*_named(sent["query"]), *_named(next(sent[key] for key in _PASSAGES if key in sent))])
    value = next((sent[key] for key in _FLAT if key in sent), None)
    return None if value is None else _flat(value)


def _flat(value: Any) -> Prompt | None:
    """Of a text, texts, ids, lists of ids, or tensors by name."""
    if isinstance(value, str):
        return Prompt([value])
    if not isinstance(value, list):
        return None
    tensors = [tensor.get("data") for tensor in _objects(value) if tensor.get("name") == "text_input"]
    parts = [part for data in tensors if isinstance(data, list) for part in data] if tensors else value
    inner = [token for part in parts if isinstance(part, list) for token in part]
    ids = [token for token in (*parts, *inner) if type(token) is int]
    return Prompt([part for part in parts if isinstance(part, str)], ids)


def _named(value: Any) -> list[str]:
    """A text, an object with ``text``, or a list of either."""
    values = value if isinstance(value, list) else [value]
    texts = (one.get("text") if isinstance(one, dict) else one for one in values)
    return [text for text in texts if isinstance(text, str)]


def _of_item(item: dict[str, Any]) -> Iterator[str]:
    """A message, or an item of another kind: a call of a tool, or its result."""
    yield from _content(item.get("content"))
    for call in _objects(item.get("tool_calls")):
        yield from _fields(call.get("function"), "name", "arguments")
    yield from _fields(item.get("function_call"), "name", "arguments")
    if "role" not in item:
        yield from _fields(item, "name", "arguments", "input")
        yield from _content(item.get("output"))


def _content(content: Any) -> Iterator[str]:
    """A text, or the texts of its parts and blocks."""
    if isinstance(content, str):
        yield content
    for part in _objects(content):
        kind = part.get("type")
        if kind not in _TEXT_PARTS:
            continue
        if kind in ("tool_use", "server_tool_use"):
            yield from _fields(part, "name", "input")
        elif kind == "tool_result":
            yield from _content(part.get("content"))
        else:
            yield from _fields(part, "thinking" if kind == "thinking" else "text")


def _of_tool(tool: dict[str, Any]) -> Iterator[str]:
    """A tool, and the function in it: servers accept both forms."""
    for described in (tool.get("function"), tool):
        yield from _fields(described, "name", "description", "parameters", "input_schema")


def _fields(values: Any, *keys: str) -> Iterator[str]:
    """The values of the keys: text as it is, objects as compact JSON."""
    for key in keys if isinstance(values, dict) else ():
        value = values.get(key)
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            yield msgspec.json.encode(value).decode()


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())


__all__ = ["prompt_of"]
