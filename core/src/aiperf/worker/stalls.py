"""Where requests hang: a line for a log at debug level, while none of a worker's requests ends."""

from __future__ import annotations

from collections import Counter

from aiperf.redaction import without_secrets
from aiperf.sdk.transport import Exchange, Transport
from aiperf.worker.clock import NS_PER_S
from aiperf.worker.in_flight import InFlight

DEBUG = 10
"""Level of the log, as :mod:`logging` has it."""
_AFTER_NS = 5 * NS_PER_S
"""Without an end, until there is a line; and between two lines."""


class Stalls:
    """Watches the requests of worker *index*."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._ended, self._since_ns, self._told_ns = -1, 0, 0

    def line(self, in_flight: InFlight, transport: Transport, now_ns: int) -> str | None:
        """What holds the requests in flight; None unless none ended for 5 s, and then every 5 s."""
        ended = in_flight.completed + in_flight.errors
        if ended != self._ended or not in_flight.open:
            self._ended, self._since_ns, self._told_ns = ended, now_ns, now_ns
            return None
        if now_ns - self._told_ns < _AFTER_NS:
            return None
        self._told_ns = now_ns
        stages = Counter(map(_stage, in_flight.open.values()))
        oldest = min(in_flight.open.values(), key=lambda exchange: exchange.started_ns)
        waited_s, age_s = (now_ns - self._since_ns) / NS_PER_S, (now_ns - oldest.started_ns) / NS_PER_S
        parts = [
            f"worker {self._index}: no request has ended for {waited_s:.0f} s",
            f"{len(in_flight.open):,} in flight: {', '.join(f'{count:,} {stage}' for stage, count in stages.items())}",
            f"the oldest, {oldest.request_id} to {without_secrets(oldest.shape.url)}, is {_stage(oldest)} after {age_s:.1f} s,"
            f" {oldest.bytes_received:,} bytes received",
            f"{transport.statistics.get('opened', 0):,} connections opened",
        ]
        if in_flight.connecting.refused is not None:
            parts.append(f"the last attempt to connect failed: {in_flight.connecting.refused}")
        return "; ".join(parts)


def _stage(exchange: Exchange) -> str:
    """How far a request has come."""
    if not exchange.sent_ns:
        return "waiting to be sent" if exchange.connected_ns else "connecting"
    if not exchange.sent_end_ns:
        return "being sent"
    return "receiving" if exchange.ack_ns or exchange.bytes_received else "without an answer"
