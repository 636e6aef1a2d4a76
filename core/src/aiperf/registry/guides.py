"""What is not installed: the packages that have it, told by hook plugins that are guides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.foreign import SUITE
from aiperf.sdk.descriptor import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiperf.registry.hooks import Hooks
    from aiperf.registry.registry import Registry

INSTALL_SUITE = f"pip install {SUITE}"
"""The hint where no guide is installed."""


def where_is(category: str, name: str, registry: Registry, near: Sequence[str] = ()) -> list[str]:
    """Hints where a plugin is not installed: its package, and the command that installs it.

    Where no package has it, what a guide says to do instead; where no guide knows it, *near*: hints on installed names; where
    there are none and no guide, the suite.
    """
    guides = _guides(registry)
    package = None if guides is None else guides.call("aiperf_where_is", category=category, name=canonical(name))
    if package is not None:
        return [f"{name} is in the package {package}, which is not installed", install(package)]
    instead = None if guides is None else _text(guides.call("aiperf_unknown_plugin", category=category, name=canonical(name)))
    if instead is not None:
        return [instead]
    return list(near) or ([INSTALL_SUITE] if guides is None else [])


def unknown_option(flag: str, registry: Registry) -> str | None:
    """What to do instead of an option that nothing installed has; None where no guide knows it."""
    guides = _guides(registry)
    return INSTALL_SUITE if guides is None else _text(guides.call("aiperf_unknown_option", flag=flag))


def unknown_command(name: str, registry: Registry) -> str | None:
    """What to do instead of a command that nothing installed has; None where no guide knows it."""
    guides = _guides(registry)
    return None if guides is None else _text(guides.call("aiperf_unknown_command", name=name))


def install(distribution: str) -> str:
    """A hint."""
    return f"pip install {distribution}"


def _guides(registry: Registry) -> Hooks | None:
    from aiperf.registry.hooks import Hooks  # pluggy, only where something is missing

    plugins = [each for each in registry.all("hooks") if each.capabilities.get("guide")]
    return Hooks.load([(each.ref, None) for each in plugins]) if plugins else None


def _text(answer: object) -> str | None:
    return answer if isinstance(answer, str) else None
