"""Options of ``aiperf serve``."""

from __future__ import annotations

from aiperf import Options, option


class ServeOptions(Options):
    port: int = option("--port", default=0, ge=0, le=65_535, metavar="PORT", shown="a free one",
        help="Port to listen on; 0 takes a free one. It is printed.")
    host: str = option("--host", default="127.0.0.1", min_length=1, metavar="ADDRESS",
        help="Name or address to listen on; beyond this machine every request needs the token that is printed.")


__all__ = ["ServeOptions"]
