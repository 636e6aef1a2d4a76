"""Receive stamps: the operating system's, on all sockets of a transport."""

from __future__ import annotations

import socket

from aiperf.sdk.environment import socket_options

from aiperf_transport_sockets.counts import SO_TIMESTAMPNS


class Stamping:
    """Asks for receive stamps.  on: they are *wanted*, and this machine has them.  options: of each socket of the transport."""

    def __init__(self, *, wanted: bool) -> None:
        self.on = wanted and SO_TIMESTAMPNS != 0
        self.options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), *socket_options()]
        if self.on:
            self.options.append((socket.SOL_SOCKET, SO_TIMESTAMPNS, 1))
        self._first: socket.socket | None = None

    def open(self) -> None:
        """Have stamps from the first read on."""
        if self.on:
            # Linux enables stamping globally with the first socket that asks, and lazily: keep such a socket open.
            self._first = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._first.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def close(self) -> None:
        if self._first is not None:
            self._first.close()
            self._first = None


__all__ = ["Stamping"]
