"""A chat API with a JSON object in each line of its answers, and a way of its own for the first turn."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from aiperf import Capabilities, Delta, Endpoint, HttpRequest, Turn, in_band_error, unreadable
from aiperf.sdk.framing import Framing, Lines
from msgspec import Struct


class _Said(Struct, frozen=True, gc=False):
    content: str = ""
    thinking: str = ""


class _Line(Struct, gc=False):
    """A line of a stream, or a whole answer."""

    model: str
    response: str = ""
    message: _Said = _Said()
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None


_read = msgspec.json.Decoder(_Line).decode


class Llamas(Endpoint):
    """``POST /MODEL/generate``, and ``POST /MODEL/chat`` for turns with a history."""

    capabilities = Capabilities(
        path="/{model}/generate", streaming=True, produces_tokens=True, tokenizes_input=True, multi_turn=True
    )
    framing: ClassVar[type[Framing]] = Lines
    repeats_envelope = True

    def probe(self) -> Turn:
        return Turn(("Are you there?",), max_tokens=1)

    def encode(self, turn: Turn) -> HttpRequest:
        body: dict[str, Any] = {"model": turn.model, "stream": turn.stream, "options": {"num_predict": turn.max_tokens or -1}}
        body.update(turn.extra)
        if not turn.history:
            return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode({**body, "prompt": turn.text}))
        messages = [{"role": message.role, "content": message.text} for message in turn.messages]
        return HttpRequest("/{model}/chat", msgspec.json.encode({**body, "messages": messages}), {"X-Llama": "again"})

    def decode(self, event: bytes) -> Delta | None:
        try:
            line = _read(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise in_band_error(event) or unreadable("llamas", event, error) from error
        if not line.done:
            return Delta(line.response or line.message.content, line.message.thinking)
        usage = {"prompt_tokens": line.prompt_eval_count, "completion_tokens": line.eval_count}
        return Delta(line.response or line.message.content, line.message.thinking, usage=usage, finish=line.done_reason)
