"""Imports of packages, each in a process of its own: what else they do, and their manifests compared with what they have.

The process is a fork of this one, so that a package costs its own import alone; nothing of it reaches this process.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from importlib import import_module, metadata
from pathlib import Path

import msgspec
from aiperf.parts.loading import IMPORTS
from aiperf.sdk.registry import Descriptor, InstalledPlugins
from msgspec import Struct

from aiperf_command_plugins.checks import faults

AT_ONCE = 4
"""Processes that import at once."""
SLOW_S = 2.0
LIMIT_S = 120.0
"""The longest that all imports of a package and the comparison may take; each import has its own, shorter limit."""
_IGNORED = {"LINES", "COLUMNS"}


class _Told(Struct, frozen=True):
    """What the process tells: the time of the imports, sentences on the package, and on plugins by their number."""

    took_s: float = 0.0
    package: tuple[str, ...] = ()
    faults: tuple[tuple[int, str], ...] = ()
    dead: bool = False


class Tried(Struct, frozen=True):
    """Faults of a package, then those of its plugins.  dead: its import ended the process, or did not end."""

    package: tuple[str, ...]
    faults: tuple[tuple[Descriptor, str], ...]
    dead: bool = False


def tried(registry: InstalledPlugins, packages: Sequence[Sequence[Descriptor]]) -> list[Tried]:
    """Try the imports, the manifest and the requirements of each package."""
    _preload()
    found: dict[int, Tried] = {}
    waiting = list(enumerate(packages))
    running: dict[int, _Child] = {}
    again: dict[int, float] = {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            number, plugins = waiting.pop(0)
            child = _Child(registry, plugins, number)
            running[child.pipe] = child
        ready, _, _ = select.select(list(running), [], [], 0.2)
        for pipe, child in list(running.items()):
            if not child.late and (pipe not in ready or child.read()):
                continue
            del running[pipe]
            told, number, plugins = child.end(), child.number, child.plugins
            if told.took_s > SLOW_S and number not in again:  # the machine may have been busy
                again[number] = told.took_s
                waiting.append((number, plugins))
                continue
            slow = _slow(min(told.took_s, again.get(number, told.took_s)))
            faults = tuple((plugins[at], sentence) for at, sentence in told.faults)
            found[number] = Tried((*_unmet(plugins[0].distribution), *slow, *told.package), faults, told.dead)
    return [found[number] for number in range(len(packages))]


class _Child:
    """A forked process that imports one package, and tells its faults through a pipe."""

    def __init__(self, registry: InstalledPlugins, plugins: Sequence[Descriptor], number: int) -> None:
        self.number, self.plugins = number, plugins
        self._text = b""
        self._until = time.monotonic() + LIMIT_S
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  # closed by end()
        self.pipe, ours = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._process = os.fork()
        if self._process == 0:
            try:
                os.close(self.pipe)
                _detach(self._said.fileno())
                told = _told(registry, plugins, self._said.fileno())
                with os.fdopen(ours, "wb") as file:
                    file.write(msgspec.json.encode(told))
            finally:
                os._exit(0)
        os.close(ours)

    @property
    def late(self) -> bool:
        return time.monotonic() > self._until

    def read(self) -> bool:
        """Take what is there; False at the end."""
        more = os.read(self.pipe, 1 << 16)
        self._text += more
        return bool(more)

    def end(self) -> _Told:
        late = self.late
        if late:
            os.killpg(self._process, signal.SIGKILL)
        _, status = os.waitpid(self._process, 0)
        os.close(self.pipe)
        with self._said as file:
            file.seek(0)
            lines = file.read(1 << 16).decode(errors="replace").split("\n")
        if self._text:
            return msgspec.json.decode(self._text, type=_Told)
        if late:
            return _Told(package=(f"its imports did not end within {LIMIT_S:g} s: import nothing that waits",), dead=True)
        code = os.waitstatus_to_exitcode(status)
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        last = next((f": {line.strip()}" for line in reversed(lines) if line.strip()), "")
        return _Told(package=(f"its import ended the process ({how}){last}; raise an exception instead",), dead=True)


def _preload() -> None:
    """Import what most packages import, so that the forks share it."""
    for name in ("aiperf.sdk.exporter", "aiperf.sdk.metric", "aiperf.sdk.endpoint", "aiperf.parts.tools", "numpy", "asyncio"):
        import_module(name)


def _detach(output: int) -> None:
    os.setsid()
    empty = os.open(os.devnull, os.O_RDONLY)
    for descriptor, number in ((empty, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, number)


def _told(registry: InstalledPlugins, plugins: Sequence[Descriptor], output: int) -> _Told:
    before = _Surroundings()
    began, waited = time.perf_counter(), _waited_s()
    for plugin in plugins:
        module = plugin.value.partition(":")[0]
        # What it raises is found again, and told, where the plugin is loaded.
        with contextlib.suppress(Exception, SystemExit), IMPORTS.limited(module, plugin, put_back=False):
            if plugin.broken is None:
                import_module(module)
    took_s = time.perf_counter() - began - (_waited_s() - waited)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    said = os.pread(output, 200, 0).decode(errors="replace").strip()
    sentences = list(before.changes())
    if said:
        sentences.append(f"its import prints {said.splitlines()[0]!r}: write nothing there, and log where something happens")
    numbers = {id(plugin): number for number, plugin in enumerate(plugins)}
    found = tuple((numbers[id(plugin)], sentence) for plugin, sentence in faults(registry, plugins))
    late = any("its import did not end within" in sentence for _, sentence in found)
    return _Told(0.0 if late else took_s, tuple(sentences), found)


class _Surroundings:
    """What an import must leave as it is."""

    def __init__(self) -> None:
        self._directory, self._umask, self._environment = Path.cwd(), _umask(), dict(os.environ)
        self._handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def changes(self) -> Iterator[str]:
        """A sentence for each change since the object was made; puts back what the next check needs."""
        try:
            directory = str(Path.cwd())
        except OSError:
            directory = "one that is gone"
        if directory != str(self._directory):
            os.chdir(self._directory)
            yield f"its import changes the working directory to {directory}: leave it, and use absolute paths"
        if (mask := _umask()) != self._umask:
            os.umask(self._umask)
            yield f"its import changes the umask from {self._umask:03o} to {mask:03o}: leave it, and chmod the own files"
        names = {name for name, _ in set(os.environ.items()) ^ set(self._environment.items())} - _IGNORED
        if names:
            yield f"its import changes the environment ({', '.join(sorted(names)[:5])}): leave it to the user"
        for number, handler in self._handlers.items():
            if signal.getsignal(number) != handler:
                yield f"its import takes the signal {number.name}: leave it to aiperf, which ends runs by it"
        for thread in threading.enumerate():
            if thread is not threading.main_thread() and not thread.daemon:
                yield f"its import leaves the thread {thread.name!r}: start it where it is used, as a daemon"


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _waited_s() -> float:
    """For how long the main thread has waited for a processor; 0 where the system doesn't say."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _slow(took_s: float) -> list[str]:
    if took_s <= SLOW_S:
        return []
    sentence = f"its import takes {took_s:.1f} s, where at most {SLOW_S:g} s are expected, since every run waits for it"
    return [f"{sentence}: import what is heavy where it is used"]


def _unmet(distribution: str) -> list[str]:
    """The requirements of the distribution that aren't installed; none where ``packaging``, which pytest brings, isn't."""
    try:
        from packaging.requirements import InvalidRequirement, Requirement

        lines = metadata.requires(distribution) or []
    except (ImportError, metadata.PackageNotFoundError):
        return []
    found = []
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            found.append(f"its requirement {line!r} can't be read: write it as in name>=1.2")
            continue
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            found.append(f"its requirement {requirement} is not installed: pip install '{requirement}'")
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            sentence = f"its requirement {requirement} is not met by the installed {version}"
            found.append(f"{sentence}: pip install '{requirement}'")
    return found
