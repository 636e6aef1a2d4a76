"""A bidirectional call of gRPC: the prompt word by word, as someone would say it, and an answer that begins meanwhile."""

from __future__ import annotations

from aiperf import BadResponse, Capabilities, Delta, Endpoint, HttpRequest, Part, Turn

PAUSE_S = 0.02
_TEXT = 0x0A
"""Field 1 of the messages, a text (protocol buffers); the words are shorter than 128 bytes."""


class Dialogue(Endpoint):
    capabilities = Capabilities(
        path="/aiperf.simulate.Echo/Both", streaming=True, produces_tokens=True, tokenizes_input=True,
        schemes={"grpc": "http2", "grpcs": "http2", "http": "http2"}, url="grpc://localhost:9000",
    )  # fmt: skip

    def encode(self, turn: Turn) -> HttpRequest:
        words = [word.encode()[:127] for word in turn.text.split()] or [b""]
        parts = tuple(
            Part(bytes((_TEXT, len(word))) + word, after_s=PAUSE_S if number else 0.0) for number, word in enumerate(words)
        )
        return HttpRequest(self.path(streaming=True), b"", content_type="application/grpc", parts=parts)

    def decode(self, event: bytes) -> Delta | None:
        if not event:
            return None
        if event[0] != _TEXT or len(event) < 2 + event[1]:
            raise BadResponse(f"dialogue: a message without a text: {event[:80]!r}", raw=event)
        return Delta(text=event[2 : 2 + event[1]].decode() + " ")
