"""Prompts as token ids, answers as letters."""

from __future__ import annotations

import msgspec
from aiperf import BadResponse, Capabilities, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.endpoint import Prompt, in_band_error, unreadable
from msgspec import Struct


class _Asked(Struct):
    ids: list[int]


class _Said(Struct):
    said: str


_read_asked, _read_said = msgspec.json.Decoder(_Asked).decode, msgspec.json.Decoder(_Said).decode


class Numbers(Endpoint):
    capabilities = Capabilities(path="/numbers", produces_tokens=True, tokenizes_input=True, takes_ids=True)

    def encode(self, turn: Turn) -> HttpRequest:
        body = {"model": turn.model, "ids": turn.ids, "end": turn.end_id, "most": turn.max_tokens, **turn.extra}
        return HttpRequest("/numbers", msgspec.json.encode(body))

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        try:
            return Prompt(ids=_read_asked(request.body).ids)
        except msgspec.DecodeError:
            return None

    def decode(self, event: bytes) -> Delta | None:
        try:
            return Delta(text=_read_said(event).said)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            wrong: BadResponse | None = in_band_error(event)
            raise wrong or unreadable("numbers", event, error) from error
