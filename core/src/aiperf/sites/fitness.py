"""Whether this machine has what a plan needs: the run's versions of the kernel and of each plugin, and cores."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from msgspec import Struct

from aiperf import __version__, environment
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.plan import Plan, PluginPlan


def unfit(plan: Plan) -> str | None:
    """Why the plan can't run here; None where it can."""
    if plan.run.version != __version__:
        return f"it has aiperf {__version__}, and the run has {plan.run.version}: install the same version"
    wrong = [f"{name} {there}, and the run has {wanted}" for name, there, wanted in _differing(plan.plugins)]
    return f"it has {'; '.join(wrong)}: install the same versions" if wrong else None


def crowded(workers: int, reducers: int) -> str | None:
    """What is to be said where so many processes have fewer cores here; None where each has one."""
    cores = environment.cpus()
    if workers + reducers <= cores:
        return None
    have, ask = _count(cores, "core"), f"{_count(workers, 'worker')} and {_count(reducers, 'reducer')}"
    return f"it has {have} for {ask}, which wait for each other: set --workers, or use more sites"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _differing(plugins: PluginPlan) -> Iterator[tuple[str, str, str]]:
    """Packages of the plan's plugins that are missing here or of another version: name, version here and wanted."""
    for name, wanted in sorted({(ref.distribution, ref.version) for ref in refs(plugins)}):
        try:
            there = version(name)
        except PackageNotFoundError:
            there = "not at all"
        if there != wanted:
            yield name, there, wanted


def refs(part: Struct) -> Iterator[PluginRef]:
    """Every plugin that *part* of a plan names."""
    for name in part.__struct_fields__:
        value = getattr(part, name)
        listed = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
        yield from (each for each in listed if isinstance(each, PluginRef))
