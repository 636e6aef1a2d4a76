"""What a read of a shared connection hides: segments, and since when they may have come."""

from __future__ import annotations

from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING

from aiperf.sdk.transport import HIDDEN_BITS
from aiperf_http2 import DataReceived, Event
from aiperf_transport_sockets.counts import data_segments, unread_bytes

if TYPE_CHECKING:
    from aiperf_transport_http2.wire import Wire

MOST_AGE_NS = 1 << 42
"""The longest time since the read before that goes into the journal: above an hour."""


def hidden_of(wire: Wire, events: list[Event], read_ns: int) -> int:
    """``hidden`` of the last read, which brought these *events*; 0 where no piece of an answer stands before the last one."""
    pieces = any(type(event) is DataReceived for event in events[:-1])
    return merged_segments(wire, read_ns) if pieces else 0


def merged_segments(wire: Wire, read_ns: int) -> int:
    """Segments that no read of their own accounts for, with the time since which they may have come.

    Other exchanges have read the socket since the read before of each.
    """
    if wire.local:  # nothing is counted: all but the last may have come earlier
        hidden = 1
    elif wire.transport.reader is not None:
        hidden = wire.hidden
    elif (segments := data_segments(wire.sock)) is None:
        return 0
    else:
        hidden = max(0, segments - wire.segments - wire.reads)
        if not unread_bytes(wire.fd):  # else what came since the read would be missing in the next count
            wire.segments, wire.reads = segments, 0
    if 0 < hidden < 1 << HIDDEN_BITS:
        age_ns = _since_read_before(wire, read_ns)
        hidden |= (age_ns if 0 < age_ns < MOST_AGE_NS else 0) << HIDDEN_BITS
    return hidden


def _since_read_before(wire: Wire, read_ns: int) -> int:
    """Ns from the last segment of the read before to *read_ns*: segments come in their order.

    Not from the read itself: on a busy machine a segment with an earlier stamp may reach the socket behind it.
    """
    kernel_ns, before_ns = wire.before
    if kernel_ns:
        return read_ns - (monotonic_ns() - (time_ns() - kernel_ns))
    return read_ns - (before_ns or wire.connected_ns)
