"""OpenAI's Responses, with answers that later requests continue."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from aiperf_command_simulate.dialect import (
    Ask,
    AskError,
    Dialect,
    Opened,
    Piece,
    Usage,
    Writer,
    chat_line,
    check_lengths,
    content_bytes,
    decoded,
    to_json,
)
from aiperf_command_simulate.http1 import Request

_MOST_STORED = 10_000
"""Answers that a later request can go on from."""
_ITEM_KINDS = {"reasoning": "rs", "message": "msg", "function_call": "fc"}


class _Body(Struct):
    model: str
    input: str | list[dict[str, Any]]
    instructions: str | list[dict[str, Any]] | None = None
    max_output_tokens: int | None = None
    previous_response_id: str | None = None
    stream: bool | None = None
    store: bool | None = None
    tools: list[dict[str, Any]] | None = None
    ignore_eos: bool | None = None
    background: bool | None = None


_read = msgspec.json.Decoder(_Body)


class _Writer(Writer):
    """Items in order: reasoning, then a message or a call."""

    def __init__(self, opened: Opened, store: AnswerStore) -> None:
        super().__init__(opened)
        self._store = store
        self._events = 0
        self._items: list[dict[str, Any]] = []
        self._open = ""
        self._text = ""
        self._finish: str | None = None

    def _event(self, event: str, **fields: Any) -> bytes:
        data = to_json({"type": event, "sequence_number": self._events, **fields})
        self._events += 1
        return self.frame(data, event.encode())

    def _response(self, status: str, usage: Usage | None) -> dict[str, Any]:
        opened = self.opened
        return {
            "id": f"resp_{opened.number:010d}", "object": "response", "created_at": opened.created_s, "model": opened.model,
            "status": status, "error": None, "instructions": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "metadata": {}, "output": self._items, "parallel_tool_calls": True, "tool_choice": "auto",
            "tools": [], "temperature": 1.0, "top_p": 1.0, "usage": None if usage is None else _counts(usage),
        }  # fmt: skip

    def begin(self, prompt_tokens: int) -> bytes:
        told = self._response("in_progress", None)
        return self._event("response.created", response=told) + self._event("response.in_progress", response=told)

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        self._finish = piece.finish
        events = b""
        if piece.reasoning:
            events += self._more("reasoning", "response.reasoning_text.delta", piece.reasoning)
        if piece.text:
            events += self._more("message", "response.output_text.delta", piece.text)
        if piece.call:
            events += self._more("function_call", "response.function_call_arguments.delta", piece.call)
        return events

    def _place(self) -> dict[str, Any]:
        place = {"item_id": self._id(self._open), "output_index": len(self._items)}
        return place if self._open == "function_call" else {**place, "content_index": 0}

    def _id(self, kind: str) -> str:
        return f"{_ITEM_KINDS[kind]}_{self.opened.number:010d}"

    def _item(self, kind: str, text: str, status: str) -> dict[str, Any]:
        item: dict[str, Any] = {"id": self._id(kind), "type": kind, "status": status}
        if kind == "function_call":
            return {**item, "call_id": f"call_{self.opened.number:010d}", "name": self.opened.call, "arguments": text}
        if kind == "reasoning":
            return {**item, "summary": [], "content": [{"type": "reasoning_text", "text": text}] if text else []}
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
        return {**item, "role": "assistant", "content": [part] if text else []}

    def _more(self, kind: str, name: str, text: str) -> bytes:
        events = b""
        if kind != self._open:
            events = self._ended("completed")
            self._open, self._text = kind, ""
            item = self._item(kind, "", "in_progress")
            events += self._event("response.output_item.added", output_index=len(self._items), item=item)
            if kind == "message":
                part = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
                events += self._event("response.content_part.added", **self._place(), part=part)
        self._text += text
        extra: dict[str, Any] = {"logprobs": []} if kind == "message" else {}
        return events + self._event(name, **self._place(), delta=text, **extra)

    def _ended(self, status: str) -> bytes:
        """The ends of the open item."""
        kind, text, place = self._open, self._text, self._place() if self._open else {}
        if not kind:
            return b""
        item = self._item(kind, text, status)
        if kind == "message":
            part = item["content"][0]
            events = self._event("response.output_text.done", **place, text=text, logprobs=[])
            events += self._event("response.content_part.done", **place, part=part)
        elif kind == "reasoning":
            events = self._event("response.reasoning_text.done", **place, text=text)
        else:
            events = self._event("response.function_call_arguments.done", **place, arguments=text, name=item["name"])
        events += self._event("response.output_item.done", output_index=len(self._items), item=item)
        self._items.append(item)
        self._open = ""
        return events

    def closing(self, usage: Usage | None) -> bytes:
        status = "incomplete" if self._finish == "length" else "completed"
        events = self._ended(status)
        response = self._response(status, usage)
        self._store.keep(response["id"], self.opened.ask, response["output"])
        return events + self._event(f"response.{status}", response=response)

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        (piece,) = pieces
        status = "incomplete" if piece.finish == "length" else "completed"
        texts = {"reasoning": piece.reasoning, "message": piece.text, "function_call": piece.call}
        self._items = [self._item(kind, text, status) for kind, text in texts.items() if text]
        response = self._response(status, usage)
        self._store.keep(response["id"], self.opened.ask, response["output"])
        return to_json(response)


def _counts(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt, "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.completion, "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
    }  # fmt: skip


class AnswerStore:
    """The conversations behind the last answers, as prompt bytes, by the answers' ids."""

    def __init__(self) -> None:
        self._prompts: OrderedDict[str, bytes] = OrderedDict()

    def keep(self, name: str, ask: Ask, items: list[dict[str, Any]]) -> None:
        if ask.own:
            self._prompts[name] = ask.prompts[0] + b"".join(map(_line, items))
            if len(self._prompts) > _MOST_STORED:
                self._prompts.popitem(last=False)

    def prompt(self, name: str) -> bytes:
        """The conversation up to this answer.

        Raises:
            AskError: There is none.
        """
        if name not in self._prompts:
            raise AskError(f"Response with id {name!r} not found.")
        return self._prompts[name]


