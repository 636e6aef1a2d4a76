"""Readiness of many sockets, through an epoll of our own inside the loop's.

Two reasons not to give every socket to the loop: uvloop stops watching a socket that has an error (a reset) without
telling anybody, and one callback for a batch of ready sockets costs less than one each.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Protocol

_BATCH = 64
"""Sockets served before the loop gets a turn: due times are kept by the loop."""

Call = Callable[[], None]


class Poller(Protocol):
    def reader(self, fd: int, call: Call | None) -> None:
        """Call when *fd* can be read, has ended or has an error; None stops it."""
        ...

    def writer(self, fd: int, call: Call | None) -> None:
        """Call when *fd* can be written or has an error; None stops it."""
        ...

    def forget(self, fd: int) -> None:
        """*fd* is about to be closed."""
        ...

    def close(self) -> None: ...


def make_poller(loop: asyncio.AbstractEventLoop, after: Call) -> Poller:
    """The best this platform has; *after* is called behind every batch of calls."""
    return EpollPoller(loop, after) if hasattr(select, "epoll") else LoopPoller(loop, after)


class EpollPoller:
    """Linux."""

    def __init__(self, loop: asyncio.AbstractEventLoop, after: Call) -> None:
        self._loop, self._after = loop, after
        self._epoll = select.epoll()
        self._readers: dict[int, Call] = {}
        self._writers: dict[int, Call] = {}
        self._fd = self._epoll.fileno()
        loop.add_reader(self._fd, self._ready)

    def reader(self, fd: int, call: Call | None) -> None:
        self._set(self._readers, fd, call)

    def writer(self, fd: int, call: Call | None) -> None:
        self._set(self._writers, fd, call)

    def forget(self, fd: int) -> None:
        known = self._readers.pop(fd, None) or self._writers.get(fd)
        self._writers.pop(fd, None)
        if known is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        self._epoll.close()

    def _set(self, calls: dict[int, Call], fd: int, call: Call | None) -> None:
        before = fd in self._readers or fd in self._writers
        if call is None:
            calls.pop(fd, None)
        else:
            calls[fd] = call
        mask = (select.EPOLLIN if fd in self._readers else 0) | (select.EPOLLOUT if fd in self._writers else 0)
        if not mask:
            if before:
                self._epoll.unregister(fd)
        elif before:
            self._epoll.modify(fd, mask)
        else:
            self._epoll.register(fd, mask)

    def _ready(self) -> None:
        readers, writers = self._readers, self._writers
        for fd, events in self._epoll.poll(0, _BATCH):
            if events & ~select.EPOLLOUT:  # data, an end, an error: reading tells which
                call = readers.get(fd)
                if call is not None:
                    call()
                    if events & select.EPOLLIN:
                        continue
            if events & ~select.EPOLLIN:
                call = writers.get(fd)
                if call is not None:
                    call()
        self._after()


class LoopPoller:
    """Elsewhere: the loop's own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, after: Call) -> None:
        self._loop, self._after = loop, after

    def _with_after(self, call: Call) -> None:
        call()
        self._after()

    def reader(self, fd: int, call: Call | None) -> None:
        if call is None:
            self._loop.remove_reader(fd)
        else:
            self._loop.add_reader(fd, self._with_after, call)

    def writer(self, fd: int, call: Call | None) -> None:
        if call is None:
            self._loop.remove_writer(fd)
        else:
            self._loop.add_writer(fd, self._with_after, call)

    def forget(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        self._loop.remove_writer(fd)

    def close(self) -> None:
        return
