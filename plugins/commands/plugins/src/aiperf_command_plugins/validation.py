"""``aiperf plugins validate``: imports, manifests compared with what is imported, then the contracts of the categories."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches

from aiperf import UsageError
from aiperf.parts.tools import known_plugins
from aiperf.sdk.registry import Descriptor, InstalledPlugins

from aiperf_command_plugins import contracts, importing
from aiperf_command_plugins.report import Report, counted

Fault = tuple[Descriptor, str]


def validated(registry: InstalledPlugins, distribution: str) -> Report:
    """The faults of every plugin of *distribution* ("": of all), a line each; a line on standard error for each package.

    Raises:
        UsageError: No such distribution has plugins.
    """
    contested = [plugin for plugin in registry.broken if distribution and _is_of(plugin, distribution) and not plugin.version]
    registry = _with_its_own(registry, distribution) if distribution else registry
    known = [plugin for plugin in known_plugins(registry) if not distribution or _is_of(plugin, distribution)]
    if not known:
        names = sorted({plugin.distribution for plugin in known_plugins(registry)})
        close = get_close_matches(distribution, names, 1, 0.6)
        hints = [f"installed: {', '.join(names) or 'none'}", *([f"did you mean {close[0]}?"] if close else [])]
        raise UsageError(f"no installed distribution called {distribution!r} has plugins", *hints)
    packages: dict[str, list[Descriptor]] = {}
    for plugin in known:
        packages.setdefault(plugin.package, []).append(plugin)
    notes = [] if contracts.available() else [f"aiperf: {contracts.PYTEST_MISSING}"]
    tell = _teller(len(packages)) if len(packages) > 1 else None
    wrong, wanting = _checked(registry, list(packages.values()), tell)
    wrong = [(plugin, str(plugin.broken)) for plugin in contested] + wrong
    if wanting:
        left = "; ".join(f"{plugin.key} ({', '.join(what)})" for plugin, what in wanting)
        notes.append(f"aiperf: not checked, for want of a contract in the manifest that brings the material: {left}")
    lines = [f"{plugin.key} ({plugin.package}): {fault}" for plugin, fault in wrong]
    lines.append(f"{counted(len(known), 'plugin')} checked, {counted(len(wrong), 'fault') if wrong else 'no fault'}")
    plain = {
        "checked": len(known),
        "faults": [
            {"category": plugin.category, "name": plugin.name, "distribution": plugin.distribution, "fault": fault}
            for plugin, fault in wrong
        ],
        "contracts": contracts.available(),
        "wanting": [{"category": plugin.category, "name": plugin.name, "material": what} for plugin, what in wanting],
    }
    return Report(lines, plain, 1 if wrong else 0, notes)


def _is_of(plugin: Descriptor, distribution: str) -> bool:
    """Whether the distribution has the plugin, or is one of several that claim its name."""
    return distribution in plugin.distribution.split(", ")


def _with_its_own(registry: InstalledPlugins, distribution: str) -> InstalledPlugins:
    """The registry in which *distribution* has all names that it claims, also those that others have."""
    pins = {}
    for plugin in known_plugins(registry):
        shadowed = {package.partition(" ")[0] for package in plugin.shadows}
        if distribution in shadowed or (_is_of(plugin, distribution) and plugin.distribution != distribution):
            pins[plugin.key] = distribution
    return registry.choosing(pins=pins, disabled=()) if pins else registry


Tell = Callable[[Sequence[Descriptor], int], None]


def _teller(packages: int) -> Tell:
    """What prints a line for a package when its checks have ended, from any thread."""
    lock, ended = threading.Lock(), 0

    def tell(plugins: Sequence[Descriptor], faults: int) -> None:
        nonlocal ended
        with lock:
            ended += 1
            found = counted(faults, "fault") if faults else "no fault"
            line = f"{ended}/{packages} {plugins[0].package}: {counted(len(plugins), 'plugin')}, {found}"
            print(line, file=sys.stderr, flush=True)

    return tell


def _checked(
    registry: InstalledPlugins, packages: Sequence[list[Descriptor]], tell: Tell | None
) -> tuple[list[Fault], list[tuple[Descriptor, tuple[str, ...]]]]:
    """The faults of all packages in their order, and plugins without the material of some checks."""
    tell = tell or (lambda plugins, faults: None)
    tried = importing.tried(registry, packages)
    faults: list[list[Fault]] = []
    for plugins, one in zip(packages, tried, strict=True):
        faults.append([*((plugins[0], sentence) for sentence in one.package), *one.faults])
    wanting: list[list[tuple[Descriptor, tuple[str, ...]]]] = [[] for _ in packages]
    sound = [
        [plugin for plugin in plugins if contracts.available() and not one.dead and not _is_faulty(plugin, one.faults)]
        for plugins, one in zip(packages, tried, strict=True)
    ]
    for at, plugins in enumerate(packages):
        if not sound[at]:
            tell(plugins, len(faults[at]))
    left = [at for at in range(len(packages)) if sound[at]]

    def check(share: Sequence[int]) -> None:
        plugins = [plugin for at in share for plugin in sound[at]]
        owner = [at for at in share for _ in sound[at]]
        done: set[int] = set()

        def passed(verdict: contracts.ContractOutcome, reached: int) -> None:
            over = [at for at in share if at not in done and at not in owner[reached:]]
            for at in over:
                done.add(at)
                faults[at] += [fault for fault in verdict.faults if fault[0] in sound[at]]
                wanting[at] += [want for want in verdict.wanting if want[0] in sound[at]]
                tell(packages[at], len(faults[at]))

        contracts.check(registry, plugins, passed=passed)

    with ThreadPoolExecutor(importing.AT_ONCE) as pool:
        list(pool.map(check, filter(None, (left[start :: importing.AT_ONCE] for start in range(importing.AT_ONCE)))))
    return [fault for found in faults for fault in found], [want for found in wanting for want in found]


def _is_faulty(plugin: Descriptor, faults: Sequence[Fault]) -> bool:
    return any(faulty == plugin for faulty, _ in faults)
