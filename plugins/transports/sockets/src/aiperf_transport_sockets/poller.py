"""How sockets are read: by the loop in Python, or in C by the loop and a thread outside the interpreter's lock."""

from __future__ import annotations

import asyncio
import logging
import os
import select
import socket
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING

from aiperf.sdk.errors import ConfigError

if TYPE_CHECKING:
    from aiperf_reader import Record, SocketReader

BATCH = 16
"""Sockets served before the loop continues: its timers keep the due times, and a read takes about 25 µs."""
FEW, TURN_NS = 4, 200_000
"""Sockets written to before the clock is looked at, and time until the loop continues: 64 KiB take 15 to 80 µs."""
AGAIN = 4
"""Reads behind which there are probably more; a turn of the loop costs as much as a read."""
_NOBODY = None, None
_VARIABLE, _READERS = "AIPERF_READER", ("auto", "compiled", "python")

log = logging.getLogger("aiperf.transports.kernel")

Call = Callable[[], None]


def chosen_reader(*, shared: bool = False, mark: bytes = b"") -> SocketReader | None:
    """The thread that reads, as ``AIPERF_READER`` says; None: the loop reads.

    *shared*: requests share a connection, and segments of several are read one by one.  *mark*: stands once in each event of
    what sockets bring; b"" where nothing does.
    ``auto``, the default, takes the thread wherever it can be had, and logs why where it can't; ``compiled`` demands it.

    Raises:
        ConfigError: The variable has another value, or what it demands can't be had.
    """
    value = os.environ.get(_VARIABLE, "").strip().lower() or "auto"
    if value not in _READERS:
        raise ConfigError(f"{_VARIABLE} is {value!r}; it must be auto, compiled or python")
    if value == "python":
        log.debug("the workers' loops read the sockets: %s is python", _VARIABLE)
        return None
    from aiperf_reader import ReaderError, SocketReader, stale_sources

    try:
        reader = SocketReader.opened(apart=shared, mark=mark)
    except ReaderError as error:
        if value == "compiled":
            raise ConfigError(f"{_VARIABLE} is compiled, and {error}; {_VARIABLE}=python reads without it") from None
        log.info("the workers' loops read the sockets, so that more chunks merge on a busy machine: %s", error)
        return None
    if (stale := stale_sources()) is not None:
        log.warning("the sockets' reader was compiled from other sources than %s has; compile it again: make install", stale)
    log.debug("each worker's sockets are read in C, and what its loop leaves by a thread outside the interpreter's lock")
    return reader


class Poller:
    """Calls back for ready sockets, through an epoll of its own inside the loop's; *after* is called behind every batch.

    Two reasons not to give every socket to the loop: uvloop stops watching a socket that has an error (a reset) without
    telling anybody, and one callback for a batch of ready sockets costs less than one each.

    wakeups: how often the loop was woken because something could be read.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, after: Call) -> None:
        self._loop, self._after = loop, after
        self._epoll = select.epoll()
        self._calls: dict[int, tuple[Call | None, Call | None]] = {}
        self._fd, self.wakeups = self._epoll.fileno(), 0
        loop.add_reader(self._fd, self._ready)

    def watch(self, fd: int, readable: Call | None, writable: Call | None = None) -> None:
        """Call *readable* when *fd* can be read or has ended, *writable* when it can be written; either at an error.

        Two times None stops it, and must before *fd* is closed.
        """
        if readable is None and writable is None:
            if self._calls.pop(fd, None) is not None:
                self._epoll.unregister(fd)
            return
        mask = (select.EPOLLIN if readable is not None else 0) | (select.EPOLLOUT if writable is not None else 0)
        (self._epoll.modify if fd in self._calls else self._epoll.register)(fd, mask)
        self._calls[fd] = readable, writable

    def is_quiet(self, sock: socket.socket) -> bool:
        """Whether an idle socket is open and has nothing to read: the server may have closed it since the last loop turn."""
        try:
            sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False  # the end of the connection, or bytes without a request

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        self._epoll.close()

    def _ready(self) -> None:
        self.wakeups += 1
        self._serve(BATCH)
        self._after()

    def _serve(self, most: int) -> int:
        """Call for so many ready sockets at most; how many there were.  The system puts them behind those that wait."""
        calls, ready = self._calls, self._epoll.poll(0, most)
        for fd, events in ready:
            # Data, an end, an error: reading tells which.
            if events & ~select.EPOLLOUT and (call := calls.get(fd, _NOBODY)[0]) is not None:
                call()
                if events & select.EPOLLIN:
                    continue
            if events & ~select.EPOLLIN and (call := calls.get(fd, _NOBODY)[1]) is not None:
                call()
        return len(ready)


class ReaderPoller(Poller):
    """*readable* is called with each read of its socket.

    The loop reads by itself as long as it keeps up.  A thread outside the interpreter's lock looks now and then, and reads what
    the loop has left.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, after: Call, reader: SocketReader) -> None:
        super().__init__(loop, after)
        self._reader = reader
        self._tokens: dict[int, int] = {}
        self._came: dict[int, Callable[[bytes | int, int, int, int], None]] = {}
        self._reader_fds = reader.fileno(), reader.sockets()
        for each, reads in zip(self._reader_fds, (reader.take, reader.read), strict=True):
            loop.add_reader(each, self._take, reads)

    def watch(self, fd: int, readable: Callable[..., None] | None, writable: Call | None = None) -> None:
        if readable is None:
            if (token := self._tokens.pop(fd, None)) is not None:
                del self._came[token]
                self._reader.remove(token)
        elif fd not in self._tokens:
            token = self._tokens[fd] = self._reader.add(fd)
            self._came[token] = readable
        super().watch(fd, None, writable)

    def is_quiet(self, sock: socket.socket) -> bool:
        token = self._tokens.get(sock.fileno())
        return token is not None and self._reader.quiet(token)

    def close(self) -> None:
        for each in self._reader_fds:
            self._loop.remove_reader(each)
        self._reader.close()
        super().close()

    def _ready(self) -> None:
        """Connect and write: a few sockets at a time, for a bounded time, whatever these write."""
        until_ns, left = monotonic_ns() + TURN_NS, BATCH
        while left > 0 and self._serve(FEW) == FEW and monotonic_ns() < until_ns:
            left -= FEW
        self._after()

    def _take(self, reads: Callable[[int], list[Record]]) -> None:
        """Hand over what the thread has read, or what can be read now; again where that was much."""
        came = self._came
        self.wakeups += 1
        left = count = BATCH
        while left > 0 and count >= AGAIN:
            records = reads(left)
            count = len(records)
            left -= count
            for token, data, kernel_ns, read_ns, hidden in records:
                if (call := came.get(token)) is not None:
                    call(data, kernel_ns, read_ns, hidden)
        self._after()
