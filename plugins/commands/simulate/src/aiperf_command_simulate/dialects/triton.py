"""Triton's generate extension.  A model whose name ends in ``-echo`` repeats the text so far with every event."""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec import Struct

from aiperf_command_simulate.dialect import Ask, Dialect, Opened, Piece, Usage, Writer, check_lengths, decoded, to_json
from aiperf_command_simulate.http1 import Request


class _Body(Struct):
    text_input: str | list[str]
    max_tokens: int | None = None
    min_tokens: int | None = None


_read = msgspec.json.Decoder(_Body)


class _GenerateWriter(Writer):
    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._echoes = opened.model.endswith("-echo")
        self._so_far = ""

    def _answer(self, text: str) -> bytes:
        return to_json({"model_name": self.opened.model, "model_version": "1", "text_output": text})

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        self._so_far += piece.text
        return self.frame(self._answer(self._so_far if self._echoes else piece.text))

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        return self._answer("".join(piece.text for piece in pieces))


class Generate(Dialect):
    paths: ClassVar[tuple[str, ...]] = ("/v2/models/{model}/generate", "/v2/models/{model}/generate_stream")
    done = None

    def read(self, request: Request) -> Ask:
        asked = decoded(_read, request, "generate request of Triton")
        texts = [asked.text_input] if isinstance(asked.text_input, str) else asked.text_input
        ask = Ask(
            model=request.variables["model"],
            prompts=(" ".join(texts).encode(),),
            stream=request.path.rstrip("/").endswith("_stream"),
            max_tokens=asked.max_tokens,
            min_tokens=asked.min_tokens or 0,
        )
        return check_lengths(ask)

    def writer(self, opened: Opened) -> Writer:
        return _GenerateWriter(opened)

    def error(self, message: str, kind: str, status: int) -> bytes:
        return to_json({"error": message})


ROUTES = (Generate(),)
