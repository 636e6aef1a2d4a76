"""The chat API of Ollama: encodes messages and options; decodes lines of text, thinking, tool calls, counts and durations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from aiperf import Capabilities, Delta, Endpoint, HttpRequest, Message, Turn
from aiperf.sdk.endpoint import ChatPrompt, Prompt
from aiperf.sdk.framing import Lines
from aiperf.sdk.model import ToolCall
from aiperf_dialects.chat_messages import one_system
from aiperf_dialects.choices import reason_of
from aiperf_dialects.growing import BatchReader
from aiperf_dialects.prompts import chat_of, prompt_of
from aiperf_dialects.tool_calls import arguments_text, tool_calls
from msgspec import UNSET, Struct, UnsetType

from aiperf_endpoint_ollama.units import DURATIONS, NUMBERS

OPTIONS = frozenset((
    "num_keep", "seed", "num_predict", "top_k", "top_p", "min_p", "typical_p", "tfs_z", "repeat_last_n", "temperature",
    "repeat_penalty", "presence_penalty", "frequency_penalty", "mirostat", "mirostat_tau", "mirostat_eta", "penalize_newline",
    "stop", "num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "numa", "low_vram", "vocab_only", "use_mmap",
    "use_mlock", "draft_num_predict",
))  # fmt: skip
"""Extra inputs that stand in ``options``; all others are fields of the body."""


class Function(Struct, gc=False, frozen=True):
    name: str = ""
    arguments: Any = None


class Call(Struct, gc=False):
    function: Function = Function()


class Said(Struct, gc=False):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[Call] | None = None


class Line(Struct, gc=False):
    """A line of a stream, or a whole answer.  error: of the server, also behind lines with content."""

    message: Said | None = None
    done: bool = False
    error: Any | UnsetType = UNSET
    done_reason: Any = None
    prompt_eval_count: Any = None
    eval_count: Any = None
    total_duration: int | None = None
    load_duration: int | None = None
    prompt_eval_duration: int | None = None
    eval_duration: int | None = None


_read_object = msgspec.json.Decoder(dict[str, Any]).decode


class OllamaReader(BatchReader[Line]):
    """Reads one answer, and keeps the lines of one with tool calls for the next turn."""

    dialect, event_type = "ollama", Line

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._calls = False

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        self._lines += events
        return super().feed(events, names)

    def delta(self, event: Line, data: bytes) -> Delta | None:
        said = event.message
        if said is None or event.error is not UNSET:
            self.empty(data)
            said = said or Said()
        tool = ""
        if said.tool_calls:
            self._calls = True
            tool = "".join(f"{call.function.name}{arguments_text(call.function.arguments)}" for call in said.tool_calls)
        if not event.done:
            return Delta(said.content or "", said.thinking or "", tool)
        counts = {"prompt_tokens": event.prompt_eval_count, "completion_tokens": event.eval_count}
        usage = {name: count for name, count in counts.items() if count is not None}
        durations = {name: getattr(event, field) for field, name in DURATIONS.items()}
        extra = {name: float(duration) for name, duration in durations.items() if duration is not None}
        reason = reason_of(event.done_reason)
        return Delta(said.content or "", said.thinking or "", tool, usage or None, reason, 0, extra or None)

    def replay(self) -> Sequence[Message] | None:
        """A message with tool calls and thinking, as the server sent them; None for an answer without calls."""
        if not self._calls:
            return None
        item: dict[str, Any] = {"role": "assistant", "content": ""}
        calls: list[Any] = []
        for said in _messages(self._lines):
            item["content"] += said.get("content") or ""
            if said.get("thinking"):
                item["thinking"] = item.get("thinking", "") + said["thinking"]
            calls += said.get("tool_calls") or ()
        return [Message.of({**item, "tool_calls": calls})]

    def tool_calls(self) -> Sequence[ToolCall]:
        said = _messages(self._lines if self._calls else ())
        return tool_calls(call for message in said for call in message.get("tool_calls") or ())


def _messages(lines: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        message = _read_object(line).get("message") if line else None
        if isinstance(message, dict):
            yield message


class Ollama(Endpoint):
    """``POST /api/chat``."""

    capabilities = Capabilities(
        path="/api/chat",
        streaming=True,
        produces_tokens=True,
        tokenizes_input=True,
        media_in=("image",),
        system_message=True,
        multi_turn=True,
        verbatim=True,
        inline_media=True,
        service_kind="ollama",
        chat_template=True,
    )
    framing = Lines
    numbers = NUMBERS
    plain_prompts = True
    splices_text = True
    appends_messages = True

    def encode(self, turn: Turn) -> HttpRequest:
        options: dict[str, Any] = {} if turn.max_tokens is None else {"num_predict": turn.max_tokens}
        fields: dict[str, Any] = {}
        for name, value in turn.extra.items():
            if name == "options" and isinstance(value, dict):
                options |= value
            else:
                (options if name in OPTIONS else fields)[name] = value
        body: dict[str, Any] = {"model": turn.model, "messages": list(map(_message, one_system(turn.messages)))}
        if turn.tools:
            body["tools"] = turn.tools
        body["stream"] = turn.stream
        if options:
            body["options"] = options
        body |= fields
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body))

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def chat_of(self, request: HttpRequest) -> ChatPrompt | None:
        return chat_of(request.body)

    def reader(self) -> OllamaReader:
        return OllamaReader()


def _message(message: Message) -> dict[str, Any]:
    """A message in the API's form; pictures as base64 alone."""
    if message.item is not None:
        return message.item
    item: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.media:
        item["images"] = [media.value.partition(",")[2] or media.value for media in message.media]
    return item
