"""The routes of a run's files: the list, each one or a range of it, and all as an archive."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from aiohttp import hdrs, web
from aiperf_pages.files import file_answer
from aiperf_pages.guard import Refusal

from aiperf_command_service.archive import Archive
from aiperf_command_service.book import ENDED, Book, Entry

MOST_ARCHIVES = 4
"""Archives that are sent at a time, each by a thread."""


class FileRoutes:
    """The routes below ``/runs/{run}``, of the entry that *find* gives for a request."""

    def __init__(self, book: Book, find: Callable[[web.Request], Entry]) -> None:
        self._book, self._find = book, find
        self._packers = ThreadPoolExecutor(MOST_ARCHIVES)
        self._packing = 0

    def add(self, app: web.Application) -> None:
        app.router.add_get("/runs/{run}/files", self._list)
        app.router.add_get("/runs/{run}/files/{name:.+}", self._file)
        app.router.add_get("/runs/{run}/archive", self._archive)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        entry = self._find(request)
        return web.json_response({"files": await asyncio.to_thread(listed, self._book.results(entry))})

    async def _file(self, request: web.Request) -> web.StreamResponse:
        entry, name = self._find(request), request.match_info["name"]
        results = self._book.results(entry).resolve()
        path = (results / name).resolve() if "\0" not in name else results
        if not path.is_relative_to(results) or not path.is_file():
            raise Refusal(404, f"the run has no file {name[:200]}; /runs/{entry.id}/files lists them")
        return file_answer(request, path)

    async def _archive(self, request: web.Request) -> web.StreamResponse:
        entry = self._find(request)
        if entry.state not in ENDED:
            raise Refusal(409, f"the run is {entry.state}: its files are whole when it has ended")
        if self._packing >= MOST_ARCHIVES:
            raise Refusal(503, f"{MOST_ARCHIVES} archives are being sent, which is the most; try again", {"Retry-After": "5"})
        response = web.StreamResponse(headers={
            hdrs.CONTENT_TYPE: "application/x-tar", hdrs.CONTENT_DISPOSITION: f'attachment; filename="{entry.id}.tar"',
        })  # fmt: skip
        self._packing += 1
        try:
            await response.prepare(request)
            if request.method != hdrs.METH_HEAD:
                await Archive(response).send(self._book.results(entry), entry.id, self._packers)
            await response.write_eof()
        finally:
            self._packing -= 1
        return response


def listed(results: Path) -> list[dict[str, Any]]:
    """Name, size and time of each file of a run."""
    found = []
    for where, _, names in os.walk(results):
        for name in names:
            path = Path(where, name)
            if path.is_file() and not path.is_symlink():
                about = path.stat()
                found.append({"name": str(path.relative_to(results)), "bytes": about.st_size, "modified_at": about.st_mtime})
    return sorted(found, key=lambda each: each["name"])


__all__ = ["MOST_ARCHIVES", "FileRoutes", "listed"]
