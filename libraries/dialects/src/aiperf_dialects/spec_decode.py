"""What servers say of their decoding in an answer's ``metrics``, as endpoints hand it to metrics (spec: metrics §13)."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

SPEC_DECODE = "speculative_decoding"
"""Name of the text of an answer (``Endpoint.texts``): JSON as the server sent it."""
SERVER_TIMING = "server_timing"
"""Likewise: an object of the server's own times (:class:`ServerTiming`)."""
NO_METRICS = Raw(b"")
"""The ``metrics`` of an answer without any."""
_NOTHING = (b"", b"null", b"{}", b"[]")


class ServerTiming(Struct, omit_defaults=True):
    """The times that vLLM gives an answer (``--enable-per-request-metrics``), counted from when it left the queue; None: not
    given.  generation_time_ms: from the first token to the last.  tokens_per_second: with the time to the first token.
    """

    time_to_first_token_ms: float | None = None
    generation_time_ms: float | None = None
    queue_time_ms: float | None = None
    mean_itl_ms: float | None = None
    tokens_per_second: float | None = None


class _Metrics(Struct):
    speculative_decoding: Raw = NO_METRICS


_read = msgspec.json.Decoder(_Metrics).decode
_read_timing = msgspec.json.Decoder(ServerTiming).decode


def server_metrics(metrics: Raw) -> dict[str, str] | None:
    """The ``Delta.extra`` of an answer with these ``metrics``; None where they say neither of the two."""
    texts: dict[str, str] = {}
    try:
        said = bytes(_read(metrics).speculative_decoding)
        if said not in _NOTHING:
            texts[SPEC_DECODE] = said.decode()
        timing = msgspec.json.encode(_read_timing(metrics))
        if timing not in _NOTHING:
            texts[SERVER_TIMING] = timing.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # any other object of this name
        pass
    return texts or None


__all__ = ["NO_METRICS", "SERVER_TIMING", "SPEC_DECODE", "ServerTiming", "server_metrics"]
