"""The result of discovery, and its file in the user's cache, which is valid for one environment."""

from __future__ import annotations

import contextlib
import os
import sys
import zlib
from pathlib import Path

import msgspec
from msgspec import Struct

from aiperf import __version__
from aiperf.sdk.descriptor import Descriptor, OptionSpec

_FORMAT = 5
_MOST_FILES = 32


class Stamp(Struct, frozen=True, array_like=True):
    """Time and size of a path when it was read; -1 where there was no such path."""

    path: str
    mtime_ns: int
    size: int

    @classmethod
    def of(cls, path: str) -> Stamp:
        try:
            seen = os.stat(path or ".")  # noqa: PTH116  twice as fast, and done for every path at every start
        except OSError:
            return cls(path, -1, -1)
        # A directory's size says nothing that its time doesn't.
        return cls(path, seen.st_mtime_ns, seen.st_size if seen.st_mode & 0o170000 == 0o100000 else 0)


class Discovery(Struct, frozen=True):
    """What is installed, conflicts unresolved.

    problems: sentences on distributions that cannot be read, or should not be installed.
    manifests: every path where a manifest is, or would be.
    """

    candidates: tuple[Descriptor, ...]
    kernel_options: tuple[OptionSpec, ...]
    problems: tuple[str, ...] = ()
    manifests: tuple[Stamp, ...] = ()


_Snapshot = tuple[int, str, tuple[Stamp, ...], Discovery]
"""The file: its format, the kernel's version, the entries of ``sys.path``, and what was found there."""


def cache_directory() -> Path:
    """``$AIPERF_CACHE_DIR``, else ``$XDG_CACHE_HOME/aiperf``, else ``~/.cache/aiperf``."""
    own, base = os.environ.get("AIPERF_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME")
    return Path(own) if own else (Path(base) if base else Path("~/.cache").expanduser()) / "aiperf"


def _entries() -> tuple[Stamp, ...]:
    return tuple(Stamp.of(entry) for entry in sys.path)


def _file() -> Path:
    """A file for each environment, so that two environments don't overwrite each other's."""
    here = str(Path.cwd()) if "" in sys.path else ""
    key = "\0".join((__version__, sys.version, here, *sys.path)).encode()
    return cache_directory() / f"plugins-{zlib.crc32(key):08x}.json"


def load() -> Discovery | None:
    """The discovery of an earlier start; None unless every path is unchanged."""
    try:
        *circumstances, discovery = msgspec.json.decode(_file().read_bytes(), type=_Snapshot)
    except (OSError, RuntimeError, msgspec.MsgspecError):  # RuntimeError: there is no home directory
        return None
    if circumstances != [_FORMAT, __version__, _entries()]:
        return None
    return discovery if all(Stamp.of(stamp.path) == stamp for stamp in discovery.manifests) else None


def save(discovery: Discovery) -> None:
    """Write the discovery.  Where the cache can't be written, the next start reads all packages again."""
    with contextlib.suppress(OSError, RuntimeError):
        path = _file()
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        try:
            draft.write_bytes(msgspec.json.encode((_FORMAT, __version__, _entries(), discovery)))
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        files = sorted(path.parent.glob("plugins-*.json"), key=lambda file: file.stat().st_mtime_ns)
        for old in files[:-_MOST_FILES]:
            old.unlink(missing_ok=True)
