"""Discovery of installed plugins from entry points and manifests, and its cache.  Nothing is imported."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipimport import zipimporter

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from aiperf import __version__, environment
from aiperf.foreign import SUITE
from aiperf.registry import manifest
from aiperf.registry.manifest import Manifest, ManifestError
from aiperf.sdk.categories import CATEGORIES
from aiperf.sdk.descriptor import Descriptor, OptionSpec, canonical, normal

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

PREFIX = "aiperf."
KERNEL = "aiperf-core"
FOREIGN = "aiperf"
"""A distribution of this name is another program, which owns the same import name and command."""

_VALUE = re.compile(r"[\w.]+:[\w.]+")

_FORMAT = 5
"""Version of the file that keeps what was found in the installed packages; another is not read."""
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


def required(requirements: list[str]) -> frozenset[str]:
    """Names of the distributions in the meta-package's requirements (``aiperf-plot>=0.1; extra == 'all'``)."""
    named = (re.match(r"\s*([A-Za-z0-9][\w.-]*)", line) for line in requirements)
    return frozenset(normal(match[1]) for match in named if match)


def discover() -> Discovery:
    """Read all distributions on ``sys.path``; of two with one name the first counts, as for imports."""
    import importlib.metadata  # costs 20 ms, and a start with a valid cache needs none of it

    problems: list[str] = []
    installed: dict[str, Distribution] = {}
    for distribution in importlib.metadata.distributions():
        try:
            name = distribution.metadata["Name"]
        except Exception:  # noqa: BLE001  a half-removed distribution, which has no usable name
            continue
        if name:
            installed.setdefault(normal(name), distribution)
    suite = installed.get(SUITE)
    listed = required(list(suite.requires or ())) if suite else frozenset[str]()
    in_suite = listed | {KERNEL, SUITE} if listed else listed
    if FOREIGN in installed:
        problems.append(
            f"the distribution 'aiperf' {installed[FOREIGN].version} is installed beside {KERNEL}; both own the import name"
            " and the command 'aiperf': uninstall it, then reinstall aiperf-core, or use an environment of its own"
        )
    packages: list[_Package] = []
    groups: dict[str, tuple[OptionSpec, ...]] = {}
    options: tuple[OptionSpec, ...] = ()
    stamps: dict[str, Stamp] = {}
    for name, distribution in sorted(installed.items()):
        try:
            points = [point for point in distribution.entry_points if point.group.startswith(PREFIX)]
        except Exception as error:  # noqa: BLE001  metadata of third parties
            problems.append(f"the entry points of {name} can't be read: {error}")
            continue
        if not points:
            continue
        packages.append(package := _Package(distribution, points, in_suite, stamps))
        groups |= package.manifest.option_groups
        if name == KERNEL:
            options = package.manifest.options
    for package in packages:
        package.lend(groups)
    candidates = [plugin for package in packages for plugin in package.descriptors(groups)]
    return Discovery(tuple(candidates), options, tuple(problems), tuple(stamps.values()))


