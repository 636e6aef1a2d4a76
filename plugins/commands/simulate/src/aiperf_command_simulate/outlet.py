"""Writes to a client, at once: the instant before the call is the instant of sending."""

from __future__ import annotations

import asyncio
import os
import socket


class Outlet:
    """Where a connection writes: straight to the socket while nothing is queued.  The loop would write a whole batch later.

    TLS has a queue of its own, so its bytes go through the transport.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        sock: socket.socket = transport.get_extra_info("socket")
        self._transport = transport
        self._fd = sock.fileno() if transport.get_extra_info("sslcontext") is None else -1

    def write(self, data: bytes) -> bool:
        """Send or queue *data*; False where the client is gone, which the transport tells its protocol, too."""
        transport = self._transport
        if transport.is_closing():  # the number of the socket may be another's already
            return False
        if self._fd >= 0 and not transport.get_write_buffer_size():
            try:
                sent = os.write(self._fd, data)
            except BlockingIOError:
                sent = 0
            except OSError:
                transport.abort()
                return False
            if sent == len(data):
                return True
            data = data[sent:]
        transport.write(data)
        return True
