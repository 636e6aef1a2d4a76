"""The process that sends: it alone imports OpenTelemetry's SDK, and has the collector's keys."""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable

from aiperf.parts.processes import Inbox, ignore_endings, send_reply
from aiperf_uploads.process_side import reason
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData

from aiperf_exporter_otel.messages import (
    LENGTH,
    FromReducer,
    PhaseCounts,
    ReducedBatch,
    ReducerEnd,
    StreamDone,
    StreamFinish,
    StreamReady,
    StreamStart,
    StreamTrouble,
    decode_reducer,
    decode_run,
)
from aiperf_exporter_otel.sums import Sums

_PIECE_BYTES = 1 << 18
_ENDS_S = 3.0
"""Longest wait at the end until each reducer has told all."""
_BROKEN_S = 2.0
"""For the end of a sending under way, whose sums come again; and for the last one, where the one before failed."""


class _Said(logging.Handler):
    """Keeps what the SDK says last of a sending that fails."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()


class Sender:
    """Sends the sums, one sending at a time, in a thread of its own.

    tell: hears once that nothing arrives.  why: the latest sending failed; None where it arrived.
    """

    def __init__(self, start: StreamStart, sums: Sums, tell: Callable[[str], None]) -> None:
        self._start, self._sums, self._tell = start, sums, tell
        self._said = _Said()
        logger = logging.getLogger("opentelemetry")
        logger.addHandler(self._said)
        logger.propagate = False
        self._lock, self._news, self._over = threading.Lock(), threading.Event(), threading.Event()
        self._exporter = self._made(start.request_s)
        self._unsent = 0
        self._told = False
        self.why: str | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _made(self, limit_s: float) -> OTLPMetricExporter:
        return OTLPMetricExporter(endpoint=self._start.url, timeout=limit_s)

    def take(self, message: ReducedBatch | PhaseCounts, skip: int = 0) -> None:
        with self._lock:
            if isinstance(message, PhaseCounts):
                self._sums.take_counts(message)
            else:
                self._sums.take_batch(message, skip)
                self._unsent += message.count - skip
        if self._unsent >= self._start.most_records:
            self._news.set()

    def finish(self) -> None:
        """Send all, once the sending under way is over or broken off."""
        self._over.set()
        self._news.set()
        self._thread.join(_BROKEN_S)
        if self._thread.is_alive():
            self._exporter.shutdown()
            self._thread.join(_BROKEN_S)
        self._exporter = self._made(min(_BROKEN_S, self._start.request_s) if self.why else self._start.request_s)
        self._send()

    def _run(self) -> None:
        while not self._over.is_set():
            self._news.wait(self._start.interval_s)
            self._news.clear()
            if not self._over.is_set():
                self._send()

    def _send(self) -> None:
        with self._lock:
            data, self._unsent = self._sums.data(), 0
        if data is None:
            return
        self.why = self._exported(data)
        if self.why is not None and not self._told and not self._over.is_set():
            self._told = True
            self._tell(self.why)

    def _exported(self, data: MetricsData) -> str | None:
        self._said.last = ""
        try:
            if self._exporter.export(data) is MetricExportResult.SUCCESS:
                return None
        except Exception as error:  # noqa: BLE001  # of the SDK
            return reason(error)
        return reason(ValueError(self._said.last or "it was refused"))


class Reducers:
    """The sockets of reducers.  A reducer that takes the place of a dead one tells all again: what was taken is skipped."""

    def __init__(self, address: str, take: Callable[[ReducedBatch, int], None]) -> None:
        self._take = take
        self._taken: dict[int, int] = {}
        self._passed: dict[socket.socket, int] = {}
        self._parts: dict[socket.socket, bytearray] = {}
        self.ends: list[int] = []
        """Of each reducer that has told all, the requests that it had no room for."""
        self.selector = selectors.DefaultSelector()
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._door.bind(address)
        self._door.listen()
        self.selector.register(self._door, selectors.EVENT_READ, self._accept)

    def _accept(self) -> None:
        made, _ = self._door.accept()
        self._parts[made], self._passed[made] = bytearray(), 0
        self.selector.register(made, selectors.EVENT_READ, lambda: self._read(made))

    def _read(self, link: socket.socket) -> None:
        try:
            piece = link.recv(_PIECE_BYTES)
        except OSError:
            piece = b""
        if not piece:
            self.selector.unregister(link)
            link.close()
            del self._parts[link], self._passed[link]
            return
        part = self._parts[link]
        part += piece
        while len(part) >= LENGTH and len(part) >= (end := LENGTH + int.from_bytes(part[:LENGTH], "big")):
            self._heed(link, decode_reducer(bytes(part[LENGTH:end])))
            del part[:end]

    def _heed(self, link: socket.socket, message: FromReducer) -> None:
        if isinstance(message, ReducerEnd):
            self.ends.append(message.dropped)
            return
        before, taken = self._passed[link], self._taken.get(message.reducer, 0)
        self._passed[link] = passed = before + message.count
        if passed > taken:
            self._take(message, max(0, taken - before))
            self._taken[message.reducer] = passed


class Stream:
    """The loop of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._finish = False
        self._sender: Sender | None = None
        self._reducers: Reducers | None = None
        self._start: StreamStart | None = None
        self._inbox = Inbox(self._take)

    def run(self) -> None:
        while not self._finish and not self._inbox.over:
            if self._reducers is None:
                self._inbox.wait(None)
            else:
                self._turn(None)
        if self._finish and self._sender is not None and self._reducers is not None and self._start is not None:
            until_s = time.monotonic() + _ENDS_S
            while len(self._reducers.ends) < self._start.reducers and (left_s := until_s - time.monotonic()) > 0:
                self._turn(left_s)
            self._sender.finish()
            missing = self._start.reducers - len(self._reducers.ends)
            done = StreamDone(self._sender.why, sum(self._reducers.ends), missing)
            send_reply(self._descriptor, done)

    def _turn(self, wait_s: float | None) -> None:
        assert self._reducers is not None
        for key, _ in self._reducers.selector.select(wait_s):
            key.data()

    def _take(self, line: bytes) -> None:
        message = decode_run(line)
        if isinstance(message, StreamStart):
            self._begin(message)
        elif isinstance(message, StreamFinish):
            self._finish = True
        elif self._sender is not None:
            self._sender.take(message)

    def _begin(self, start: StreamStart) -> None:
        self._start = start
        sums = Sums(start.resource, start.provider, start.operation)
        self._sender = sender = Sender(start, sums, lambda why: send_reply(self._descriptor, StreamTrouble(why)))
        self._reducers = Reducers(start.address, sender.take)
        self._reducers.selector.register(0, selectors.EVENT_READ, lambda: self._inbox.wait(0.0))
        send_reply(self._descriptor, StreamReady())


if __name__ == "__main__":
    ignore_endings()
    with contextlib.suppress(KeyboardInterrupt):
        Stream(int(sys.argv[1])).run()
