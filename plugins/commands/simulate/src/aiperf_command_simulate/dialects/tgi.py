"""Text Generation Inference: ``/generate`` and ``/generate_stream``, the tokens one by one."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from aiperf_command_simulate.dialect import (
    Ask,
    Dialect,
    Opened,
    Piece,
    ServerSentEvents,
    Usage,
    Writer,
    check_lengths,
    decoded,
    to_json,
)
from aiperf_command_simulate.http1 import Request

_MADE = 100
"""Tokens of an answer whose request names no length."""


class _Parameters(Struct, frozen=True):
    max_new_tokens: int | None = None
    details: bool = False
    decoder_input_details: bool = False


class _Body(Struct):
    inputs: str
    parameters: _Parameters = _Parameters()
    model: str = ""


_read = msgspec.json.Decoder(_Body)
_FINISH = {"stop": "eos_token", "length": "length"}


class _Frame(ServerSentEvents):
    """TGI writes no space behind ``data:``."""

    def __call__(self, data: bytes, name: bytes = b"") -> bytes:
        return super().__call__(data, name).replace(b"data: ", b"data:", 1)


class _TgiWriter(Writer):
    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._texts: list[str] = []
        self._prompt = 0

    def begin(self, prompt_tokens: int) -> bytes:
        self._prompt = prompt_tokens
        return b""

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        self._texts.append(piece.text)
        number = len(self._texts)
        event: dict[str, Any] = {
            "index": number,
            "token": {"id": number, "text": piece.text, "logprob": -0.5, "special": False},
            "generated_text": None,
            "details": None,
        }
        if piece.finish is not None:
            event["generated_text"] = "".join(self._texts)
            counts = {"generated_tokens": usage.completion, "input_length": self._prompt} if usage is not None else {}
            event["details"] = {"finish_reason": _FINISH.get(piece.finish, piece.finish), **counts, "seed": None}
        return self.frame(to_json(event))

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        (piece,) = pieces
        answer: dict[str, Any] = {"generated_text": piece.text}
        wanted: _Parameters = self.opened.ask.own
        if wanted.details and usage is not None:
            prefill = [{"id": at, "text": "", "logprob": None} for at in range(usage.prompt * wanted.decoder_input_details)]
            finish = _FINISH.get(piece.finish or "", piece.finish)
            answer["details"] = {"finish_reason": finish, "generated_tokens": usage.completion, "prefill": prefill}
        return to_json(answer)


class Tgi(Dialect):
    paths: ClassVar[tuple[str, ...]] = ("/generate", "/generate_stream")
    done = None
    framing = _Frame

    def claims(self, request: Request) -> bool:
        return request.path.endswith("_stream") or b'"inputs"' in request.body

    def read(self, request: Request) -> Ask:
        asked = decoded(_read, request, "generate request of TGI")
        ask = Ask(
            model=asked.model,
            prompts=(asked.inputs.encode(),),
            stream=request.path.rstrip("/").endswith("_stream"),
            continuous_usage=True,
            max_tokens=asked.parameters.max_new_tokens or _MADE,
            own=asked.parameters,
        )
        return check_lengths(ask)

    def writer(self, opened: Opened) -> Writer:
        return _TgiWriter(opened)

    def error(self, message: str, kind: str, status: int) -> bytes:
        return to_json({"error": message, "error_type": kind})


ROUTES = (Tgi(),)
