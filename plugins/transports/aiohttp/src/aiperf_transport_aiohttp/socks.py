"""Connections through SOCKS proxies, with the extra ``socks`` of this package (python-socks).

aiohttp-socks, which is made of it for aiohttp, brings a protocol of its own for connections: that would neither limit the time
of a head nor know whether a server can have got a request.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
from typing import TYPE_CHECKING, Any

from aiohttp.abc import AbstractResolver, ResolveResult
from aiperf import ConfigError, ErrorDetails
from aiperf.sdk.redaction import without_secrets
from aiperf.sdk.transport import REFUSED, connect_error
from yarl import URL

from aiperf_transport_aiohttp.tracing import Connector

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.client_proto import ResponseHandler

_PLAIN = {"socks5": "socks5", "socks5h": "socks5", "socks4": "socks4", "socks4a": "socks4"}
"""What each scheme is without the letter that says who looks names up."""
_USUAL_PORT = 1080
"""Where the proxy's URL names none."""


class SocksError(Exception):
    """No connection through the proxy.  details: the request's error."""

    def __init__(self, details: ErrorDetails) -> None:
        super().__init__(details.message)
        self.details = details


def socks_of(proxy: URL | None) -> URL | None:
    """The proxy, if it speaks SOCKS."""
    return proxy if proxy is not None and proxy.scheme in _PLAIN else None


def check_installed(proxy: URL) -> None:
    """
    Raises:
        ConfigError: The package for SOCKS is missing.
    """
    if importlib.util.find_spec("python_socks") is None:
        raise ConfigError(
            f"the proxy {without_secrets(str(proxy))} speaks SOCKS, for which the package python-socks is missing:"
            " pip install 'aiperf-transport-aiohttp[socks]'"
        )


class _Unresolved(AbstractResolver):
    """Leaves names to the proxy."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:  # fmt: skip
        return [{"hostname": host, "host": host, "port": port, "family": family, "proto": 0, "flags": 0}]

    async def close(self) -> None:
        """Nothing is open."""


class SocksConnector(Connector):
    """Makes connections through *proxy*, which looks names up, too."""

    def __init__(self, *, proxy: URL, loop: asyncio.AbstractEventLoop, head_s: float, **options: Any) -> None:
        super().__init__(loop=loop, head_s=head_s, resolver=_Unresolved(), **options)
        plain = proxy.with_scheme(_PLAIN[proxy.scheme])
        self._proxy = plain if plain.explicit_port is not None else plain.with_port(_USUAL_PORT)

    async def _connected(
        self, factory: Any, *, addr_infos: Any, req: aiohttp.ClientRequest, timeout: aiohttp.ClientTimeout, **about: Any
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        from python_socks import ProxyConnectionError, ProxyError
        from python_socks.async_.asyncio import Proxy

        host, port = addr_infos[0][4][:2]
        within, shown = timeout.sock_connect, without_secrets(str(self._proxy))
        tls = {key: about[key] for key in ("ssl", "server_hostname") if about.get(key)}
        async with asyncio.timeout(within):
            try:
                sock = await Proxy.from_url(str(self._proxy), rdns=True).connect(host, port, timeout=within)
            except ProxyConnectionError as error:
                cause = error.__cause__
                code = (cause.errno if isinstance(cause, OSError) else None) or error.errno
                why = OSError(str(error)) if code is None else OSError(code, os.strerror(code))
                raise SocksError(connect_error(f"the proxy {shown}", why)) from error
            except ProxyError as error:  # the proxy's answer, in its words
                message = f"{host}:{port}: the proxy {shown} opens no connection: {error}"
                raise SocksError(ErrorDetails(message, type="ProxyError", cause=REFUSED)) from error
            return await self._loop.create_connection(factory, sock=sock, **tls)
