"""The page on its port, until Ctrl-C."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from aiperf_pages.guard import Guard
from aiperf_pages.server import Server, serve_until_signal

from aiperf_plot_site.catalog import RunCatalog
from aiperf_plot_site.drawer import Drawer
from aiperf_plot_site.site import PUBLIC, PlotSite


async def serve(
    catalog: RunCatalog, drawer: Drawer, listening: socket.socket, host: str, token: str, ready: Callable[[], None]
) -> None:  # fmt: skip
    """Serve until a signal; *ready* is called once signals end it so."""
    server = Server(PlotSite(catalog, drawer).application(), Guard(host, token, PUBLIC), listening)
    await serve_until_signal(server, asyncio.Event(), ready)


__all__ = ["serve"]
