"""What servers say of their decoding in an answer's ``metrics``, as endpoints hand it to metrics (spec: metrics §13).

The names are in the package ``aiperf-endpoint-chat`` and loaded from there; a package that uses them declares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

__all__ = ["NO_METRICS", "SERVER_TIMING", "SPEC_DECODE", "ServerTiming", "server_metrics"]

__getattr__ = door(__name__, {}, packages=dict.fromkeys(__all__, "aiperf_endpoint_chat.spec_decode"))

if TYPE_CHECKING:
    from aiperf_endpoint_chat.spec_decode import NO_METRICS, SERVER_TIMING, SPEC_DECODE, ServerTiming, server_metrics
