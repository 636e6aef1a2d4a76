"""``aiperf plugins validate``: manifests compared with the imported plugins, then the contracts of their categories."""

from __future__ import annotations

from difflib import get_close_matches

from aiperf import UsageError
from aiperf.parts.tools import known_plugins
from aiperf.sdk.registry import Descriptor, InstalledPlugins

from aiperf_command_plugins import contracts
from aiperf_command_plugins.checks import faults
from aiperf_command_plugins.report import Report, counted


def validated(registry: InstalledPlugins, distribution: str) -> Report:
    """The faults of every plugin of *distribution* ("": of all), a line each.

    Raises:
        UsageError: No such distribution has plugins.
    """
    known = [plugin for plugin in known_plugins(registry) if not distribution or plugin.distribution == distribution]
    if not known:
        names = sorted({plugin.distribution for plugin in known_plugins(registry)})
        close = get_close_matches(distribution, names, 1, 0.6)
        hints = [f"installed: {', '.join(names) or 'none'}", *([f"did you mean {close[0]}?"] if close else [])]
        raise UsageError(f"no installed distribution called {distribution!r} has plugins", *hints)
    wrong = faults(registry, known)
    faulty = [plugin for plugin, _ in wrong]
    sound = [plugin for plugin in known if plugin not in faulty]
    wanting: tuple[tuple[Descriptor, tuple[str, ...]], ...] = ()
    notes = []
    if not contracts.available():
        notes.append(f"aiperf: {contracts.PYTEST_MISSING}")
    elif sound:
        verdict = contracts.check(registry, sound)
        wrong += verdict.faults
        wanting = verdict.wanting
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
