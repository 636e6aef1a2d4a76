"""The request bodies of every conversation, before load starts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

import msgspec
from aiperf import Conversation, DatasetExporter, Target
from aiperf.sdk.exporter import visible
from aiperf.sdk.trees import authored

_END = b"\n  ]\n}"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(msgspec.Raw).decode


class Inputs(DatasetExporter):
    """``inputs.json``: ``{"data": [{"session_id": …, "payloads": [body of each turn]}]}``, one entry at a time.

    A body that isn't JSON stands as ``{"body_base64": …}``.  Each conversation of a tree has a place of its own, once.
    """

    label = "Inputs Export"
    kind = "inputs.json"
    files = {kind: "inputs.json"}
    of_data_alone = True

    def __init__(self, target: Target, options: None = None) -> None:
        super().__init__(target, options)
        self._told: set[str] = set()

    def header(self) -> bytes:
        return b'{\n  "data": ['

    def entry(self, conversation: Conversation, bodies: Sequence[bytes], *, first: bool) -> bytes:
        return self.entries([(conversation, bodies)], first=first)

    def entries(self, entries: Sequence[tuple[Conversation, Sequence[bytes]]], *, first: bool) -> bytes:
        objects = [
            b'{"session_id":' + _encode(name) + b',"payloads":[' + b",".join(map(self._shown, bodies[begin:end])) + b"]}"
            for conversation, bodies in entries
            for name, begin, end in authored(conversation.id, conversation.streams, len(bodies), self._told)
        ]
        if not objects:  # all of it came with earlier trees
            return b""
        # Formatted in the place that they have in the file, without what stands around them.
        text = visible(msgspec.json.format(b'{"data":[%b]}' % b",".join(objects), indent=2))
        return text[len(self.header()) : -len(_END)] if first else b"," + text[len(self.header()) : -len(_END)]

    def _shown(self, body: bytes) -> bytes:
        body = self.target.shown_body(body)
        try:
            _decode(body)
        except msgspec.DecodeError:
            return b'{"body_base64":"%b"}' % b64encode(body)
        return body

    def footer(self) -> bytes:
        return _END + b"\n"
