"""The encrypted channel between a run and its sites: ZeroMQ with CurveZMQ keys that are made for one run and one site.

The run knows the public key of each site, and a site that of the run, so that each proves to the other who it is.  Whoever has
no key of the run is turned away before a message of theirs is read (ZAP, RFC 27 of ZeroMQ).
"""

from __future__ import annotations

import contextlib
import secrets
import time
from pathlib import Path

import msgspec
import zmq
from zmq.utils import z85
from zmq.utils.monitor import recv_monitor_message

from aiperf.errors import AiperfError
from aiperf.sites.delivery import Delivery
from aiperf.sites.messages import UNNUMBERED, SiteEnd, SiteKeys, SiteMessage, decode, encode
from aiperf.sites.silence import SILENCE_S

_LINGER_MS = 1000
_QUEUED = 100_000
"""Messages that wait for a connection."""
_HEARTBEAT_MS = 5000
_IPC = "ipc://"
_ZAP = "inproc://zeromq.zap.01"


def _key_pair() -> tuple[str, str]:
    public, secret = zmq.curve_keypair()
    return public.decode(), secret.decode()


class SiteBoard:
    """The run's end: one socket for all sites, at the IP address *host* of this machine.

    heard_s: by site, when something of it came last (monotonic s); a site that never spoke is missing.
    garbage: sites that sent what is no message of ours.  twice: sites with whose key two programs have connected; the first
    one is heard.

    Raises:
        AiperfError: This machine has no such address.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._context = zmq.Context(io_threads=1)
        self._zap = self._context.socket(zmq.REP)
        self._zap.bind(_ZAP)
        self._socket = self._context.socket(zmq.ROUTER)
        public, secret = _key_pair()
        self._public = public
        for option, value in (
            (zmq.LINGER, _LINGER_MS), (zmq.SNDHWM, _QUEUED), (zmq.RCVHWM, _QUEUED), (zmq.ROUTER_HANDOVER, 1),
            (zmq.CURVE_SERVER, 1),
        ):  # fmt: skip
            self._socket.setsockopt(option, value)
        self._socket.setsockopt_string(zmq.CURVE_SECRETKEY, secret)
        self._socket.setsockopt_string(zmq.ZAP_DOMAIN, "aiperf")
        self.port = self._listen(host)
        self._poller = zmq.Poller()
        for socket in (self._zap, self._socket):
            self._poller.register(socket, zmq.POLLIN)
        self._sites: dict[bytes, int] = {}
        self._names: dict[int, bytes] = {}
        self._identities: dict[int, bytes] = {}
        self._deliveries: dict[int, Delivery] = {}
        self.heard_s: dict[int, float] = {}
        self.garbage: set[int] = set()
        self.twice: set[int] = set()

    def _listen(self, host: str) -> int:
        self._socket.setsockopt(zmq.IPV6, ":" in host)
        try:
            return self._socket.bind_to_random_port(f"tcp://[{host}]" if ":" in host else f"tcp://{host}")
        except zmq.ZMQError as error:
            self.close()
            raise AiperfError(f"the run can't listen for its sites at {host}: {error.strerror}") from error

    def keys(self, site: int, address: str, place: str = "") -> SiteKeys:
        """New keys for a site, which reaches this end at *address*; *place*: as of :class:`SiteKeys`.

        Those that it had are worth nothing any more; whoever has them, and still hears, is told to end.
        """
        if site in self._deliveries:
            self.send(site, SiteEnd())
            self.heard_s.pop(site, None)
            self.garbage.discard(site)
            self.twice.discard(site)
        public, secret = _key_pair()
        self._sites = {key: number for key, number in self._sites.items() if number != site}
        self._sites[z85.decode(public)] = site
        self._names[site] = public.encode()
        self._identities.pop(site, None)
        self._deliveries[site] = Delivery()
        return SiteKeys(address, self._public, public, secret, place)

    def send(self, site: int, message: SiteMessage) -> None:
        numbered = not isinstance(message, UNNUMBERED)
        self._put(site, self._deliveries[site].packed(encode(message), time.monotonic(), numbered=numbered))

    def receive(self, wait_ms: int) -> tuple[int, SiteMessage] | None:
        """The next message, and whose it is; None where none came in time."""
        until_s = time.monotonic() + wait_ms / 1000
        while True:
            left_ms = max(0, round((until_s - time.monotonic()) * 1000))
            ready = dict(self._poller.poll(left_ms))
            if self._zap in ready:
                self._admit()
            if self._socket in ready and (message := self._taken()) is not None:
                return message
            if time.monotonic() >= until_s:  # also where a site sends garbage without end
                return None

    def tend(self) -> None:
        """Send again what was not heard; a few times a second."""
        now_s = time.monotonic()
        for site, delivery in self._deliveries.items():
            for data in delivery.due(now_s):
                self._put(site, data)

    def settled(self, site: int) -> bool:
        return self._deliveries[site].settled

    def close(self) -> None:
        self._socket.close()
        self._zap.close(0)
        self._context.term()

    def _put(self, site: int, data: bytes) -> None:
        if (identity := self._identities.get(site)) is not None:  # else it never connected
            with contextlib.suppress(zmq.Again):
                self._socket.send_multipart([identity, data], zmq.DONTWAIT)

    def _taken(self) -> tuple[int, SiteMessage] | None:
        frames = self._socket.recv_multipart(zmq.DONTWAIT, copy=False)
        # The identity is what the other side says of itself; the user is who proved to have the key.
        site = self._sites.get(z85.decode(str(frames[-1].get("User-Id"))))
        if site is None:  # its key is worth nothing any more
            return None
        if len(frames) != 2 or not frames[0].bytes.startswith(self._names[site]):
            self.garbage.add(site)
            return None
        if self._identities.setdefault(site, frames[0].bytes) != frames[0].bytes:
            self.twice.add(site)
            return None
        now_s = self.heard_s[site] = time.monotonic()
        try:
            body = self._deliveries[site].unpacked(frames[1].bytes, now_s)
            return None if body is None else (site, decode(body))
        except msgspec.MsgspecError:
            self.garbage.add(site)
            return None

    def _admit(self) -> None:
        """Answer the question of ZeroMQ's input whether a key is that of a site."""
        version, request, _, _, _, mechanism, *credentials = self._zap.recv_multipart()
        known = mechanism == b"CURVE" and credentials[:1] and credentials[0] in self._sites
        status = (b"200", b"OK", z85.encode(credentials[0])) if known else (b"400", b"no key of this run", b"")
        self._zap.send_multipart([version, request, *status, b""])


