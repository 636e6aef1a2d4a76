"""Sessions of aiohttp: those that all requests share, by their way, and those of sessions with a connection of their own."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

import aiohttp
from aiperf import Exchange, TransportSettings
from yarl import URL

from aiperf_transport_aiohttp.local import LocalConnector
from aiperf_transport_aiohttp.socks import SocksConnector
from aiperf_transport_aiohttp.tracing import Connector, traced

_KEEPALIVE_S = 300.0
_READ_BYTES = 65536
_OWN_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_FAMILIES = {"4": socket.AF_INET, "6": socket.AF_INET6}


class Sessions:
    """Made when they are first asked for.  context: of TLS, set by the owner.  *connected*: hears of each new connection."""

    context: ssl.SSLContext | None = None

    def __init__(
        self, settings: TransportSettings, loop: asyncio.AbstractEventLoop, connected: Callable[[Exchange], None]
    ) -> None:  # fmt: skip
        self.settings, self.loop, self._connected = settings, loop, connected
        self._pools: dict[tuple[URL | str | None, bool], aiohttp.ClientSession] = {}
        self._own: dict[str, aiohttp.ClientSession] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def shared(self, by: URL | str | None, *, reuse: bool) -> aiohttp.ClientSession:
        """The session of all requests that go this way; one that doesn't *reuse* finds no dead connection again."""
        session = self._pools.get((by, reuse))
        if session is None:
            session = self._pools[by, reuse] = self._session(reuse=reuse, by=by)
        return session

    def of(self, exchange: Exchange, by: URL | str | None) -> aiohttp.ClientSession:
        """Where the exchange finds its connection."""
        if not self.settings.sticky:
            return self.shared(by, reuse=self.settings.reuse)
        own = self._own.get(exchange.session_id)
        if own is None:
            own = self._own[exchange.session_id] = self._session(reuse=True, by=by)
        return own

    def part(self, session_id: str) -> None:
        """Close a session's own connection."""
        own = self._own.pop(session_id, None)
        if own is not None:
            task = self.loop.create_task(own.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close all of them."""
        await asyncio.gather(*self._closing)
        for session in (*self._pools.values(), *self._own.values()):
            await session.close()

    def _session(self, *, reuse: bool, by: URL | str | None) -> aiohttp.ClientSession:
        about: dict[str, Any] = {"keepalive_timeout": _KEEPALIVE_S} if reuse else {"force_close": True}
        about |= {"limit": 0, "loop": self.loop, "head_s": self.settings.head_s}
        if isinstance(by, str):
            return self._made(LocalConnector(path=by, **about))
        kind: Any = Connector if by is None else partial(SocksConnector, proxy=by)
        connector = kind(
            ssl=True if self.context is None else self.context,
            family=_FAMILIES.get(self.settings.family, socket.AF_UNSPEC),
            ttl_dns_cache=int(_KEEPALIVE_S),
            **about,
        )
        return self._made(connector)

    def _made(self, connector: aiohttp.BaseConnector) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=connector,
            loop=self.loop,
            cookie_jar=aiohttp.DummyCookieJar(loop=self.loop),
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=self.settings.connect_s, sock_read=None),
            auto_decompress=False,
            skip_auto_headers=_OWN_HEADERS,
            trace_configs=[traced(self._connected)],
            read_bufsize=_READ_BYTES,
            max_line_size=self.settings.most_head_bytes,
            max_field_size=self.settings.most_head_bytes,
        )
        # Else aiohttp sends GET and HEAD again, whatever the server has read.
        session._retry_connection = False
        return session
