"""Requests of several messages, from the endpoint to the transport's shape."""

from __future__ import annotations

import msgspec
import pytest
from aiperf.rundir.shapes import StoredShape, same_shape, shape_of
from aiperf.sdk.endpoint import Capabilities, Endpoint, encoded
from aiperf.sdk.model import HttpRequest, Part, Turn, joined

PARTS = (Part(b"one"), Part(b"", 0.5), Part(b"three", 0.001))


class Talker(Endpoint):
    capabilities = Capabilities(path="/talk")

    def __init__(self, parts: tuple[Part, ...] = PARTS, body: bytes = b"") -> None:
        super().__init__()
        self._parts, self._body = parts, body

    def encode(self, turn: Turn) -> HttpRequest:
        return HttpRequest("/talk", self._body, parts=self._parts)


def test_the_body_of_a_request_is_its_parts() -> None:
    request = encoded(Talker(), Turn(("x",)))
    assert (request.body, request.parts) == (b"onethree", PARTS)
    assert joined(request) == request


def test_a_payload_takes_the_place_of_the_parts() -> None:
    request = encoded(Talker(), Turn(("x",), payload=b"whole"))
    assert (request.body, request.parts) == (b"whole", ())


@pytest.mark.parametrize("after_s", [-1.0, float("inf"), float("nan")])
def test_a_wait_that_is_none_is_refused(after_s: float) -> None:
    with pytest.raises(ValueError, match="after_s"):
        encoded(Talker((Part(b"a", after_s),)), Turn(("x",)))


def test_a_body_beside_other_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="not all of them joined"):
        encoded(Talker(body=b"else"), Turn(("x",)))


def test_shapes_have_sizes_and_waits_and_survive_their_file() -> None:
    shape = shape_of(encoded(Talker(), Turn(("x",))))
    assert shape.parts == ((3, 0), (0, 500_000_000), (5, 1_000_000))
    assert msgspec.json.decode(msgspec.json.encode(shape), type=StoredShape) == shape


def test_requests_of_other_sizes_have_other_shapes() -> None:
    one, other = (HttpRequest("/talk", b"", parts=(Part(data),)) for data in (b"a", b"bb"))
    assert same_shape(one, one) and not same_shape(one, other)
    assert not same_shape(one, HttpRequest("/talk", b"a", headers=one.headers))