class _Package:
    """One distribution that has plugins.

    It is first party where it is the kernel, or the suite requires it; where no suite is installed, where its manifest says
    ``first_party:`` with the distribution's own name, which a fork under another name doesn't.  First party loses ties of
    names against third parties, so that a fork overrides.
    """

    def __init__(
        self, distribution: Distribution, points: list[EntryPoint], suite: frozenset[str],
        stamps: dict[str, Stamp],
    ) -> None:  # fmt: skip
        self._distribution = distribution
        self._name = normal(distribution.metadata["Name"])
        self._points, self._stamps = points, stamps
        self._where, self._cause = manifest.FILE_NAME, ""
        self.manifest = Manifest(manifest.SCHEMA_VERSION, "")
        try:
            self._where, text = self._find()
            self.manifest = manifest.read(text)
        except ManifestError as error:
            self._cause = f"its manifest {self._where} {error}"
        self._first_party = self._name in suite or (not suite and self.manifest.first_party == self._name)

    def lend(self, groups: dict[str, tuple[OptionSpec, ...]]) -> None:
        """Add the option groups that its rows name and no distribution with plugins has: those of libraries."""
        rows = (row for row in self.manifest.plugins if isinstance(row, dict))
        named = [name for row in rows for name in row.get("option_groups") or () if isinstance(name, str)]
        for top in {name.partition(":")[0].partition(".")[0] for name in named if name not in groups}:
            with contextlib.suppress(ManifestError):  # the row then lacks its group, and says so
                for path, loader in self._beside(top) or ():
                    text = self._text(path, loader)
                    if text is not None:
                        groups |= manifest.read(text).option_groups

    def descriptors(self, groups: Mapping[str, tuple[OptionSpec, ...]]) -> Iterator[Descriptor]:
        """All plugins of the distribution; a plugin without entry point or manifest row is broken.

        *groups*: the option groups of all distributions.
        """
        points: dict[tuple[str, str], EntryPoint] = {}
        for point in self._points:
            key = point.group.removeprefix(PREFIX), canonical(point.name)
            if points.setdefault(key, point) is not point:
                yield self._broken(*key, point.value, f"the distribution has two entry points for {key[0]}:{key[1]}")
        seen = set()
        for plain in self.manifest.plugins:
            row = plain if isinstance(plain, dict) else {}
            category, name = str(row.get("category", "?")), str(row.get("name", "?"))
            if (category, canonical(name)) in seen:
                cause = f"its manifest {self._where} has two rows for {category}:{canonical(name)}"
                yield self._broken(category, name, "", cause)
                continue
            seen.add((category, canonical(name)))
            found = points.pop((category, canonical(name)), None)
            yield self._row(plain, groups, category, name, found.value if found else "")
        for (category, name), point in points.items():
            no_row = f"its manifest {self._where} has no row for {category}:{name}"
            why = no_row if category in CATEGORIES else manifest.unknown_category(category)
            yield self._broken(category, name, point.value, self._cause or why)

    def _row(
        self, plain: object, groups: Mapping[str, tuple[OptionSpec, ...]], category: str, name: str, value: str
    ) -> Descriptor:
        cause, where = None, self._where
        try:
            row = manifest.read_row(plain)
            options = manifest.with_groups(row, groups)
        except ManifestError as error:
            return self._broken(category, name, value, f"its manifest {where} {error}")
        if category not in CATEGORIES:
            cause = manifest.unknown_category(category)
        elif not value:
            cause = f"its manifest {where} has a row for {category}:{name}, but the distribution has no such entry point"
        elif not _VALUE.fullmatch(value):
            cause = f"its entry point is {value!r}, which is not module:object"
        fields: dict[str, Any] = asdict(row)
        del fields["option_groups"]
        fields |= {"name": canonical(name), "aliases": tuple(map(canonical, row.aliases)), "options": options, "broken": cause}
        return self._descriptor(value=value, api=self.manifest.api, **fields)

    def _broken(self, category: str, name: str, value: str, cause: str) -> Descriptor:
        return self._descriptor(category=category, name=canonical(name), value=value, broken=cause)

    def _descriptor(self, **fields: Any) -> Descriptor:
        version, ours = self._distribution.version, self._first_party
        return Descriptor(distribution=self._name, version=version, first_party=ours, **fields)

    def _find(self) -> tuple[str, bytes]:
        """Path and text of the manifest: beside the top-level package, else from the file list; in a directory or a zip."""
        tops = sorted({point.value.partition(":")[0].partition(".")[0].strip() for point in self._points})
        missing: list[str] = []
        for path, loader in self._places(tops, missing):
            text = self._text(path, loader)
            if text is not None:
                return path, text
        if missing:
            raise ManifestError(f"can't be looked for: there is no package {' or '.join(map(repr, missing))}")
        raise ManifestError(f"is missing from package {' or '.join(map(repr, tops))}")

    def _places(self, tops: list[str], missing: list[str]) -> Iterator[tuple[str, object]]:
        """Paths where the manifest may be, with their loaders; packages that aren't there go to *missing*."""
        for top in tops:
            beside = self._beside(top)
            if beside is None:
                missing.append(top)
            yield from beside or ()
        for file in self._distribution.files or ():
            if file.name == manifest.FILE_NAME and len(file.parts) <= 2:
                yield str(file.locate()), None

    @staticmethod
    def _beside(top: str) -> list[tuple[str, object]] | None:
        """Paths of the manifest in a top-level package, with their loaders; None where there is no such package."""
        try:
            spec = importlib.util.find_spec(top)
        except (ImportError, ValueError, AttributeError):
            return None
        if spec is None:
            return None
        places = spec.submodule_search_locations or ()
        return [(os.path.join(place, manifest.FILE_NAME), spec.loader) for place in places]  # noqa: PTH118  zips want strings

    def _text(self, path: str, loader: object) -> bytes | None:
        stamp = Stamp.of(path)
        if stamp.size < 0 and isinstance(loader, zipimporter):
            self._stamps[loader.archive] = Stamp.of(loader.archive)
            with contextlib.suppress(OSError):
                return loader.get_data(path)
            return None
        self._stamps[path] = stamp
        try:
            return Path(path).read_bytes() if stamp.size >= 0 else None
        except OSError as error:
            raise ManifestError(f"can't be read: {error}") from error


_Snapshot = tuple[int, str, tuple[Stamp, ...], Discovery]
"""The file: its format, the kernel's version, the entries of ``sys.path``, and what was found there."""


def _entries() -> tuple[Stamp, ...]:
    return tuple(Stamp.of(entry) for entry in sys.path)


def _file() -> Path:
    """A file for each environment, so that two environments don't overwrite each other's."""
    here = str(Path.cwd()) if "" in sys.path else ""
    key = "\0".join((__version__, sys.version, here, *sys.path)).encode()
    return environment.cache_directory() / f"plugins-{zlib.crc32(key):08x}.json"


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
