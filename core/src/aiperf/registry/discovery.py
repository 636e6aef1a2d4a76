"""Finding what is installed: entry points and manifests, nothing imported."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path

from aiperf.descriptor import CATEGORIES, Descriptor, OptionSpec, canonical
from aiperf.registry import manifest
from aiperf.registry.manifest import Manifest, ManifestError
from aiperf.registry.snapshot import Found, Stamp

PREFIX = "aiperf."
KERNEL = "aiperf-core"
SUITE = "aiperf-suite"
FOREIGN = "aiperf"
"""A distribution of this name is another program, which owns the same import name and command."""

SHIPPED = frozenset(
    {
        KERNEL,
        "aiperf-command-plot",
        "aiperf-command-report",
        "aiperf-command-simulate",
        "aiperf-command-validate",
        "aiperf-definition-tools",
        "aiperf-dataset-mooncake-trace",
        "aiperf-dataset-multi-turn",
        "aiperf-dataset-single-turn",
        "aiperf-dataset-synthetic",
        "aiperf-endpoint-chat",
        "aiperf-endpoint-completions",
        "aiperf-exporter-console",
        "aiperf-exporter-csv",
        "aiperf-exporter-timeslices",
        "aiperf-exporter-inputs",
        "aiperf-exporter-json",
        "aiperf-exporter-parquet",
        "aiperf-exporter-raw",
        "aiperf-exporter-records",
        "aiperf-metric-concurrency",
        "aiperf-metric-errors",
        "aiperf-metric-goodput",
        "aiperf-metric-http-trace",
        "aiperf-metric-latency",
        "aiperf-metric-media",
        "aiperf-metric-reasoning",
        "aiperf-metric-throughput",
        "aiperf-metric-tokens",
        "aiperf-metric-usage",
        "aiperf-plot-basics",
        "aiperf-tokenizer-builtin",
        "aiperf-tokenizer-huggingface",
        "aiperf-transport-aiohttp",
    }
)
"""Distributions that are ours even where the meta-package isn't installed.

Being ours is no privilege: it only loses ties against strangers, so that a fork can override.  A package that is released
later needs no line here: the meta-package's requirements, extras included, are read at discovery and count as well.
Names are compared whole; a stranger called ``aiperf-foo`` stays a stranger.
"""

_VALUE = re.compile(r"[\w.]+:[\w.]+")


def normal(name: str) -> str:
    """A distribution's name in the one spelling in which names are equal."""
    return re.sub(r"[-_.]+", "-", name).lower()


def first_party(requirements: list[str]) -> frozenset[str]:
    """Names of our distributions, given the meta-package's requirements (``aiperf-plot>=0.1; extra == 'all'``)."""
    named = (re.match(r"\s*([A-Za-z0-9][\w.-]*)", line) for line in requirements)
    return SHIPPED | {normal(match[1]) for match in named if match}


def discover() -> Found:
    """Read every distribution on ``sys.path``, the first of a name winning, as the import system has it."""
    problems: list[str] = []
    installed: dict[str, importlib.metadata.Distribution] = {}
    for distribution in importlib.metadata.distributions():
        try:
            name = distribution.metadata["Name"]
        except Exception:  # noqa: BLE001  a half-removed distribution; without a name it can't be anybody's plugin
            continue
        if name:
            installed.setdefault(normal(name), distribution)
    suite = installed.get(SUITE)
    ours = first_party(list(suite.requires or ()) if suite else [])
    if FOREIGN in installed:
        problems.append(
            f"the distribution 'aiperf' {installed[FOREIGN].version} is installed beside {KERNEL}; both own the import name"
            " and the command 'aiperf': uninstall it, then reinstall aiperf-core, or use an environment of its own"
        )
    candidates: list[Descriptor] = []
    options: tuple[OptionSpec, ...] = ()
    stamps: dict[str, Stamp] = {}
    for name, distribution in sorted(installed.items()):
        try:
            points = [point for point in distribution.entry_points if point.group.startswith(PREFIX)]
        except Exception as error:  # noqa: BLE001  strangers' metadata
            problems.append(f"the entry points of {name} can't be read: {error}")
            continue
        if not points:
            continue
        package = _Package(distribution, points, normal(name) in ours, stamps)
        candidates += package.descriptors()
        if name == KERNEL:
            options = package.kernel_options
    return Found(tuple(candidates), options, tuple(problems), tuple(stamps.values()))


