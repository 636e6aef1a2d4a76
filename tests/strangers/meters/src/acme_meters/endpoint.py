"""Text completions whose answers carry the energy spent so far."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from aiperf import Capabilities, Delta, Endpoint, HttpRequest, Turn, in_band_error, unreadable
from aiperf.sdk.endpoint import Reader

from acme_meters.units import JOULES, PIECES

JOULES_PER_LETTER = 500.0


class _Choice(msgspec.Struct):
    text: str = ""


class _Answer(msgspec.Struct):
    choices: list[_Choice]


class Meter(Reader):
    joules = 0.0

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        return list(map(self._read, events))

    def _read(self, event: bytes) -> Delta | None:
        if event == b"[DONE]":
            return None
        try:
            answer = msgspec.json.decode(event, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise in_band_error(event) or unreadable("metered", event, error) from error
        text = "".join(choice.text for choice in answer.choices)
        self.joules += JOULES_PER_LETTER * len(text)
        return Delta(text=text, items=bool(text), extra={"joules": self.joules} if text else None)


class Metered(Endpoint):
    capabilities = Capabilities(path="/v1/completions", streaming=True, produces_tokens=True, tokenizes_input=True)
    numbers = {"joules": JOULES, "items": PIECES}

    def encode(self, turn: Turn) -> HttpRequest:
        body = {"model": turn.model, "prompt": turn.text, "stream": turn.stream, "max_tokens": turn.max_tokens, **turn.extra}
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body))

    def reader(self) -> Reader:
        return Meter()
