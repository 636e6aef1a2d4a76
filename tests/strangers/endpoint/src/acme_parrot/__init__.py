"""Text completions that are asked politely, in words of the person's own."""

from __future__ import annotations

import msgspec
from aiperf import Capabilities, Delta, Endpoint, HttpRequest, Turn, in_band_error, unreadable

from acme_parrot.options import ParrotOptions


class _Choice(msgspec.Struct):
    text: str = ""


class _Answer(msgspec.Struct):
    choices: list[_Choice]


class Parrot(Endpoint[ParrotOptions]):
    capabilities = Capabilities(path="/v1/completions", streaming=True, produces_tokens=True, tokenizes_input=True)

    def encode(self, turn: Turn) -> HttpRequest:
        prompt = f"{self.options.greeting} {turn.text}"
        body = {"model": turn.model, "prompt": prompt, "stream": turn.stream, "max_tokens": turn.max_tokens or 16, **turn.extra}
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body))

    def decode(self, event: bytes) -> Delta | None:
        if event == b"[DONE]":
            return None
        try:
            answer = msgspec.json.decode(event, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise in_band_error(event) or unreadable("parrot", event, error) from error
        return Delta(text="".join(choice.text for choice in answer.choices))
