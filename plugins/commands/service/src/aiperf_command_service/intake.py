"""The intake of a service: posted files are checked, their keys kept out of the disk, and put into the queue."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
from aiperf_pages.guard import Refusal

from aiperf_command_service.book import Book, Entry
from aiperf_command_service.child import environment, words
from aiperf_command_service.messages import Ask, Found
from aiperf_command_service.ready import CHECK_S, Ready

_MOST_CHECKS = 2
"""Files that are checked at a time, each in a process."""
_RETRY_S = 10
_USAGE_S = 5.0
_FREE_BYTES = 64 << 20
_SECRET = "POSTED_SECRET_"


class Limits(NamedTuple):
    """queue, keep, quota: runs that may wait, ended runs that are kept, bytes of all (None: no bound).  data: resolved."""

    queue: int
    keep: int
    quota: int | None
    data: Path | None
    variables: Mapping[str, str]
    urls: tuple[str, ...]


class Faulty(Refusal):
    """422: the faults of a posted file."""

    def __init__(self, found: Found) -> None:
        count = len(found.faults)
        super().__init__(422, f"the file has {count} fault{'' if count == 1 else 's'}: {found.faults[0].sentence}")
        self.found = found


class Intake:
    """Takes runs into *book*.  tell: called once one is there.

    secrets: by run, the variables that stand for the keys of its file.  ending: the service takes no run any more.
    ready: checks posted files, where it can; None, or where it can't: a process for each.
    """

    def __init__(self, book: Book, limits: Limits, tell: Callable[[], Awaitable[None]]) -> None:
        self.book, self.limits, self._tell, self._clock = book, limits, tell, time.time
        self.ending = False
        self.secrets: dict[str, dict[str, str]] = {}
        self._checking = asyncio.Semaphore(_MOST_CHECKS)
        self._reserved = 0
        """Runs that are being checked, and have a place in the queue."""
        self._coming: dict[str, asyncio.Future[Entry]] = {}
        self._usage = (-_USAGE_S, 0)
        self._trusted = False
        self.ready: Ready | None = None

    async def take_own(self, file: Path) -> Entry:
        """Take the operator's own file.

        Raises:
            Refusal, OSError: As :meth:`take`; the file can't be read.
        """
        self._trusted = True
        form = "json" if file.suffix.lower() == ".json" else "yaml"
        made, _ = await self.take(file.read_bytes(), form, "", dry=False, trusted=True)
        assert isinstance(made, Entry)
        return made

    @property
    def variables(self) -> dict[str, str]:
        """The environment of runs."""
        return dict(os.environ) if self._trusted else environment(self.limits.variables)

    def measure_again(self) -> None:
        """Files have come or gone: look at the disk when it is asked for next."""
        self._usage = (-_USAGE_S, 0)

    async def take(
        self, content: bytes, form: str, key: str, *, dry: bool, trusted: bool = False
    ) -> tuple[Entry | Found, bool]:
        """Check a posted file and put it into the queue; the entry, and whether it is new.  *dry*: what it would run instead.

        Raises:
            Refusal: 422 with all faults, 409 for a key that came with another file, 429 or 503 where it can't be taken now.
        """
        digest = hashlib.sha256(content).hexdigest()
        if key and not dry:
            if (known := self.book.by_key(key)) is not None:
                return self._same(known, digest), False
            if (coming := self._coming.get(key)) is not None:
                return self._same(await asyncio.shield(coming), digest), False
        if not dry:
            self.refuse_if_full()
        future: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait for it
        if key and not dry:
            self._coming[key] = future
        self._reserved += not dry
        try:
            made = await self._taken(content, form, key, digest, dry=dry, trusted=trusted)
            if isinstance(made, Entry):
                future.set_result(made)
            return made, True
        except BaseException as error:
            future.set_exception(error if isinstance(error, Refusal) else Refusal(503, "the run could not be taken; try again"))
            raise
        finally:
            self._reserved -= not dry
            if key:
                self._coming.pop(key, None)

    def _same(self, entry: Entry, digest: str) -> Entry:
        if entry.digest != digest:
            raise Refusal(
                409, f"the Idempotency-Key came before with another file, as run {entry.id}; give each run a key of its own"
            )
        return entry

    def refuse_if_full(self) -> None:
        """
        Raises:
            Refusal: 503 while the service ends, at its quota or on a full disk, 429 for a full queue.
        """
        again = {"Retry-After": str(_RETRY_S)}
        if (why := self.unready()) is not None:
            raise Refusal(503, why, again)
        if len(self.book.waiting()) + self._reserved >= self.limits.queue:
            raise Refusal(429, f"{self.limits.queue} runs wait, which is the most; try again later", again)

    def unready(self) -> str | None:
        """Why no run is taken now; None where one is."""
        if self.ending:
            return "the service is ending, and takes no run"
        quota = self.limits.quota
        if quota is not None and (used := self.used_bytes()) >= quota:
            return f"the runs take {used:,} bytes of the quota of {quota:,}: DELETE some"
        free = self.free_bytes()
        if free < _FREE_BYTES:
            return f"the disk of {self.book.directory} has {free >> 20} MiB left"
        return None

    def used_bytes(self) -> int:
        now_s = time.monotonic()
        if now_s - self._usage[0] >= _USAGE_S:
            self._usage = now_s, self.book.bytes()
        return self._usage[1]

    def free_bytes(self) -> int:
        about = os.statvfs(self.book.directory)
        return about.f_bavail * about.f_frsize

    async def _taken(self, content: bytes, form: str, key: str, digest: str, *, dry: bool, trusted: bool) -> Entry | Found:
        id_ = self.book.new_id()
        found = await self._checked(content, self.book.directory / "runs" / id_ / "results", trusted=trusted)
        if found.faults:
            raise Faulty(found)
        if dry:
            return found
        stored, kept = self._without_secrets(content, found)
        entry = Entry(id_, self.book.next_number(), found.label, [], posted_s=self._clock(), key=key, digest=digest, form=form)
        entry.secrets = len(kept)
        entry.command = ["aiperf", *words(self.book.file(entry), self.book.results(entry))]
        try:
            self.book.add(entry, stored)
        except OSError as error:
            raise Refusal(
                503, f"the run can't be written: {error.strerror or error}", {"Retry-After": str(_RETRY_S)}
            ) from error
        self.secrets[entry.id] = kept
        await self._tell()
        return entry

    def _without_secrets(self, content: bytes, found: Found) -> tuple[bytes, dict[str, str]]:
        """The file with a variable in place of each secret that stands in it, and the variables' values."""
        kept: dict[str, str] = {}
        text = content.decode(errors="surrogateescape")
        for secret in reversed(found.secrets):  # longer ones first, which others may be a part of
            name = f"{_SECRET}{len(kept) + 1}"
            plain = re.escape(secret)  # also as the default of a variable, which is replaced with it
            whole = re.compile(rf"\$\{{\w+:{plain}\}}|(?<![\w-]){plain}(?![\w-])")
            if whole.search(text):
                text, kept[name] = whole.sub(f"${{{name}}}", text), secret
            elif secret not in self.variables.values():
                hint = "write it plainly, or as ${NAME} of a variable that the service allows"
                raise Refusal(422, f"a key or a header of the file is written so that it can't be kept out of the disk; {hint}")
        return text.encode(errors="surrogateescape"), kept

    async def _checked(self, content: bytes, results: Path, *, trusted: bool) -> Found:
        data = self.limits.data
        ask = Ask(str(results), None if data is None else str(data), list(self.limits.urls), trusted, content)
        try:
            out = None if self.ready is None or trusted else await self.ready.check(ask)
            if out is None:
                out = await self._checked_anew(ask)
        except TimeoutError as error:
            raise Refusal(422, f"the file took more than {CHECK_S:g} s to check") from error
        try:
            return msgspec.json.decode(out, type=Found)
        except msgspec.MsgspecError:
            raise Refusal(422, "the file can't be checked: reading it takes too much time or memory") from None

    async def _checked_anew(self, ask: Ask) -> bytes:
        async with self._checking:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "aiperf_command_service.checking", stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, env=self.variables, cwd=self.where,
            )  # fmt: skip
            try:
                return (await asyncio.wait_for(process.communicate(msgspec.json.encode(ask)), CHECK_S))[0]
            except (TimeoutError, asyncio.CancelledError):
                process.kill()
                await process.wait()
                raise

    @property
    def where(self) -> Path:
        """The working directory of runs, from which they name files."""
        return Path.cwd() if self._trusted else self.limits.data or self.book.directory


__all__ = ["Faulty", "Intake", "Limits"]
