"""Whether a server is on the machine whose GPUs are sampled."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from urllib.parse import urlsplit


def elsewhere(urls: Iterable[str]) -> list[str]:
    """The hosts of these URLs that are other machines, none twice.  A name that nobody knows is left out."""
    hosts = dict.fromkeys(urlsplit(url).hostname or "" for url in urls)
    return [host for host in hosts if host and not _is_here(host)]


def _is_here(host: str) -> bool:
    """Whether an address of the host is one of this machine's: nobody can listen on another's."""
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except OSError:
        return True
    for family, kind, _, _, address in addresses:
        try:
            with socket.socket(family, kind) as own:
                own.bind(address)
        except OSError:
            continue
        return True
    return False


def warning(item: str, urls: Iterable[str]) -> str:
    """A sentence where the GPUs of this machine, which *item* asks, are not those of the servers at *urls*; else empty."""
    hosts = elsewhere(urls)
    if not hosts:
        return ""
    return (
        f"--gpu-telemetry {item} samples the GPUs of this machine, and the server is at {', '.join(hosts)}: energy and cost are"
        f" not the server's; name its DCGM exporter, --gpu-telemetry {hosts[0]}:9400"
    )


__all__ = ["elsewhere", "warning"]
