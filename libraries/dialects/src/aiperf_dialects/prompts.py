"""What counts as input tokens of a JSON body, whatever API it is of: ``prompt_of`` and ``chat_of`` in a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from aiperf.sdk.endpoint import ChatPrompt, Prompt

_USES, _RESULT = ("tool_use", "server_tool_use"), "tool_result"
_TEXT_PARTS = (None, "text", "input_text", "output_text", "thinking", *_USES, _RESULT)
_FLAT = ("prompt", "input", "inputs", "query", "text_input", "input_ids", "token_ids", "text", "texts")
"""Fields with the whole input; the first one that a body has counts."""
_PASSAGES = ("passages", "texts", "documents")


def prompt_of(body: bytes) -> Prompt | None:
    """The texts and token ids of *body* that count as its input; None where it is no JSON, or has none of the known fields.

    Of messages and items: texts, tool calls and their results; before them instructions and system texts, behind them the
    tools.  Of rankings: the query and its passages.  Of other bodies: the first known field (``prompt``, ``input``,
    ``inputs``, ``query``, ``text_input``, ``input_ids``…).  Media count as media.
    """
    sent = _document(body)
    if sent is None:
        return None
    items = _items(sent)
    if items is not None:
        texts = [text for item in _objects(items) for text in _of_item(item)]
        return Prompt([*_head(sent), *texts, *_of_tools(sent)])
    if "query" in sent and any(key in sent for key in _PASSAGES):
        return Prompt([*_named(sent["query"]), *_named(next(sent[key] for key in _PASSAGES if key in sent))])
    value = next((sent[key] for key in _FLAT if key in sent), None)
    return None if value is None else _flat(value)


def chat_of(body: bytes) -> ChatPrompt | None:
    """The chat of *body* as a chat template takes it; None where it has no messages.

    Instructions and system texts are the first message.  Texts of one message are joined with spaces, its media left out.
    Calls of tools and their results are those of ``messages``, whatever the API: ``tool_calls`` with arguments that are
    objects, where they are the JSON of one, and messages of the role ``tool``.
    """
    sent = _document(body)
    items = None if sent is None else _items(sent)
    if sent is not None and isinstance(sent.get("input"), str):
        items = [{"role": "user", "content": sent["input"]}]
    if sent is None or items is None:
        return None
    head = [*_head(sent)]
    messages: list[dict[str, Any]] = [{"role": "system", "content": " ".join(head)}] if head else []
    for item in _objects(items):
        if "role" in item:
            messages += _of_role(item)
        elif str(item.get("type")).endswith("_output"):
            messages.append(_result(" ".join(_content(item.get("output"))), item.get("call_id")))
        elif "name" in item:
            call = _call(item.get("call_id"), item["name"], item.get("arguments", item.get("input")))
            if not (messages and "tool_calls" in messages[-1]):
                messages.append({"role": "assistant", "content": "", "tool_calls": []})
            messages[-1]["tool_calls"].append(call)
    return ChatPrompt(messages, [*_of_tools(sent)])


def _of_role(item: dict[str, Any]) -> list[dict[str, Any]]:
    """A message; before it the results of tools that it has among its blocks."""
    content = item.get("content")
    blocks = [*_objects(content)]
    text = content if isinstance(content, str) else " ".join(
        _content([block for block in blocks if block.get("type") not in (*_USES, _RESULT)])
    )  # fmt: skip
    results = [
        _result(" ".join(_content(block.get("content"))), block.get("tool_use_id"))
        for block in blocks if block.get("type") == _RESULT
    ]  # fmt: skip
    calls = [
        _call(call.get("id"), function.get("name"), function.get("arguments"))
        for call in (*_objects(item.get("tool_calls")), {"function": item.get("function_call")})
        if isinstance(function := call.get("function"), dict)
    ]
    calls += [_call(block.get("id"), block.get("name"), block.get("input")) for block in blocks if block.get("type") in _USES]
    if results and not (text or calls):
        return results
    further = {name: item[name] for name in ("tool_call_id", "name") if isinstance(item.get(name), str)}
    message = {"role": item["role"], "content": text, **({"tool_calls": calls} if calls else {}), **further}
    return [*results, message]


def _call(identity: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """A call, with its arguments as a template takes them: an object, else the text that they are."""
    if isinstance(arguments, str):
        read = _document(arguments.encode("utf-8", "surrogatepass"))
        arguments = arguments if read is None else read
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return {"id": identity, **call} if isinstance(identity, str) else call


def _result(text: str, identity: Any) -> dict[str, Any]:
    result = {"role": "tool", "content": text}
    return {**result, "tool_call_id": identity} if isinstance(identity, str) else result


def _document(body: bytes) -> dict[str, Any] | None:
    """The object that *body* is, None for anything else: a payload of a data set may be anything."""
    try:
        sent = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return sent if isinstance(sent, dict) else None


def _items(sent: dict[str, Any]) -> list[Any] | None:
    """The messages or items; None where there are none."""
    for key in ("messages", "input"):
        items = sent.get(key)
        if isinstance(items, list) and (key == "messages" or any("role" in item or "type" in item for item in _objects(items))):
            return items
    return None


def _head(sent: dict[str, Any]) -> Iterator[str]:
    """The instructions and system texts beside the messages."""
    yield from _content(sent.get("instructions"))
    yield from _content(sent.get("system"))


def _flat(value: Any) -> Prompt | None:
    """The texts and ids of a text, texts, ids, lists of ids, or tensors by name."""
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
        if kind in _USES:
            yield from _fields(part, "name", "input")
        elif kind == _RESULT:
            yield from _content(part.get("content"))
        else:
            yield from _fields(part, "thinking" if kind == "thinking" else "text")


def _of_tools(sent: dict[str, Any]) -> Iterator[str]:
    for tool in _objects(sent.get("tools")):
        yield from _of_tool(tool)


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


__all__ = ["chat_of", "prompt_of"]
