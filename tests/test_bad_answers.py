"""Answers that no server should give, read by every endpoint type: an error with its cause and the first bytes."""

from __future__ import annotations

from importlib import import_module

import pytest
from aiperf.registry.registry import Registry
from aiperf.sdk.framing import Lines, ServerSentEvents
from aiperf.sdk.sse import MOST_EVENT_BYTES
from aiperf.testing import EndpointContract
from aiperf_reducer_columns.reduce.answer import Answer, read_answer

HTML = b"<html><body><h1>Bad Gateway</h1></body></html>\n"


def contracts() -> dict[str, type[EndpointContract]]:
    """The contract of every endpoint type of this repository, by its name."""
    found: dict[str, type[EndpointContract]] = {}
    for plugin in Registry.discover().all("endpoints"):
        module, _, name = (plugin.contract or "").partition(":")
        if plugin.distribution.startswith("aiperf-endpoint-"):
            assert module, f"the manifest of {plugin.distribution} names no contract of {plugin.name}"
            found[plugin.name] = getattr(import_module(module), name)
    return found


def calls(kind: type[EndpointContract]) -> bool:
    """Whether the recorded answers are messages of calls; those end with a status, and may have no message at all."""
    return next(iter(kind.endpoint.capabilities.schemes), "http").startswith("grpc")


TYPES = contracts()
STREAMING = {
    name: kind for name, kind in TYPES.items()
    if kind.endpoint.capabilities.streaming and kind.endpoint.framing in (ServerSentEvents, Lines) and not calls(kind)
}  # fmt: skip


def read(kind: type[EndpointContract], *bodies: bytes, streamed: bool = True) -> Answer:
    endpoint = kind.endpoint
    reads = [(10 * at, 10 * at + 1, 0, body) for at, body in enumerate(bodies, 1)]
    return read_answer(reads, endpoint.reader, streamed=streamed, repeats=endpoint.repeats_envelope, framing=endpoint.framing)


def framed(kind: type[EndpointContract], event: bytes, name: str | None = None) -> bytes:
    if kind.endpoint.framing is Lines:
        return event + b"\n"
    return (b"event: %b\n" % name.encode() if name else b"") + b"data: %b\n\n" % event


def begun(kind: type[EndpointContract]) -> list[bytes]:
    """The first half of the recorded answer, as a stream."""
    names = kind.names or [None] * len(kind.transcript)
    half = len(kind.transcript) // 2
    return [framed(kind, event, name) for event, name in zip(kind.transcript[:half], names, strict=False)]


@pytest.mark.parametrize("name", sorted(TYPES.keys() - {"raw"}))  # raw takes any text
def test_a_page_of_a_proxy_is_an_error_with_its_first_bytes(name: str) -> None:
    answer = read(TYPES[name], HTML[:20], HTML[20:], streamed=False)
    assert answer.error is not None
    assert answer.error.raw.startswith(b"<html><body>")
    assert not answer.stamps


@pytest.mark.parametrize("name", sorted(STREAMING))
def test_an_error_in_the_middle_of_a_stream_fails_the_request(name: str) -> None:
    kind = STREAMING[name]
    answer = read(kind, *begun(kind), framed(kind, kind.failure, "error" if kind.names else None))
    assert answer.error is not None
    assert "busy" in answer.error.message


@pytest.mark.parametrize("name", sorted(name for name, kind in STREAMING.items() if kind.endpoint.framing is ServerSentEvents))
def test_an_event_with_the_name_error_fails_the_request_whatever_it_carries(name: str) -> None:
    kind = STREAMING[name]
    answer = read(kind, *begun(kind), b"event: error\ndata: out of memory\n\n")
    assert answer.error is not None
    assert (answer.error.message, answer.error.code) == ("out of memory", 502)


@pytest.mark.parametrize("name", sorted(STREAMING))
def test_an_event_of_more_than_16_mib_is_an_error(name: str) -> None:
    kind = STREAMING[name]
    start = framed(kind, kind.transcript[0]).rstrip(b"\n")
    answer = read(kind, start, bytes(MOST_EVENT_BYTES), bytes(4 << 20), b"\n\n")
    assert answer.error is not None
    assert "longer than 16 MiB" in answer.error.message
    assert answer.error.raw


@pytest.mark.parametrize("name", sorted(name for name, kind in TYPES.items() if not calls(kind)))
def test_nothing_at_all_is_no_content(name: str) -> None:
    kind = TYPES[name]
    answer = read(kind, b"\n", streamed=name in STREAMING)
    assert answer.error is not None or not answer.stamps
