"""A connection to a socket of this machine (``unix:///run/server.sock``)."""

from __future__ import annotations

import errno
import socket

from aiperf_transport_sockets.connection import Connection
from aiperf_transport_sockets.counts import SO_TIMESTAMPNS

FULL_S = 0.002
"""Until the next attempt where the server has more connections to accept than it may have waiting."""
OF_NETWORKS = socket.SO_KEEPALIVE, SO_TIMESTAMPNS


class LocalConnection(Connection):
    """HTTP without TCP: the operating system stamps no read, and counts no segments.

    So the time of a read is when it ended, and of several events in one read all may have come earlier: they are marked.
    """

    _counted = False

    def _options(self) -> list[tuple[int, int, int]]:
        options = self.transport.stamping.options
        return [option for option in options if option[0] == socket.SOL_SOCKET and option[1] not in OF_NETWORKS]

    def _refused(self, code: int) -> None:
        if code != errno.EAGAIN or self not in self.transport.open_connections:
            super()._refused(code)
            return
        # Where TCP would send its SYN again; what takes too long is ended by `check`.
        self._close_socket()
        self._address = 0
        self.transport.loop.call_later(FULL_S, self._again)

    def _again(self) -> None:
        if self in self.transport.open_connections and self.fd < 0:
            self._dial()

    def _unstamped(self) -> None:
        """No read has a stamp, and none was promised."""

    def _merged_segments(self, events: int) -> int:
        self.transport.coalesced_reads += 1
        return events - 1
