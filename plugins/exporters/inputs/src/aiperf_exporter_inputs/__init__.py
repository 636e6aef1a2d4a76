"""The request bodies of every conversation, before load starts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

import msgspec
from aiperf import Conversation, DatasetExporter


class Inputs(DatasetExporter):
    """``inputs.json``: ``{"data": [{"session_id": …, "payloads": [body of each turn]}]}``, one entry at a time.

    A body that isn't JSON stands as ``{"body_base64": …}``.
    """

    label = "Inputs Export"
    kind = "inputs.json"
    files = {kind: "inputs.json"}

    def header(self) -> bytes:
        return b'{\n  "data": ['

    def entry(self, conversation: Conversation, bodies: Sequence[bytes], *, first: bool) -> bytes:
        name = msgspec.json.encode(conversation.id)
        whole = b'{"session_id":%b,"payloads":[%b]}' % (name, b",".join(_json(self.target.shown_body(body)) for body in bodies))
        # JSON text has no line end inside a string, so that indenting the lines changes no value.
        text = msgspec.json.format(whole, indent=2).replace(b"\n", b"\n    ")
        return (b"\n    " if first else b",\n    ") + text

    def footer(self) -> bytes:
        return b"\n  ]\n}\n"


def _json(body: bytes) -> bytes:
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except msgspec.DecodeError:
        return b'{"body_base64":"%b"}' % b64encode(body)
    return body
