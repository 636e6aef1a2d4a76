"""What the operating system counts of a socket."""

from __future__ import annotations

import os
import socket
import struct
import sys
from fcntl import ioctl
from termios import FIONREAD, TIOCOUTQ

# asm-generic/socket.h; the few architectures that number it differently fall back to read stamps.
SO_TIMESTAMPNS = 35 if os.uname().machine in ("x86_64", "aarch64", "riscv64") else 0
_TCP_INFO_BYTES, _DATA_SEGS_IN, _DATA_SEGS_AT = 192, struct.Struct("=I"), 152
"""``tcpi_data_segs_in`` of linux/tcp.h: a u32 at byte 152."""


def data_segments(sock: socket.socket) -> int | None:
    """TCP data segments received so far (0.5 µs); None where the kernel does not count them."""
    if SO_TIMESTAMPNS == 0:
        return None
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    return int(_DATA_SEGS_IN.unpack_from(info, _DATA_SEGS_AT)[0]) if len(info) >= _DATA_SEGS_AT + 4 else None


def unacknowledged(sock: socket.socket) -> int:
    """Bytes written that the server's kernel has not acknowledged; -1 where this machine doesn't tell.

    A reset leaves the count as it was: it drops the bytes, and acknowledges none.
    """
    try:
        return int.from_bytes(ioctl(sock, TIOCOUTQ, bytes(4)), sys.byteorder)
    except OSError:
        return -1


def unread_bytes(fd: int) -> int:
    """Bytes in the socket's buffer (0.5 µs)."""
    return int.from_bytes(ioctl(fd, FIONREAD, bytes(4)), sys.byteorder)