class _Package:
    """One distribution that has plugins."""

    def __init__(
        self,
        distribution: importlib.metadata.Distribution,
        points: list[importlib.metadata.EntryPoint],
        ours: bool,
        stamps: dict[str, Stamp],
    ) -> None:
        self._distribution = distribution
        self._name = normal(distribution.metadata["Name"])
        self._points = points
        self._ours = ours
        self._stamps = stamps
        self.kernel_options: tuple[OptionSpec, ...] = ()

    def descriptors(self) -> Iterator[Descriptor]:
        """Every plugin it has, and every one it only claims to have, broken."""
        where, cause, read = "", None, Manifest(manifest.SCHEMA_VERSION, "")
        try:
            where, text = self._find()
            read = manifest.read(text)
            self.kernel_options = read.options
        except ManifestError as error:
            cause = f"its manifest {where or manifest.FILE_NAME} {error}"
        points: dict[tuple[str, str], importlib.metadata.EntryPoint] = {}
        for point in self._points:
            key = point.group.removeprefix(PREFIX), canonical(point.name)
            if points.setdefault(key, point) is not point:
                yield self._broken(*key, point.value, f"the distribution has two entry points for {key[0]}:{key[1]}")
        seen = set()
        for plain in read.plugins:
            category, name = _identity(plain)
            if (category, canonical(name)) in seen:
                yield self._broken(category, name, "", f"its manifest {where} has two rows for {category}:{canonical(name)}")
                continue
            seen.add((category, canonical(name)))
            found = points.pop((category, canonical(name)), None)
            yield self._row(plain, read.api, category, name, found.value if found else "", where)
        for (category, name), point in points.items():
            why = cause or (
                f"its manifest {where} has no row for {category}:{name}"
                if category in CATEGORIES
                else manifest.unknown_category(category)
            )
            yield self._broken(category, name, point.value, why)

    def _row(self, plain: object, api: str, category: str, name: str, value: str, where: str) -> Descriptor:
        cause = None
        try:
            row = manifest.read_row(plain)
        except ManifestError as error:
            return self._broken(category, name, value, f"its manifest {where} {error}")
        if category not in CATEGORIES:
            cause = manifest.unknown_category(category)
        elif not value:
            cause = f"its manifest {where} has a row for {category}:{name}, but the distribution has no such entry point"
        elif not _VALUE.fullmatch(value):
            cause = f"its entry point is {value!r}, which is not module:object"
        return manifest.describe(row, api, value, self._name, self._distribution.version, self._ours, cause)

    def _broken(self, category: str, name: str, value: str, cause: str) -> Descriptor:
        return Descriptor(
            category, canonical(name), value, self._name, self._distribution.version, first_party=self._ours, broken=cause
        )

    def _find(self) -> tuple[str, bytes]:
        """The manifest's path and text: beside the top-level package, else by the file list, in a directory or a zip."""
        tops = sorted({point.value.partition(":")[0].partition(".")[0].strip() for point in self._points})
        missing = []
        for top in tops:
            try:
                spec = importlib.util.find_spec(top)
            except (ImportError, ValueError, AttributeError):
                spec = None
            if spec is None:
                missing.append(top)
                continue
            for location in spec.submodule_search_locations or ():
                path = os.path.join(location, manifest.FILE_NAME)  # noqa: PTH118  zip paths are strings to their loader
                text = self._text(path, spec.loader)
                if text is not None:
                    return path, text
        for file in self._distribution.files or ():
            if file.name == manifest.FILE_NAME and len(file.parts) <= 2:
                path = str(file.locate())
                text = self._text(path, None)
                if text is not None:
                    return path, text
        if missing:
            raise ManifestError(f"can't be looked for: there is no package {' or '.join(map(repr, missing))}")
        raise ManifestError(f"is missing from package {' or '.join(map(repr, tops))}")

    def _text(self, path: str, loader: object) -> bytes | None:
        stamp = Stamp.of(path)
        if stamp.size >= 0:
            self._stamps[path] = stamp
            try:
                return Path(path).read_bytes()
            except OSError as error:
                raise ManifestError(f"can't be read: {error}") from error
        archive = getattr(loader, "archive", None)  # zipimporter, and nothing else, has one
        read = getattr(loader, "get_data", None)
        if archive is not None and read is not None:
            self._stamps[str(archive)] = Stamp.of(str(archive))
            try:
                text: bytes = read(path)
                return text
            except OSError:
                return None
        self._stamps[path] = stamp
        return None


def _identity(plain: object) -> tuple[str, str]:
    """Category and name of a row that may be anything."""
    if isinstance(plain, dict):
        return str(plain.get("category", "?")), str(plain.get("name", "?"))
    return "?", "?"
