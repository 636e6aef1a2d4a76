"""Remote procedure calls as gRPC makes them: messages behind a prefix, and a status in the trailers; or JSON over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from aiperf.sdk.asking import Ask, Reply
from aiperf.sdk.endpoint import Capabilities, Endpoint
from aiperf.sdk.errors import BadResponse, ConfigError
from aiperf.sdk.model import Delta, HttpRequest, Turn

KIND = "application/acme"


class Framed(Endpoint):
    capabilities = Capabilities(
        path="/acme.Text/Generate", streaming_path="/acme.Text/GenerateStream", streaming=True, produces_tokens=True,
        tokenizes_input=True, schemes={"frames": "frames", "http": "", "https": ""}, url="frames://localhost:7000",
    )  # fmt: skip

    def _describe(self, ask: Ask) -> Reply:
        return ask(HttpRequest("/acme.Text/Describe", msgspec.msgpack.encode({"model": ask.models[0]}), content_type=KIND))

    def unready(self, ask: Ask) -> str | None:
        reply = self._describe(ask) if ask.scheme == "frames" else ask(HttpRequest("/health", b"", method="GET"))
        if reply.trailers.get("status", "0") != "0":
            return reply.trailers.get("message", "no reason")
        return None if reply.status == 200 else f"it answers with {reply.status}"

    def prepare(self, ask: Ask) -> dict[str, Any] | None:
        if ask.scheme != "frames":
            return None
        reply = self._describe(ask)
        if not reply.messages:
            raise ConfigError(f"{ask.url} does not describe its model", "use a server of acme 3 or later")
        return {"most_tokens": msgspec.msgpack.decode(reply.messages[0], type=dict[str, int])["most_tokens"]}

    def encode(self, turn: Turn) -> HttpRequest:
        text = "".join(text for message in turn.messages for text in message.texts)
        most = turn.max_tokens
        if self.prepared is not None and most is not None:
            most = min(most, self.prepared["most_tokens"])
        call = {"model": turn.model, "text": text, "max_tokens": most, **turn.extra}
        if turn.scheme.startswith("http"):  # the gateway's form of a call
            return HttpRequest("/v1/call", msgspec.json.encode({"call": self.path(streaming=turn.stream), **call}))
        return HttpRequest(self.path(streaming=turn.stream), msgspec.msgpack.encode(call), content_type=KIND)

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
