"""The parts of a request's time on the wire.

The parts follow each other without gap or overlap: blocked, name lookup, connecting, sending, waiting, receiving.  They add
up to the total exactly, in integers of ns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from aiperf import Column, Metric, RecordBatch, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Part(Metric):
    """A span of time; the console shows it only with the other parts, on request."""

    unit = Unit.NANOSECONDS
    display: Unit | None = Unit.MILLISECONDS
    group = "HTTP trace"


class HttpBlocked(_Part):
    """From the start until connecting began or a connection was free: waiting for the pool, and lost first attempts."""

    tag = "http_req_blocked"
    title = "HTTP Blocked"
    order = 2000

    def column(self, batch: RecordBatch) -> Column:
        # Parts that a transport counts in parallel (a lookup for two attempts) can exceed the whole time.
        rest = _ready(batch) - _lookup(batch) - batch["connect_ns"] - batch["tls_ns"]
        return np.maximum(rest, 0)


class HttpDnsLookup(_Part):
    """Name lookup of the server; 0 where the name was known."""

    tag = "http_req_dns_lookup"
    title = "HTTP DNS Lookup"
    short = "DNS"
    order = 2010

    def column(self, batch: RecordBatch) -> Column:
        return _lookup(batch)


class HttpConnecting(_Part):
    """Opening a connection, TLS handshake included; 0 on an open connection."""

    tag = "http_req_connecting"
    title = "HTTP Connecting"
    order = 2020
    needs = ("http_req_blocked", "http_req_dns_lookup")

    def column(self, batch: RecordBatch) -> Column:
        return _ready(batch) - batch["http_req_blocked"] - batch["http_req_dns_lookup"]


class HttpTlsHandshaking(_Part):
    """TLS handshake within connecting; 0 without TLS and on an open connection."""

    tag = "http_req_tls_handshaking"
    title = "HTTP TLS Handshaking"
    short = "TLS"
    order = 2025
    needs = ("http_req_connecting",)

    def column(self, batch: RecordBatch) -> Column:
        return np.minimum(batch["tls_ns"], batch["http_req_connecting"])


class HttpSending(_Part):
    """From the ready connection until the last byte of the request was handed to the kernel."""

    tag = "http_req_sending"
    title = "HTTP Sending"
    order = 2030

    def column(self, batch: RecordBatch) -> Column:
        return _handed_over(batch) - batch["connected_ns"]


class HttpWaiting(_Part):
    """From the handed-over request until the first bytes of the answer's body."""

    tag = "http_req_waiting"
    title = "HTTP Waiting (TTFB)"
    short = "TTFB"
    order = 2040

    def column(self, batch: RecordBatch) -> Column:
        return batch["first_byte_ns"] - _handed_over(batch)


class HttpReceiving(_Part):
    """From the first bytes of the body until the last; 0 for an answer in one read."""

    tag = "http_req_receiving"
    title = "HTTP Receiving"
    order = 2050

    def column(self, batch: RecordBatch) -> Column:
        return batch["last_byte_ns"] - batch["first_byte_ns"]


class HttpConnectionReused(_Part):
    """1 on an open connection, else 0: the mean is the share."""

    tag = "http_req_connection_reused"
    title = "HTTP Connection Reused"
    unit = Unit.RATIO
    display = None
    order = 2060
    larger_is_better = True

    def column(self, batch: RecordBatch) -> Column:
        return batch["reused"]


class HttpDataSent(_Part):
    """Bytes of the request's body."""

    tag = "http_req_data_sent"
    title = "HTTP Data Sent"
    unit = Unit.BYTES
    display = Unit.KILOBYTES
    order = 2070

    def column(self, batch: RecordBatch) -> Column:
        return batch["bytes_sent"]


class HttpDataReceived(_Part):
    """Bytes of the answer's body."""

    tag = "http_req_data_received"
    title = "HTTP Data Received"
    unit = Unit.BYTES
    display = Unit.KILOBYTES
    order = 2090

    def column(self, batch: RecordBatch) -> Column:
        return batch["bytes_received"]


class HttpChunksReceived(_Part):
    """Number of reads of the answer's body."""

    tag = "http_req_chunks_received"
    title = "HTTP Chunks Received"
    unit = Unit.COUNT
    display = None
    order = 2100

    def column(self, batch: RecordBatch) -> Column:
        return batch["reads"]


class HttpConnectionOverhead(_Part):
    """Time before the connection was ready: blocked, name lookup and connecting."""

    tag = "http_req_connection_overhead"
    title = "HTTP Connection Overhead"
    order = 2110
    needs = ("http_req_blocked", "http_req_dns_lookup", "http_req_connecting")

    def column(self, batch: RecordBatch) -> Column:
        return _sum(batch, self.needs)


class HttpDuration(_Part):
    """Time on the connection: sending, waiting and receiving."""

    tag = "http_req_duration"
    title = "HTTP Duration (excl. conn)"
    order = 2120
    needs = ("http_req_sending", "http_req_waiting", "http_req_receiving")

    def column(self, batch: RecordBatch) -> Column:
        return _sum(batch, self.needs)


class HttpTotal(_Part):
    """From the start to the last bytes: the request latency of an answer in one read."""

    tag = "http_req_total"
    title = "HTTP Total Time"
    order = 2130
    needs = ("http_req_connection_overhead", "http_req_duration")

    def column(self, batch: RecordBatch) -> Column:
        return _sum(batch, self.needs)


def _ready(batch: RecordBatch) -> NDArray[np.float64]:
    """From the start to the ready connection."""
    return batch["connected_ns"] - batch["started_ns"]


def _lookup(batch: RecordBatch) -> NDArray[np.float64]:
    return np.minimum(batch["dns_ns"], _ready(batch))


def _handed_over(batch: RecordBatch) -> NDArray[np.float64]:
    """The instant at which the kernel had the request.

    A server may answer at once, or before it has read everything: then the kernel's stamp of the answer is earlier than the
    worker's next reading of the clock.
    """
    return np.minimum(batch["sent_end_ns"], batch["first_byte_ns"])


def _sum(batch: RecordBatch, tags: tuple[str, ...]) -> NDArray[np.float64]:
    total: NDArray[np.float64] = np.sum([batch[tag] for tag in tags], axis=0)
    return total
