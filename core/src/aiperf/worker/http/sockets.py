"""TCP sockets: opening one, its readiness, and what the transport asks of it beyond sending and receiving."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import socket
import struct
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING

from aiperf.sdk.model import ErrorDetails

if TYPE_CHECKING:
    from aiperf.worker.http.connection import Connection
    from aiperf.worker.http.transport import KernelTransport, Origin

# asm-generic/socket.h; the few architectures that number it differently fall back to read stamps.
SO_TIMESTAMPNS = 35 if os.uname().machine in ("x86_64", "aarch64", "riscv64") else 0
TIMESPEC = struct.Struct("qq")
"""Ancillary data of a read where SO_TIMESTAMPNS is set: seconds and ns of the wall clock."""
_TCP_INFO_BYTES, _DATA_SEGS_IN, _DATA_SEGS_AT = 192, struct.Struct("=I"), 152
"""``tcpi_data_segs_in`` of linux/tcp.h: a u32 at byte 152."""
_BATCH = 64
"""Sockets served before the loop continues: its timers keep the due times."""

Call = Callable[[], None]


def data_segments(sock: socket.socket) -> int | None:
    """TCP data segments received so far (0.5 µs); None where the kernel does not count them."""
    if SO_TIMESTAMPNS == 0:
        return None
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    return int(_DATA_SEGS_IN.unpack_from(info, _DATA_SEGS_AT)[0]) if len(info) >= _DATA_SEGS_AT + 4 else None


def is_quiet(sock: socket.socket) -> bool:
    """Whether an idle socket is open and has nothing to read: the server may have closed it since the last loop turn."""
    try:
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False  # the end of the connection, or bytes without a request


class Dial:
    """Tries the addresses of an origin in turn.  The first that accepts gives the socket to the connection."""

    def __init__(self, transport: KernelTransport, origin: Origin, connection: Connection) -> None:
        self._transport, self._origin = transport, origin
        self._connection: Connection | None = connection
        self._sock: socket.socket | None = None
        self._address = 0
        self._began_ns = monotonic_ns()

    def attempt(self) -> None:
        family, address = self._origin.addresses[self._address]
        try:
            sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        except OSError as error:
            self._transport.loop.call_soon(self._refused, error.errno or errno.EIO)
            return
        self._sock = sock
        for level, name, value in self._transport.socket_options:
            sock.setsockopt(level, name, value)
        self._transport.opened += 1
        if (code := sock.connect_ex(address)) in (0, errno.EINPROGRESS):
            self._transport.poller.writer(sock.fileno(), self._writable)
        else:
            self._transport.loop.call_soon(self._refused, code)

    def close(self) -> None:
        """Give up.  No callback acts any more."""
        self._connection = None
        self._drop_socket()

    def _writable(self) -> None:
        connection, sock = self._connection, self._sock
        if connection is None or sock is None:
            return
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._refused(code)
            return
        try:
            sock.getpeername()
        except OSError:  # the event was for an earlier socket of this number
            return
        self._transport.poller.writer(sock.fileno(), None)
        self._connection = self._sock = None
        connection.opened(sock, monotonic_ns() - self._began_ns)

    def _refused(self, code: int) -> None:
        self._drop_socket()
        self._address += 1
        connection = self._connection
        if connection is None:
            return
        if connection.exchange is not None and self._address < len(self._origin.addresses):
            self.attempt()
        else:
            connection.fail(_description(self._origin, code))

    def _drop_socket(self) -> None:
        if self._sock is not None:
            self._transport.poller.forget(self._sock.fileno())
            self._sock.close()
            self._sock = None


def _description(origin: Origin, code: int) -> ErrorDetails:
    message = f"{origin.host}:{origin.port}: {os.strerror(code)}"
    if code in (errno.EMFILE, errno.ENFILE):
        message += "; raise the limit of open files (ulimit -n)"
    elif code == errno.EADDRNOTAVAIL:
        message += "; no local port is left (net.ipv4.ip_local_port_range, or keep connections open)"
    return ErrorDetails(message, type=type(OSError(code, "")).__name__)


class Poller:
    """Calls back for ready sockets, through an epoll of its own inside the loop's; *after* is called behind every batch.

    Two reasons not to give every socket to the loop: uvloop stops watching a socket that has an error (a reset) without
    telling anybody, and one callback for a batch of ready sockets costs less than one each.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, after: Call) -> None:
        self._loop, self._after = loop, after
        self._epoll = select.epoll()
        self._readers: dict[int, Call] = {}
        self._writers: dict[int, Call] = {}
        self._fd = self._epoll.fileno()
        loop.add_reader(self._fd, self._ready)

    def reader(self, fd: int, call: Call | None) -> None:
        """Call when *fd* can be read, has ended or has an error; None stops it."""
        self._set(self._readers, fd, call)

    def writer(self, fd: int, call: Call | None) -> None:
        """Call when *fd* can be written or has an error; None stops it."""
        self._set(self._writers, fd, call)

    def forget(self, fd: int) -> None:
        """Stop all callbacks of *fd*, which is about to be closed."""
        known = self._readers.pop(fd, None) or self._writers.get(fd)
        self._writers.pop(fd, None)
        if known is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        self._epoll.close()

    def _set(self, calls: dict[int, Call], fd: int, call: Call | None) -> None:
        before = fd in self._readers or fd in self._writers
        if call is None:
            calls.pop(fd, None)
        else:
            calls[fd] = call
        mask = (select.EPOLLIN if fd in self._readers else 0) | (select.EPOLLOUT if fd in self._writers else 0)
        if mask:
            (self._epoll.modify if before else self._epoll.register)(fd, mask)
        elif before:
            self._epoll.unregister(fd)

    def _ready(self) -> None:
        readers, writers = self._readers, self._writers
        for fd, events in self._epoll.poll(0, _BATCH):
            # Data, an end, an error: reading tells which.
            if events & ~select.EPOLLOUT and (call := readers.get(fd)) is not None:
                call()
                if events & select.EPOLLIN:
                    continue
            if events & ~select.EPOLLIN and (call := writers.get(fd)) is not None:
                call()
        self._after()
