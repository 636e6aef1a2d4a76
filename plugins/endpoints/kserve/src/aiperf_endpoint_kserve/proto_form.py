"""The protocol over gRPC: requests and answers as protocol buffers.

Only processes that encode or read such messages import this module: protocol buffers take 40 ms.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from aiperf import BadResponse
from aiperf_rpc.pool import DecodeError
from aiperf_rpc.protos.kserve import ModelInferRequest, ModelInferResponse, ModelStreamInferResponse
from aiperf_rpc.wire import WireError, field_numbers

from aiperf_endpoint_kserve.json_form import chosen_output
from aiperf_endpoint_kserve.tensors import Tensor, raw

_SHORT = 128
"""Lengths below it are one byte."""
_STREAMED = 2
"""The last field of ModelStreamInferResponse."""


def body(model: str, tensors: Sequence[Tensor]) -> bytes:
    """The message of an inference: raw contents, one for each input."""
    request = ModelInferRequest(model_name=model, raw_input_contents=[raw(each) for each in tensors])
    for each in tensors:
        request.inputs.add(name=each.name, datatype=each.datatype, shape=each.shape)
    return request.SerializeToString(deterministic=True)


def prompt_texts(message: bytes) -> list[str] | None:
    """The texts of the input ``text_input`` of a request; None where the bytes are no request."""
    try:
        request = ModelInferRequest.FromString(message)
    except DecodeError:
        return None
    for tensor, contents in zip(request.inputs, request.raw_input_contents, strict=False):
        if tensor.name == "text_input":
            return [text.decode("utf-8", "replace") for text in _pieces(contents)]
    return None


def _pieces(contents: bytes) -> list[bytes]:
    """The texts of raw contents, each behind its length.

    Raises:
        struct.error: The contents end inside a length.
    """
    pieces, at = [], 0
    while at < len(contents):
        (length,) = struct.unpack_from("<I", contents, at)
        pieces.append(contents[at + 4 : at + 4 + length])
        at += 4 + length
    return pieces


class MessageTexts:
    """The text of each message of one answer: ModelStreamInferResponse of Triton, ModelInferResponse of others.

    Bytes with a field above 2 are a ModelInferResponse.  What an answer is shows with its first message that has outputs.

    Messages of a stream differ as a rule in their text alone.  Of those below 128 bytes the first one is read whole; others
    with the same bytes before the text, and with right lengths, have their text at the same place: a quarter of the time.
    """

    def __init__(self, wanted: str | None) -> None:
        self._wanted = wanted
        self._plain: bool | None = None
        self._head = b""
        self._begin = 0

    def __call__(self, message: bytes) -> str | None:
        """The text; None where the message has no outputs.

        Raises:
            BadResponse: It is no such message, an error, or lacks the wanted output.
        """
        begin, size = self._begin, len(message)
        if begin and size < _SHORT and message.startswith(self._head, 2) and message[:2] == b"\x12%c" % (size - 2):
            length = size - begin
            if message[begin - 5 : begin] == b"%c%c\0\0\0" % (length + 4, length):
                try:
                    return message[begin:].decode()
                except UnicodeDecodeError:
                    return message[begin:].decode("utf-8", "replace")
        return self._read(message)

    def _read(self, message: bytes) -> str | None:
        try:
            plain = self._plain
            if plain is None:
                plain = max(field_numbers(message), default=0) > _STREAMED
            if plain:
                response = ModelInferResponse.FromString(message)
            else:
                streamed = ModelStreamInferResponse.FromString(message)
                if streamed.error_message:
                    raise BadResponse(streamed.error_message, raw=message)
                response = streamed.infer_response
        except (DecodeError, WireError) as error:
            raise BadResponse("kserve: not a message of this protocol", raw=message, unreadable=True) from error
        if not response.outputs:
            return None
        self._plain = plain
        chosen = chosen_output([(each.name, each.datatype) for each in response.outputs], self._wanted, message)
        contents = response.raw_output_contents
        if not contents:
            return b"".join(response.outputs[chosen].contents.bytes_contents).decode("utf-8", "replace")
        if chosen >= len(contents):
            raise BadResponse("kserve: an output of the answer has no contents", raw=message)
        try:
            pieces = _pieces(contents[chosen])
        except struct.error as error:
            raise BadResponse("kserve: the answer's output is no text", raw=message, unreadable=True) from error
        self._learn(message, contents[-1], alone=len(contents) == len(pieces) == 1)
        return b"".join(pieces).decode("utf-8", "replace")

    def _learn(self, message: bytes, contents: bytes, *, alone: bool) -> None:
        """Keep what stands before the text, where the message is short and ends with it."""
        begin = len(message) - len(contents) + 4
        short = alone and not self._plain and len(message) < _SHORT
        if short and message.endswith(b"2%c%b" % (len(contents), contents)) and message[1] == len(message) - 2:
            self._head, self._begin = message[2 : begin - 5], begin
