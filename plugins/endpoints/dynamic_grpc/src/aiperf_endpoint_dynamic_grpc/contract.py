"""A service for the conformance suite: the simulator's echo.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import BadResponse, Turn
from aiperf.sdk.asking import Reply
from aiperf.testing import EndpointContract
from aiperf_rpc.protos import echo

from aiperf_endpoint_dynamic_grpc import DynamicGrpc
from aiperf_endpoint_dynamic_grpc.options import DynamicGrpcOptions

DESCRIPTORS = Path(__file__).with_name("echo.binpb")


class DynamicGrpcContract(EndpointContract):
    endpoint = DynamicGrpc(DynamicGrpcOptions(grpc_method="aiperf.simulate.Echo/Down", grpc_descriptors=DESCRIPTORS))
    turn = Turn(extra={"messages": [{"text": "a b"}]}, row_extra={"messages": [{"text": "a b"}]})
    transcript = (echo.Said(text="a").SerializeToString(), echo.Said(text="b", number=1).SerializeToString())
    answer = '{"text": "a"}\n{"text": "b", "number": "1"}\n'
    ready = (Reply(200, messages=(b"\x08\x01",)),)
    garbage = (b"\x0a\xff", b"\xff\xfe\x00", b"\x00")

    def test_an_error_in_band_is_a_bad_response_in_the_servers_words(self) -> None:
        with pytest.raises(BadResponse, match="busy"):  # a call says it by its status
            self.endpoint.trailers({"grpc-status": "14", "grpc-message": "busy"})

    def test_the_same_turn_gives_the_same_bytes(self) -> None:
        other = DynamicGrpc(self.endpoint.options)  # the usual extra fields are none of the message
        assert self.endpoint.encode(self.turn) == other.encode(self.turn)
