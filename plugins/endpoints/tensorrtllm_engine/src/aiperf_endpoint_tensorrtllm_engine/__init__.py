"""TensorRT-LLM in the worker's own process: token ids in, token ids out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from aiperf import BadResponse, Capabilities, ConfigError, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.asking import Ask
from aiperf.sdk.endpoint import Prompt, Reader, in_band_error, unreadable
from msgspec import Struct

from aiperf_endpoint_tensorrtllm_engine.options import EngineOptions

OUTPUT_LEN = 256
"""Tokens of an answer where no length is asked for."""


class Ids(Struct):
    """A line of an answer: its new ids.

    prompt_tokens: ids of the request; None where the line doesn't say.  finish: why the answer ended, in its last line.
    """

    output_ids: list[int]
    prompt_tokens: Any = None
    finish: str | None = None


class _Asked(Struct):
    input_ids: list[int]


_read_ids, _read_asked = msgspec.json.Decoder(Ids).decode, msgspec.json.Decoder(_Asked).decode


class IdsReader(Reader):
    """Counts the ids of an answer; nothing is made into text."""

    def __init__(self) -> None:
        self._count = 0

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        return list(map(self._delta, events))

    def _delta(self, event: bytes) -> Delta | None:
        try:
            said = _read_ids(event)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            wrong: BadResponse | None = in_band_error(event)
            raise wrong or unreadable("tensorrtllm_engine", event, error) from error
        self._count += len(said.output_ids)
        usage = {"prompt_tokens": said.prompt_tokens, "completion_tokens": self._count}
        if type(said.prompt_tokens) is int and said.prompt_tokens >= 0:  # the reader of counts notices what is none
            usage["total_tokens"] = said.prompt_tokens + self._count
        return Delta(usage=usage, finish=said.finish, items=len(said.output_ids))


class TensorrtllmEngine(Endpoint[EngineOptions]):
    """What the engine gets is a JSON object with its input tensors; other fields are sampling parameters of the library."""

    capabilities = Capabilities(
        streaming=True, produces_tokens=True, tokenizes_input=True, takes_ids=True, counts_tokens=True,
        service_kind="tensorrtllm_engine", schemes={"engine": "trtllm"}, takes=("set_end_id", "apply_chat_template"),
    )  # fmt: skip

    def __init__(self, options: EngineOptions | None = None) -> None:
        super().__init__(options or EngineOptions())
        self.templates_ids = self.options.apply_chat_template

    def encode(self, turn: Turn) -> HttpRequest:
        options, most = self.options, turn.max_tokens
        if options.deterministic and most is None:
            raise ConfigError("--output-tokens-mean-deterministic fixes a length, and none is asked for", "add --osl")
        length = OUTPUT_LEN if most is None else most
        body: dict[str, Any] = {
            "input_ids": turn.ids, "input_lengths": [len(turn.ids)], "request_output_len": [length], "streaming": True,
        }  # fmt: skip
        if options.deterministic:
            body["min_length"] = [length]
        if options.set_end_id:
            if turn.end_id is None and turn.ids:
                raise ConfigError("set_end_id wants the id of the end, and the tokenizer doesn't know it", "drop set_end_id")
            body["end_id"] = [turn.end_id]
        return HttpRequest("", msgspec.json.encode({**body, **turn.extra}))

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        try:
            return Prompt(ids=_read_asked(request.body).input_ids)
        except (msgspec.DecodeError, UnicodeDecodeError):  # a data set's payload
            return None

    def unready(self, ask: Ask) -> str | None:
        return None  # it is loaded before the load begins

    def reader(self) -> Reader:
        return IdsReader()


__all__ = ["TensorrtllmEngine"]
