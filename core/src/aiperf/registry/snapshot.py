"""What was found, and the one file in the user's cache that remembers it, with the environment it is true for."""

from __future__ import annotations

import contextlib
import os
import sys
import zlib
from pathlib import Path

import msgspec
from msgspec import Struct

from aiperf import __version__
from aiperf.descriptor import Descriptor, OptionSpec

_FORMAT = 3
_KEPT = 32


class Stamp(Struct, frozen=True, array_like=True):
    """A path as it was when it was read; -1 where it wasn't there."""

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


class Found(Struct, frozen=True):
    """What is installed, conflicts unresolved.

    problems: sentences about distributions that could not be read at all, or that should not be here.
    manifests: every place where a manifest was, or would have been.
    """

    candidates: tuple[Descriptor, ...]
    kernel_options: tuple[OptionSpec, ...]
    problems: tuple[str, ...] = ()
    manifests: tuple[Stamp, ...] = ()


class _Snapshot(Struct, frozen=True):
    format: int
    kernel: str
    entries: tuple[Stamp, ...]
    found: Found


def cache_directory() -> Path:
    """``$AIPERF_CACHE_DIR``, else ``$XDG_CACHE_HOME/aiperf``, else ``~/.cache/aiperf``."""
    chosen = os.environ.get("AIPERF_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "aiperf"


def _entries() -> tuple[Stamp, ...]:
    return tuple(Stamp.of(entry) for entry in sys.path)


def _file() -> Path:
    """One file an environment, so that two on one machine don't push each other out."""
    here = str(Path.cwd()) if "" in sys.path else ""
    key = "\0".join((__version__, sys.version, here, *sys.path)).encode()
    return cache_directory() / f"plugins-{zlib.crc32(key):08x}.json"


def load() -> Found | None:
    """What was found last time, None unless every path is as it was then."""
    try:
        kept = msgspec.json.decode(_file().read_bytes(), type=_Snapshot)
    except (OSError, RuntimeError, msgspec.MsgspecError):  # RuntimeError: there is no home directory
        return None
    if (kept.format, kept.kernel) != (_FORMAT, __version__) or kept.entries != _entries():
        return None
    return kept.found if all(Stamp.of(stamp.path) == stamp for stamp in kept.found.manifests) else None


def save(found: Found) -> None:
    """Remember it.  Where the cache can't be written everything is read again next time, which is only slower."""
    with contextlib.suppress(OSError, RuntimeError):
        path = _file()
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        try:
            draft.write_bytes(msgspec.json.encode(_Snapshot(_FORMAT, __version__, _entries(), found)))
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        kept = sorted(path.parent.glob("plugins-*.json"), key=lambda file: file.stat().st_mtime_ns)
        for old in kept[:-_KEPT]:
            old.unlink(missing_ok=True)
