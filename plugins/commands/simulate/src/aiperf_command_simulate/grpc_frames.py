"""Messages of gRPC as they stand in a stream."""

from __future__ import annotations

import gzip

from aiperf_http2.grpc import CONTENT_TYPE, framed

from aiperf_command_simulate.faults import Faults


class GrpcFrames:
    """A message behind its length; with the fault ``compressed`` it is marked as compressed, and is with gzip."""

    content_type = CONTENT_TYPE

    def __init__(self, lines: str, faults: Faults) -> None:
        self._compressed = faults.compressed

    def __call__(self, data: bytes, name: bytes = b"") -> bytes:
        if self._compressed is None:
            return framed(data)
        data = gzip.compress(data) if self._compressed == "gzip" else data
        return b"\x01" + framed(data)[1:]

    def keep_alive(self) -> bytes:
        return b""
