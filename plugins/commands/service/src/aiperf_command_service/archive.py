"""All files of a run as one TAR, made while it is sent."""

from __future__ import annotations

import asyncio
import io
import tarfile
from concurrent.futures import Executor
from pathlib import Path

from aiohttp import web

_PATIENCE_S = 60.0
"""Longest time in which a client that takes an archive may read nothing."""


class Archive(io.RawIOBase):
    """A file whose bytes go to a client; written by another thread than the loop's."""

    def __init__(self, response: web.StreamResponse) -> None:
        super().__init__()
        self._response, self._loop = response, asyncio.get_running_loop()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        content = bytes(data)  # type: ignore[call-overload]
        asyncio.run_coroutine_threadsafe(self._response.write(content), self._loop).result(_PATIENCE_S)
        return len(content)

    async def send(self, folder: Path, name: str, packers: Executor) -> None:
        """Send the folder under *name*; a thread of *packers* reads it."""
        await self._loop.run_in_executor(packers, self._made, folder, name)

    def _made(self, folder: Path, name: str) -> None:
        with tarfile.open(fileobj=self, mode="w|", bufsize=1 << 18, format=tarfile.PAX_FORMAT) as archive:
            if folder.is_dir():
                archive.add(folder, arcname=name, filter=_plain)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Files and folders, without the names of their owner."""
    if not (member.isfile() or member.isdir()):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


__all__ = ["Archive"]
