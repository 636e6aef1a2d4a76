"""Files of pages: read once, sent with a tag by their content, packed where the browser takes it."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from aiohttp import hdrs, web
from msgspec import Struct

from aiperf_pages.guard import Refusal

STATIC = Path(__file__).parent / "static"
"""The files that all pages share: style, charts, and below ``vendor`` what others wrote."""
_TYPES = {
    ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json",
}  # fmt: skip
_FEWEST_PACKED_BYTES = 1024


class Body(Struct, frozen=True):
    """An answer's body, ready to be sent; packed: by gzip, None where that is no gain."""

    content_type: str
    plain: bytes
    packed: bytes | None
    tag: str

    def answer(self, request: web.Request) -> web.Response:
        """The body, packed where the request accepts it; 304 where the client has it."""
        if request.headers.get(hdrs.IF_NONE_MATCH) == self.tag:
            return web.Response(status=304, headers={hdrs.ETAG: self.tag})
        headers = {hdrs.CONTENT_TYPE: self.content_type, hdrs.ETAG: self.tag, hdrs.VARY: hdrs.ACCEPT_ENCODING}
        if self.packed is not None and accepts_gzip(request):
            return web.Response(body=self.packed, headers={**headers, hdrs.CONTENT_ENCODING: "gzip"})
        return web.Response(body=self.plain, headers=headers)


def body(content: bytes, content_type: str) -> Body:
    """*content* with its tag, and packed where it is larger than a packet."""
    packed = gzip.compress(content, 1, mtime=0) if len(content) > _FEWEST_PACKED_BYTES else None
    return Body(f"{content_type}; charset=utf-8", content, packed, f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"')


def accepts_gzip(request: web.Request) -> bool:
    """Whether the client takes bodies that gzip packed."""
    coded = (each.strip().partition(";") for each in request.headers.get(hdrs.ACCEPT_ENCODING, "").split(","))
    return any(name.strip() in ("gzip", "*") and weight.replace(" ", "") not in ("q=0", "q=0.0") for name, _, weight in coded)


class Assets:
    """The files of *folders* by their names; the first folder with a name has it.  Only names that are there are opened."""

    def __init__(self, *folders: Path) -> None:
        self._paths: dict[str, Path] = {}
        self._bodies: dict[str, Body] = {}
        for folder in reversed(folders):
            self._paths |= {
                str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file() and path.suffix in _TYPES
            }

    def body(self, name: str) -> Body:
        """The file of this name.

        Raises:
            Refusal: There is none.
        """
        if name not in self._paths:
            raise Refusal(404, f"no file of the pages is called {name[:100]}")
        if name not in self._bodies:
            path = self._paths[name]
            self._bodies[name] = body(path.read_bytes(), _TYPES[path.suffix])
        return self._bodies[name]

    async def answer(self, request: web.Request) -> web.Response:
        """The handler of a route ``…/{name:.+}``."""
        return self.body(request.match_info["name"]).answer(request)


__all__ = ["STATIC", "Assets", "Body", "accepts_gzip", "body"]
