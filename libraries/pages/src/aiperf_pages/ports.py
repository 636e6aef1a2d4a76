"""Sockets that listen, and their URLs."""

from __future__ import annotations

import errno
import socket

from aiperf.sdk.errors import AiperfError


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on *host*; *port* 0 takes a free one.

    Raises:
        AiperfError: The port is taken, or the host is none of this machine's.
    """
    try:
        found = socket.getaddrinfo(host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=family, backlog=128)
    except socket.gaierror as error:
        hint = "give 127.0.0.1, or 0.0.0.0 for all"
        raise AiperfError(f"no address of this machine is called {host!r}: {error.strerror}", hint) from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            hint = "give another port, or 0 for a free one"
            raise AiperfError(f"{host}:{port} is in use by another program", hint) from error
        raise AiperfError(f"{host}:{port} can't be listened on: {error.strerror}", "give another address or port") from error


def address_of(bound: str, listening: socket.socket) -> str:
    """``http://127.0.0.1:8080``: where the server is reached, by the name that it was bound to."""
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(bound, bound)
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"http://{host}:{listening.getsockname()[1]}"


__all__ = ["address_of", "listen"]
