"""Options of the transport."""

from __future__ import annotations

from aiperf.sdk.options import Options, option

STREAMS = 100
"""Requests at once on a connection."""


class Http2Options(Options):
    """How requests share connections."""

    streams_per_connection: int = option("--streams-per-connection", metavar="N", default=STREAMS, ge=1,
        help="Requests at once on a connection of HTTP/2; the server's limit counts where it is lower. 1: a connection each.")