class SiteLine:
    """A site's end.  heard_s: when something of the run came last (monotonic s).

    ZeroMQ asks in a thread of its own whether the other side is there, and answers so, too: where the run is busy with
    something else, the connection stays.
    """

    def __init__(self, keys: SiteKeys) -> None:
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.DEALER)
        for option, value in (
            (zmq.LINGER, _LINGER_MS), (zmq.SNDHWM, _QUEUED), (zmq.RCVHWM, _QUEUED), (zmq.HEARTBEAT_IVL, _HEARTBEAT_MS),
            (zmq.HEARTBEAT_TIMEOUT, round(1000 * SILENCE_S)),
        ):  # fmt: skip
            self._socket.setsockopt(option, value)
        self._events = self._socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        self._connected = False
        # Nobody else knows it, so that no other site can take its place; nor has another program with its key the same.
        self._socket.setsockopt_string(zmq.IDENTITY, f"{keys.public} {secrets.token_hex(16)}")
        self._socket.setsockopt_string(zmq.CURVE_SERVERKEY, keys.server)
        self._socket.setsockopt_string(zmq.CURVE_PUBLICKEY, keys.public)
        self._socket.setsockopt_string(zmq.CURVE_SECRETKEY, keys.secret)
        self._socket.setsockopt(zmq.IPV6, "[" in keys.address)
        self._socket.connect(keys.address)
        self._address = keys.address
        self._delivery = Delivery()
        self.heard_s = time.monotonic()

    def wake(self, poller: zmq.Poller, *, events: bool = False) -> None:
        """Let the poller wake up for messages; with *events*, also when the connection breaks, or is there again."""
        poller.register(self._socket, zmq.POLLIN)
        if events:
            poller.register(self._events, zmq.POLLIN)

    @property
    def connected(self) -> bool:
        """Whether the connection to the run is there."""
        while self._events.poll(0):
            self._connected = recv_monitor_message(self._events)["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED
        return self._connected

    def send(self, message: SiteMessage) -> None:
        numbered = not isinstance(message, UNNUMBERED)
        self._put(self._delivery.packed(encode(message), time.monotonic(), numbered=numbered))

    def receive(self) -> SiteMessage | None:
        """The next message; None where there is none now."""
        while True:
            try:
                data = self._socket.recv(zmq.DONTWAIT)
            except zmq.Again:
                return None
            self.heard_s = time.monotonic()
            if (body := self._delivery.unpacked(data, self.heard_s)) is not None:
                return decode(body)

    def tend(self) -> None:
        """Send again what was not heard; a few times a second."""
        for data in self._delivery.due(time.monotonic()):
            self._put(data)

    @property
    def settled(self) -> bool:
        return self._delivery.settled

    def close(self) -> None:
        self._socket.disable_monitor()
        self._events.close(0)
        self._socket.close()
        self._context.term()
        if self._address.startswith(_IPC):  # the other program's socket, which it leaves behind
            Path(self._address.removeprefix(_IPC)).unlink(missing_ok=True)

    def _put(self, data: bytes) -> None:
        with contextlib.suppress(zmq.Again):
            self._socket.send(data, zmq.DONTWAIT)
