"""TCP sockets: their readiness, and what the transport asks of them beyond sending and receiving."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import struct
from collections.abc import Callable

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