def _line(item: dict[str, Any]) -> bytes:
    """An item as prompt bytes: a message as a chat's line, anything else as JSON."""
    if item.get("type", "message") == "message" and isinstance(item.get("role"), str):
        return chat_line(item["role"], content_bytes(item.get("content")))
    return to_json(item)


class Responses(Dialect):
    paths: ClassVar[tuple[str, ...]] = ("/v1/responses",)
    reasons = True
    done = None

    def __init__(self) -> None:
        self._store = AnswerStore()

    def read(self, request: Request) -> Ask:
        asked = decoded(_read, request, "responses request")
        if asked.background:
            raise AskError("background is not served here")
        lines = [to_json(asked.tools)] if asked.tools else []
        if asked.instructions:
            lines.append(chat_line("system", content_bytes(asked.instructions)))
        if asked.previous_response_id is not None:
            lines.append(self._store.prompt(asked.previous_response_id))
        if isinstance(asked.input, str):
            lines.append(chat_line("user", asked.input.encode()))
        else:
            lines += map(_line, asked.input)
        tool = asked.tools[0].get("name") if asked.tools else None
        return check_lengths(Ask(
            model=asked.model, prompts=(b"".join(lines),), stream=bool(asked.stream), max_tokens=asked.max_output_tokens,
            chat=True, ignore_eos=bool(asked.ignore_eos), tool=tool if isinstance(tool, str) else None, own=asked.store,
        ))  # fmt: skip

    def writer(self, opened: Opened) -> Writer:
        return _Writer(opened, self._store)


ROUTES = (Responses(),)
