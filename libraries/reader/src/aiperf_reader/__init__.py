"""Reads sockets in C: a loop that keeps up by itself, and a thread outside the interpreter's lock what that loop leaves.

A stamp of the kernel is that of the last segment that a read took.  A reader in Python waits for the interpreter, and what came
meanwhile is merged.  The loop's own reads (``read``) cost least.  The thread looks every 0.2 to 2 ms; stamp and bytes of each
of its reads stand in a ring until they are taken.

    reader = SocketReader.opened()            # ReaderError: why there is none
    loop.add_reader(reader.fileno(), handle, reader.take)  # in handle(reads): for record in reads(16): …
    loop.add_reader(reader.sockets(), handle, reader.read)
    token = reader.add(sock.fileno())         # a non-blocking socket with SO_TIMESTAMPNS
    reader.remove(token)                      # before the socket is closed
    reader.close()
"""

from __future__ import annotations

import resource
import zlib
from pathlib import Path

_VERSION = 4
"""``READER_VERSION`` of reader.h; an editable install may have a file that was compiled before the sources changed."""
_missing: str | None = None
try:
    import aiperf_reader._reader as _reader
except ModuleNotFoundError:
    _missing = "it was installed where there is no C compiler, or no headers of Python"
except ImportError as _error:
    _missing = str(_error)
else:
    if (_found := vars(_reader).get("VERSION", 1)) != _VERSION:
        _missing = f"it is of version {_found}, and {_VERSION} is needed; install aiperf-reader again"

Record = tuple[int, bytes | int, int, int, int]
"""A read: token; bytes, empty at the end of the stream, or the errno of an error; the kernel's stamp of its last segment (ns
of the wall clock, 0 without one); when it was read (ns of the monotonic clock: before the read, or behind it where that is the
only stamp); TCP data segments in it beyond its first, and above HIDDEN_BITS for how many ns before the stamp of the read the
socket was seen empty (0 where that is not known beyond the read before, and where no segment is hidden)."""
HIDDEN_BITS = 20
"""As of ``aiperf.sdk.transport``; a library does not need the kernel."""


_SOURCES = "module.c", "reader.c", "reader.h"


def stale_sources() -> Path | None:
    """The folder of the C sources where they stand beside the compiled file, and it was made from others; None else.

    An editable install keeps the file that it was made with.
    """
    folder = Path(__file__).parent
    made_from = 0 if _missing is not None else vars(_reader).get("SOURCES", 0)
    files = [folder / name for name in _SOURCES]
    if not made_from or not all(file.exists() for file in files):
        return None
    return None if zlib.crc32(b"".join(file.read_bytes() for file in files)) == made_from else folder


class ReaderError(Exception):
    """No reader can be had; the message says why."""


class SocketReader:
    """One thread, and the ring between it and the loop that made it.  All methods are the loop's.

    ``read`` is optional: without it the thread reads all, up to 2 ms late.  A full ring pauses the reading, and the servers
    feel it: memory is bounded.  Records of one socket come in order, its end or error last.
    """

    def __init__(
        self, descriptors: int, *, records: int = 1 << 14, size: int = 1 << 22, apart: bool = False, mark: bytes = b""
    ) -> None:  # fmt: skip
        """*descriptors*: numbers of sockets are below it.  *records*, *size* (bytes): of the ring, powers of two.

        *apart*: up to 32 segments that wait in a socket (16 KiB) are read one by one, each with its own stamp, unless the
        system has put them together.  It costs some calls of the system a segment: for connections that requests share.
        *mark*: 1 to 16 bytes that stand once in each event of all streams; b"" where nobody knows.  Where the loop has many
        reads to do, one with one mark at most is taken for one segment; each other read is counted.

        ReaderError where there is no compiled file, or the system refuses a thread or memory.
        """
        if _missing is not None:
            raise ReaderError(f"aiperf-reader has no compiled file for this machine: {_missing}")
        try:
            self._reader = _reader.Reader(descriptors, records, size, apart, mark)
        except OSError as error:
            raise ReaderError(f"the system refuses the reader's thread: {error.strerror or error}") from error
        self.fileno, self.add, self.remove = self._reader.fileno, self._reader.add, self._reader.remove
        self.quiet, self.take, self.close = self._reader.quiet, self._reader.take, self._reader.close
        self.sockets, self.read = self._reader.sockets, self._reader.read

    @classmethod
    def opened(cls, *, apart: bool = False, mark: bytes = b"") -> SocketReader:
        """For all descriptors that this process may have."""
        return cls(resource.getrlimit(resource.RLIMIT_NOFILE)[1] & 0x7FFF_FFFF, apart=apart, mark=mark)

    @property
    def reads(self) -> int:
        """Records so far, taken or not."""
        return self._reader.counts()["reads"]

    @property
    def pauses(self) -> tuple[int, int]:
        """How often the ring was full, and for how long in all, in ns."""
        counts = self._reader.counts()
        return counts["pauses"], counts["paused_ns"]


__all__ = ["HIDDEN_BITS", "ReaderError", "Record", "SocketReader", "stale_sources"]
