"""Two network namespaces with a wire between them that takes its time: packets go through a TUN device of each, and a relay.

python two_networks.py hold ADDRESS FD: makes a namespace whose device has ADDRESS, sends it over the socket FD, and waits.
python two_networks.py relay DELAY_S FD FD: carries packets between two devices, each later by DELAY_S.
python two_networks.py enter PID WORD…: runs a command in the namespace of the process PID.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

CLIENT, SERVER = "10.213.0.1", "10.213.0.2"
"""The addresses of the two ends."""
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_SET_DEVICE, _SET_FLAGS, _SET_ADDRESS, _SET_MASK = 0x400454CA, 0x8914, 0x8916, 0x891C
_TUN, _NO_HEADER, _UP = 0x0001, 0x1000, 0x1
_PACKET_BYTES = 65_536


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

    def command(self, words: Sequence[object]) -> list[str]:
        """The command that runs *words* in the namespace."""
        return [sys.executable, __file__, "enter", str(self._process.pid), *map(str, words)]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@contextlib.contextmanager
def two_networks(delay_s: float) -> Iterator[tuple[Namespace, Namespace]]:
    """The client's network and the server's; a packet takes *delay_s* from one to the other.

    Raises:
        NoNetworksError: They can't be made here.
    """
    with contextlib.ExitStack() as stack:
        ends = []
        for address in (CLIENT, SERVER):
            ends.append(Namespace(address))
            stack.callback(ends[-1].close)
            stack.callback(os.close, ends[-1].device)
        devices = [end.device for end in ends]
        relay = subprocess.Popen(
            [sys.executable, __file__, "relay", str(delay_s), *map(str, devices)], pass_fds=devices
        )
        stack.callback(relay.wait)
        stack.callback(relay.kill)
        yield ends[0], ends[1]


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


def _relay(delay_s: float, *devices: int) -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)  # the wire waits for nobody
    others = dict(zip(devices, reversed(devices), strict=True))
    late: list[tuple[float, int, int, bytes]] = []
    number = 0
    while True:
        rest_s = max(0.0, late[0][0] - time.monotonic()) if late else None
        for device in select.select(devices, [], [], rest_s)[0]:
            now = time.monotonic()
            with contextlib.suppress(BlockingIOError):
                while True:
                    number += 1
                    heapq.heappush(late, (now + delay_s, number, others[device], os.read(device, _PACKET_BYTES)))
        while late and late[0][0] <= time.monotonic():
            _, _, device, packet = heapq.heappop(late)
            os.write(device, packet)


def _called(name: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc[name](*arguments):
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def _enter(pid: str, *words: str) -> None:
    with Path(f"/proc/{pid}/ns/net").open() as namespace:
        _called("setns", namespace.fileno(), _NEW_NETWORK)
    os.execvp(words[0], words)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["hold", address, fd]:
            _hold(address, int(fd))
        case ["relay", delay, *fds]:
            _relay(float(delay), *map(int, fds))
        case ["enter", pid, *words]:
            _enter(pid, *words)
