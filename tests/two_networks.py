"""Two network namespaces with a wire between them that takes its time: packets go through a TUN device of each, and a relay.

python two_networks.py hold ADDRESS FD: makes a namespace whose device has ADDRESS, sends it over the socket FD, and waits.
python two_networks.py relay DELAY_S LOSS BOARD FD FD: carries packets between two devices, each later by DELAY_S, and loses
the part LOSS of them.  BOARD is the descriptor of what the wire and this process share.
python two_networks.py enter PID AHEAD_S WORD…: runs a command in the namespace of the process PID, where the monotonic clock is
AHEAD_S ahead of this one.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import mmap
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

CLIENT, SERVER = "10.213.0.1", "10.213.0.2"
"""The addresses of the two ends."""
_NEW_NETWORK, _NEW_TIME = 0x40000000, 0x00000080  # CLONE_NEWNET, CLONE_NEWTIME
_SET_DEVICE, _SET_FLAGS, _SET_ADDRESS, _SET_MASK = 0x400454CA, 0x8914, 0x8916, 0x891C
_TUN, _NO_HEADER, _UP = 0x0001, 0x1000, 0x1
_PACKET_BYTES = 65_536
_CUT, _BYTES, _LOST, _FIELDS = 0, 1, 3, 5
"""Places in what is shared with the relay: 1 where the wire is cut, then bytes carried and packets lost from each end."""
_T = TypeVar("_T")


class NoNetworksError(Exception):
    """This machine or this user makes no namespaces with TUN devices; the message says why."""


class Namespace:
    """A namespace that a process holds.  *device*: its end of the wire."""

    def __init__(self, address: str) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, "hold", address, str(theirs.fileno())], pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,
            )  # fmt: skip
            theirs.close()
            said, devices, _, _ = socket.recv_fds(ours, 1000, 1)
        if not devices:
            self.close()
            raise NoNetworksError(said.decode() or "the process of the namespace died")
        (self.device,) = devices

    def command(self, words: Sequence[object], ahead_s: float = 0.0) -> list[str]:
        """The command that runs *words* in the namespace, with a monotonic clock that is ahead of this machine's."""
        return [sys.executable, __file__, "enter", str(self._process.pid), str(ahead_s), *map(str, words)]

    def inside(self, called: Callable[[], _T]) -> _T:
        """What *called* gives in a thread of the namespace; processes that it starts stay there."""
        with ThreadPoolExecutor(1, initializer=_join, initargs=(str(self._process.pid),)) as thread:
            return thread.submit(called).result()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Wire:
    """What lies between the two networks.  Ends: 0 is the client's, 1 the server's."""

    def __init__(self) -> None:
        self.board = os.memfd_create("wire")
        os.truncate(self.board, 8 * _FIELDS)
        self._shared = memoryview(mmap.mmap(self.board, 8 * _FIELDS)).cast("q")

    def cut(self) -> None:
        """Carry no packet until :meth:`mend`."""
        self._shared[_CUT] = 1

    def mend(self) -> None:
        self._shared[_CUT] = 0

    def carried_bytes(self, end: int) -> int:
        """Bytes of the packets, with their IP headers, that were carried away from this end so far."""
        return self._shared[_BYTES + end]

    def lost_packets(self, end: int) -> int:
        """Packets from this end that were lost by chance or on the cut wire."""
        return self._shared[_LOST + end]


@contextlib.contextmanager
def two_networks(delay_s: float, loss: float = 0.0) -> Iterator[tuple[Namespace, Namespace, Wire]]:
    """The client's network, the server's, and the wire: a packet takes *delay_s* from one to the other, or is lost (0–1).

    Raises:
        NoNetworksError: They can't be made here.
    """
    with contextlib.ExitStack() as stack:
        ends = []
        for address in (CLIENT, SERVER):
            ends.append(Namespace(address))
            stack.callback(ends[-1].close)
            stack.callback(os.close, ends[-1].device)
        wire = Wire()
        stack.callback(os.close, wire.board)
        fds = [wire.board, *(end.device for end in ends)]
        relay = subprocess.Popen(
            [sys.executable, __file__, "relay", str(delay_s), str(loss), *map(str, fds)], pass_fds=fds
        )
        stack.callback(relay.wait)
        stack.callback(relay.kill)
        yield ends[0], ends[1], wire


def _hold(address: str, fd: int) -> None:
    with socket.socket(fileno=fd) as parent:
        try:
            _called("unshare", _NEW_NETWORK)
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(device, _SET_DEVICE, struct.pack("16sH14x", b"wire", _TUN | _NO_HEADER))
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
                for request, text in ((_SET_ADDRESS, address), (_SET_MASK, "255.255.255.0")):
                    place = struct.pack("16sHH4s8x", b"wire", socket.AF_INET, 0, socket.inet_aton(text))
                    fcntl.ioctl(control, request, place)
                for name in (b"wire", b"lo"):
                    fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH14x", name, _UP))
        except OSError as error:
            parent.sendall(str(error).encode())
            return
        socket.send_fds(parent, [b"made"], [device])
        os.close(device)
    sys.stdin.read()


def _relay(delay_s: float, loss: float, board: int, *devices: int) -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)  # the wire waits for nobody
    shared = memoryview(mmap.mmap(board, 8 * _FIELDS)).cast("q")
    draw = random.Random(1).random
    late: list[tuple[float, int, int, bytes]] = []
    number = 0
    while True:
        rest_s = max(0.0, late[0][0] - time.monotonic()) if late else None
        for device in select.select(devices, [], [], rest_s)[0]:
            end = devices.index(device)
            now = time.monotonic()
            with contextlib.suppress(BlockingIOError):
                while True:
                    packet = os.read(device, _PACKET_BYTES)
                    if shared[_CUT] or draw() < loss:
                        shared[_LOST + end] += 1
                        continue
                    number += 1
                    shared[_BYTES + end] += len(packet)
                    heapq.heappush(late, (now + delay_s, number, devices[1 - end], packet))
        while late and late[0][0] <= time.monotonic():
            _, _, device, packet = heapq.heappop(late)
            with contextlib.suppress(BlockingIOError):
                os.write(device, packet)


def _called(name: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc[name](*arguments):
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def _join(pid: str) -> None:
    """Put this thread into the network of a process."""
    with Path(f"/proc/{pid}/ns/net").open() as namespace:
        _called("setns", namespace.fileno(), _NEW_NETWORK)


def _enter(pid: str, ahead_s: str, *words: str) -> None:
    _join(pid)
    if float(ahead_s):
        _called("unshare", _NEW_TIME)  # counts from the exec on
        seconds, ns = divmod(round(float(ahead_s) * 1e9), 10**9)
        Path("/proc/self/timens_offsets").write_text(f"monotonic {seconds} {ns}\n")
    os.execvp(words[0], words)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["hold", address, fd]:
            _hold(address, int(fd))
        case ["relay", delay, loss, *fds]:
            _relay(float(delay), float(loss), *map(int, fds))
        case ["enter", pid, ahead, *words]:
            _enter(pid, ahead, *words)
