"""How a URL is reached: straight, through a proxy of HTTP or SOCKS, or by a socket of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aiperf.sdk.transport import UNIX, socket_path
from yarl import URL

from aiperf_transport_aiohttp.proxies import proxy_for
from aiperf_transport_aiohttp.socks import socks_of


class Way(NamedTuple):
    """url: as aiohttp asks for it.  proxy: of HTTP.  by: what connections are made by, a proxy of SOCKS or the path of a
    socket; None: aiohttp makes them itself."""

    url: URL
    proxy: URL | None = None
    by: URL | str | None = None


def way_to(url: str, bases: Sequence[str], *, trust_env: bool) -> Way:
    """The way to a URL, which is below one of the *bases* where it is of a socket.  *trust_env*: as of the settings."""
    if url.startswith(f"{UNIX}://"):
        path, asked = socket_path(url, bases)
        return Way(URL(f"http://localhost{asked}", encoded=True), by=path)
    to = URL(url, encoded=True)  # as given: nothing is quoted again
    proxy = proxy_for(to) if trust_env else None
    socks = socks_of(proxy)
    return Way(to, None if socks is not None else proxy, socks)
