"""What passes a network device, as whoever listens there hears it."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

from two_networks import Namespace

_ALL = 0x0003  # ETH_P_ALL
_BUFFER_BYTES = 64 << 20
_FORCED_BUFFER = 33  # SO_RCVBUFFORCE
_TCP = 6


class HeardPackets:
    """The TCP packets over IPv4 that were heard, by their ports."""

    def __init__(self) -> None:
        self._heard: list[tuple[frozenset[int], bytes]] = []

    def take(self, packet: bytes) -> None:
        if len(packet) < 20 or packet[0] >> 4 != 4 or packet[9] != _TCP:
            return
        at = (packet[0] & 15) * 4
        ports = struct.unpack("!HH", packet[at : at + 4])
        self._heard.append((frozenset(ports), packet[at + (packet[at + 12] >> 4) * 4 :]))

    def of(self, port: int) -> bytes:
        """What came from a port or went to it."""
        return b"".join(data for ports, data in self._heard if port in ports)

    def beside(self, port: int) -> bytes:
        """What passed between other ports."""
        return b"".join(data for ports, data in self._heard if port not in ports)


@contextlib.contextmanager
def listening(namespace: Namespace, device: str) -> Iterator[HeardPackets]:
    """Everything that passes a device of a network, until the ``with`` ends."""
    heard = HeardPackets()
    with namespace.inside(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ALL))) as ear:
        ear.setsockopt(socket.SOL_SOCKET, _FORCED_BUFFER, _BUFFER_BYTES)
        ear.bind((device, _ALL))
        ear.settimeout(0.2)
        over = threading.Event()

        def listen() -> None:
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    heard.take(ear.recv(1 << 17))

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield heard
        finally:
            over.set()
            thread.join()
