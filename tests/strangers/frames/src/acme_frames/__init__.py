"""Remote procedure calls as gRPC makes them: messages behind a prefix, and a status in the trailers; or JSON over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from aiperf.sdk.endpoint import Capabilities, Endpoint
from aiperf.sdk.errors import BadResponse
from aiperf.sdk.model import Delta, HttpRequest, Turn


class Framed(Endpoint):
    capabilities = Capabilities(
        path="/acme.Text/Generate", streaming_path="/acme.Text/GenerateStream", streaming=True, produces_tokens=True,
        tokenizes_input=True, schemes={"frames": "frames", "http": "", "https": ""}, url="frames://localhost:7000",
    )  # fmt: skip

    def encode(self, turn: Turn) -> HttpRequest:
        text = "".join(text for message in turn.messages for text in message.texts)
        call = {"model": turn.model, "text": text, "max_tokens": turn.max_tokens, **turn.extra}
        if turn.scheme.startswith("http"):  # the gateway's form of a call
            return HttpRequest("/v1/call", msgspec.json.encode({"call": self.path(streaming=turn.stream), **call}))
        return HttpRequest(self.path(streaming=turn.stream), msgspec.msgpack.encode(call), content_type="application/acme")

    def decode(self, event: bytes) -> Delta | None:
        try:
            read = msgspec.json.decode if event[:1] == b"{" else msgspec.msgpack.decode
            said = read(event, type=dict[str, Any])
            return Delta(text=str(said["text"]))
        except (msgspec.DecodeError, KeyError) as error:
            raise BadResponse(f"framed: no message of this call: {error}", raw=event) from error

    def trailers(self, trailers: Mapping[str, str]) -> Delta | None:
        if trailers.get("status", "0") != "0":
            raise BadResponse(trailers.get("message", "no reason"), code=int(trailers["status"]), kind="CallFailed")
        return Delta(usage={"completion_tokens": int(trailers["tokens"])}) if "tokens" in trailers else None
