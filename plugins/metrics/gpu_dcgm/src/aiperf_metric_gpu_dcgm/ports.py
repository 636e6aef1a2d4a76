"""Whether somebody listens at an address."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

_LISTENS_S = 0.5
_OWN = ("localhost", "127.0.0.1", "::1")


def listens(url: str) -> bool:
    """Whether something takes connections there."""
    parts = urlsplit(url)
    address = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection(address, _LISTENS_S).close()
    except OSError:
        return False
    return True


def may_listen(url: str) -> bool:
    """Whether something may take connections there, known at once: a port of this machine refuses or takes them.

    Another machine is not asked.
    """
    return urlsplit(url).hostname not in _OWN or listens(url)


__all__ = ["listens", "may_listen"]
