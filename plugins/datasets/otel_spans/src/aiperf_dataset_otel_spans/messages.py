"""Messages of OpenTelemetry's GenAI conventions as OpenAI's chat API writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

_ROLES = {"developer": "system"}
_KINDS = ("image", "audio", "video")
_SAMPLING = {
    name: name for name in ("temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed")
} | {"stop_sequences": "stop"}  # fmt: skip
_PARTS_KEY = "parts"


class SpanError(ValueError):
    """A span can't be made a request; the message says why, without its place."""


class Chat:
    """Makes messages of parts.

    media_in: kinds of media that the endpoint takes.  strict: a part of another kind is an error, else it is left out.
    left_out: number of parts that were, by kind.
    """

    def __init__(self, media_in: Sequence[str] = (), *, strict: bool = False) -> None:
        self._media_in, self._strict = media_in, strict
        self.left_out: Counter[str] = Counter()

    def messages(self, attributes: dict[str, Any]) -> list[dict[str, Any]]:
        """Messages of ``gen_ai.system_instructions`` and ``gen_ai.input.messages``; [] where the span has no input messages.

        Raises:
            SpanError: They are of another form.
        """
        given = decoded(attributes.get("gen_ai.input.messages"), "gen_ai.input.messages")
        if not given:
            return []
        messages = [made for message in _objects(given, "gen_ai.input.messages") for made in self._made(message)]
        return [*self._system(attributes.get("gen_ai.system_instructions")), *messages]

    def _system(self, given: Any) -> list[dict[str, Any]]:
        """The system message: of parts, or of a text that is no JSON."""
        if given in (None, "", []):
            return []
        try:
            parts = decoded(given, "gen_ai.system_instructions")
        except SpanError:
            parts = None
        if isinstance(given, str) and not isinstance(parts, list):
            return [{"role": "system", "content": given}]
        return list(self._made({"role": "system", _PARTS_KEY: parts}))

    def _made(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A message, and the messages of role ``tool`` that stand in it."""
        role, parts = message.get("role"), message.get(_PARTS_KEY)
        if not isinstance(role, str) or not role:
            raise SpanError("a message has no role")
        if parts is None and "content" in message:  # as OpenAI writes it
            yield message
            return
        role, draft = _ROLES.get(role, role), _Draft()
        parts, empty = _objects(parts, "the parts of a message"), True
        for part in parts:
            if part.get("type") != "tool_call_response":
                self._add(draft, part)
                continue
            if draft:
                yield draft.message(role)
                draft = _Draft()
            empty = False
            result = part["response"] if "response" in part else part.get("result")
            yield {"role": "tool", "tool_call_id": part.get("id"), "content": as_text(result)}
        if draft or empty:
            yield draft.message(role)

    def _add(self, draft: _Draft, part: dict[str, Any]) -> None:
        kind = part.get("type")
        if kind == "text":
            draft.content.append({"type": "text", "text": as_text(part.get("content"))})
        elif kind in ("reasoning", "thinking"):
            thought = part["thinking"] if "thinking" in part else part.get("content")
            draft.reasoning.append(as_text(thought))
        elif kind == "tool_call":
            function = {"name": part.get("name"), "arguments": as_text(part.get("arguments"))}
            draft.calls.append({"id": part.get("id"), "type": "function", "function": function})
        elif (medium := self._medium(part)) is not None:
            draft.content.append(medium)
        elif self._strict:
            raise SpanError(f"a message has a part of the type {kind!r}")
        else:
            self.left_out[str(kind)] += 1

    def _medium(self, part: dict[str, Any]) -> dict[str, Any] | None:
        """The part of a chat for a medium; None where it is none, or the endpoint doesn't take it."""
        mime = part.get("mime_type") or ""
        kind = part.get("modality") or str(mime).partition("/")[0]
        if kind not in _KINDS or kind not in self._media_in:
            return None
        url, data = part.get("uri"), part.get("content")
        if part.get("type") == "blob" and isinstance(data, str):
            if kind == "audio":
                return {"type": "input_audio", "input_audio": {"data": data, "format": str(mime).partition("/")[2] or "wav"}}
            url = f"data:{mime or f'{kind}/*'};base64,{data}"
        if part.get("type") not in ("blob", "uri") or not isinstance(url, str) or kind == "audio":
            return None
        return {"type": f"{kind}_url", f"{kind}_url": {"url": url}}


class _Draft:
    """A message that is being made."""

    def __init__(self) -> None:
        self.content: list[dict[str, Any]] = []
        self.reasoning: list[str] = []
        self.calls: list[dict[str, Any]] = []

    def __bool__(self) -> bool:
        return bool(self.content or self.reasoning or self.calls)

    def message(self, role: str) -> dict[str, Any]:
        plain = all(part["type"] == "text" for part in self.content)
        content: Any = "".join(part["text"] for part in self.content) if plain else self.content
        message: dict[str, Any] = {"role": role, "content": content}
        if self.reasoning:
            message["reasoning_content"] = "".join(self.reasoning)
        if self.calls:
            message["tool_calls"] = self.calls
        return message


def older_messages(attributes: dict[str, Any], events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages of earlier conventions: ``gen_ai.prompt.N.role``, and events of the span."""
    numbered: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        prefix, _, rest = key.removeprefix("gen_ai.prompt.").partition(".")
        if key.startswith("gen_ai.prompt.") and prefix.isdecimal() and rest in ("role", "content"):
            numbered.setdefault(int(prefix), {})[rest] = as_text(value)
    messages = [{"role": "user", "content": "", **numbered[number]} for number in sorted(numbered)]
    for event in events if not messages else ():
        messages += _of_event(str(event.get("name")), event.get("attributes") or {})
    return messages


def _of_event(name: str, attributes: dict[str, Any]) -> list[dict[str, Any]]:
    role = name.removeprefix("gen_ai.").removesuffix(".message")
    if name == "gen_ai.content.prompt":
        given = attributes.get("gen_ai.prompt")
        try:
            parsed = decoded(given, "gen_ai.prompt")
        except SpanError:
            parsed = None
        if isinstance(parsed, list) and all(isinstance(each, dict) and "role" in each for each in parsed):
            return parsed
        return [{"role": "user", "content": as_text(given)}] if given else []
    if name != f"gen_ai.{role}.message" or role not in ("system", "user", "assistant", "tool"):
        return []
    message: dict[str, Any] = {"role": role, "content": as_text(attributes.get("content") or "")}
    if role == "assistant" and (calls := decoded(attributes.get("tool_calls"), "tool_calls")):
        message["tool_calls"] = calls
    if role == "tool":
        message["tool_call_id"] = attributes.get("id")
    return [message]


def tools(attributes: dict[str, Any], *, strict: bool = False) -> list[dict[str, Any]]:
    """``gen_ai.tool.definitions`` in OpenAI's form; others than functions are left out, or an error where *strict*.

    Raises:
        SpanError: They are of another form.
    """
    found = []
    for tool in _objects(decoded(attributes.get("gen_ai.tool.definitions"), "gen_ai.tool.definitions") or [], "tools"):
        if tool.get("type") == "function" and isinstance(tool.get("function"), dict):
            found.append(tool)
        elif tool.get("type") == "function":
            keys = ("name", "description", "parameters")
            function = {key: tool.get(key) for key in keys if strict or tool.get(key) is not None}
            found.append({"type": "function", "function": function})
        elif strict:
            raise SpanError(f"a tool has the type {tool.get('type')!r}")
    return found


def sampling(attributes: dict[str, Any], names: Sequence[str] = tuple(_SAMPLING)) -> dict[str, Any]:
    """Fields of the body that were asked for, ``gen_ai.request.temperature`` and so on; *names*: behind ``gen_ai.request.``.

    Raises:
        SpanError: One is no number, or the stop sequences are no texts.
    """
    extra: dict[str, Any] = {}
    for name in names:
        value = attributes.get(f"gen_ai.request.{name}")
        if value in (None, []):
            continue
        if name == "stop_sequences":
            good = isinstance(value, list) and all(isinstance(each, str) for each in value)
        else:
            good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
        if not good:
            raise SpanError(f"gen_ai.request.{name} is {value!r}")
        extra[_SAMPLING[name]] = value
    return extra


def tokens(attributes: dict[str, Any], name: str) -> int | None:
    """A number of tokens, 0 or more; None where the span has none.

    Raises:
        SpanError: It is another value.
    """
    value = attributes.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SpanError(f"{name} is {value!r}; it must be a whole number of tokens")
    return value


def decoded(value: Any, name: str) -> Any:
    """The value, or that of its JSON text.

    Raises:
        SpanError: The text is no JSON.
    """
    try:
        return msgspec.json.decode(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, RecursionError) as error:
        raise SpanError(f"{name} is no JSON: {error}") from error


def as_text(value: Any) -> str:
    """A text as it is, None as "", other values as JSON."""
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()


def _objects(value: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise SpanError(f"{name} must be a list of objects")
    return value


__all__ = ["Chat", "SpanError", "as_text", "decoded", "older_messages", "sampling", "tokens", "tools"]
