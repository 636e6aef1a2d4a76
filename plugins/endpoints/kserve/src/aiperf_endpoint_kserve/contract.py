"""Recorded answers for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import ClassVar

from aiperf.sdk.asking import Reply
from aiperf.testing import EndpointContract

from aiperf_endpoint_kserve import Kserve


def _json(text: str) -> bytes:
    return (
        b'{"model_name":"echo","id":"r1","parameters":{},"outputs":[{"name":"text_output","shape":[1,1],"datatype":"BYTES",'
        b'"parameters":{"content_type":"str"},"data":["%b"]}]}' % text.encode()
    )


class KserveJsonContract(EndpointContract):
    """MLServer over HTTP."""

    endpoint = Kserve()
    replies = (Reply(200, messages=(bytes.fromhex(
        "0a046563686f1201311a06707974686f6e22160a0a746578745f696e707574120542595445531a010122160a0a6d61785f746f6b656e731205494e54"
        "33321a01012a170a0b746578745f6f7574707574120542595445531a0101"
    ),)),)  # fmt: skip
    ready = (Reply(200, messages=(b"\x08\x01",)),) * 2
    transcript: ClassVar[tuple[bytes, ...]] = (_json("hello"), _json(" big"), _json(" world"))
    answer = "hello big world"
    whole = _json("hello big world")
    silent: ClassVar[tuple[bytes, ...]] = (_json(""), b'{"model_name":"echo","outputs":[]}', b"[DONE]")
    failure = b'{"error":"busy"}'
    garbage = (*EndpointContract.garbage, b"\x0a\xff", b"\x00\x01")


class KserveContract(KserveJsonContract):
    """Triton over gRPC: ModelStreamInferResponse."""

    transcript = tuple(
        bytes.fromhex(head + b"text_output".hex() + "120542595445531a0101" + end)
        for head, end in (
            ("124e0a046563686f1201311a027231221b0a15747269746f6e5f66696e616c5f726573706f6e7365120208002a170a0b",
             "32090500000068656c6c6f"),
            ("124d0a046563686f1201311a027231221b0a15747269746f6e5f66696e616c5f726573706f6e7365120208002a170a0b",
             "32080400000020626967"),
            ("124f0a046563686f1201311a027231221b0a15747269746f6e5f66696e616c5f726573706f6e7365120208002a170a0b",
             "320a0600000020776f726c64"),
        )
    )  # fmt: skip
    whole = bytes.fromhex(
        "0a046563686f1a0272312a310a0b746578745f6f7574707574120542595445531a02010122150a0c636f6e74656e745f7479706512051a037374722a"
        "0032130f00000068656c6c6f2062696720776f726c64"
    )
    stream = None
    silent = (b"", bytes.fromhex("12270a046563686f1a027231221b0a15747269746f6e5f66696e616c5f726573706f6e736512020801"))
    failure = bytes.fromhex("0a0462757379") + bytes.fromhex("12041a027231")
