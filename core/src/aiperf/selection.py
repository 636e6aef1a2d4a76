"""Which installed plugins a run uses, and their options."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from aiperf.descriptor import Descriptor, PluginRef
from aiperf.findings import Findings

if TYPE_CHECKING:
    from aiperf.registry import Registry

log = logging.getLogger(__name__)

_ALWAYS = ("metrics", "exporters", "telemetry", "hooks")
"""Categories of which every installed plugin takes part; of the others a run uses one by name."""


class Selection:
    """Resolves names; what can't be had goes to *findings*, said of the flag that asked for it.

    *used*: chosen by name.  *missing*: categories of which something could not be had.
    """

    def __init__(self, findings: Findings, registry: Registry) -> None:
        self.findings, self.registry = findings, registry
        self.settings = findings.settings
        self.used: list[PluginRef] = []
        self.missing: set[str] = set()

    def chosen(self, category: str, name: str, field: str | None = None) -> PluginRef | None:
        """The plugin of that name; None where there is none, and that is said of the option *field*."""
        with self.findings.collected("" if field is None else self.findings.flag(field)):
            ref = self.registry.ref(category, name)
            if ref not in self.used:
                self.used.append(ref)
            return ref
        self.missing.add(category)
        return None

    def everything(self, category: str) -> tuple[PluginRef, ...]:
        """Every usable plugin of a category; one that needs an option which nobody gave takes no part.

        Hooks are registered first: what can't be is out of use then, before another process stumbles over it.
        """
        if category == "hooks" and self.registry.all(category):
            self.registry.hooks()
        refs = []
        for found in self.registry.all(category):
            if found.options_model is not None and key_of(found) not in self.settings.plugins:
                log.debug("the plugin %s is left out: it needs an option that was not given", key_of(found))
            else:
                refs.append(ref_to(found))
        return tuple(refs)

    def shadowed(self) -> dict[str, tuple[str, ...]]:
        found = (one for category in self.registry.categories() for one in self.registry.all(category))
        return {key_of(one): one.shadows for one in found if one.shadows}

    def options(self) -> dict[str, dict[str, Any]]:
        """Options of every plugin the run uses, by ``category:name``; those of others are refused where they were typed."""
        used = {key_of(ref) for ref in self.used}
        for ref in self.used:
            self.require_options(ref)
        self.refuse_unused(used)
        found: dict[str, dict[str, Any]] = {}
        for key, model in self.settings.plugins.items():
            if key in used or key.partition(":")[0] in _ALWAYS:
                self.ask_problems(key, model)
                found[key] = model.model_dump(mode="json")
        return found

    def require_options(self, ref: PluginRef) -> None:
        """Where a plugin in use has no valid options, say which it misses: an option without default was not typed."""
        one = self.registry.descriptor(ref.category, ref.name)
        if one.options_model is None or key_of(one) in self.settings.plugins:
            return
        with self.findings.collected():
            from aiperf.optionspec import validate

            _, wrong = validate(self.registry.load_options_model(one), one.options, {}, {})
            for error in wrong:
                self.findings.refuse(f"{error.message} by the {_singular(one.category)} plugin {one.name!r}", *error.hints)

    def refuse_unused(self, used: set[str]) -> None:
        """A flag of which no owner takes part.  Several packages may declare one flag alike."""
        owners: dict[str, list[str]] = {}
        for field, flag in self.settings.typed.items():
            owners.setdefault(flag, []).append(field.rpartition(".")[0])
        for flag, keys in owners.items():
            categories = {key.partition(":")[0] for key in keys}
            if "" in keys or used & set(keys) or categories & set(_ALWAYS) or categories <= self.missing:
                continue
            category = keys[0].partition(":")[0]
            found = sorted({repr(key.partition(":")[2]) for key in keys if key.startswith(f"{category}:")})
            owner = f"{_singular(category)} plugin{'s' if len(found) > 1 else ''} {' and '.join(found)}"
            instead = next((ref.name for ref in self.used if ref.category == category), None)
            using = f"; this run uses {instead!r}" if instead else "; this run uses none"
            self.findings.refuse(f"{flag} belongs to the {owner}{using}", f"drop {flag}, or choose {' or '.join(found)}")

    def ask_problems(self, key: str, model: Any) -> None:
        """Conflicts that a plugin's option model finds among its own options."""
        from aiperf.optionspec import conflicts

        typed = {
            field.rpartition(".")[2]: flag for field, flag in self.settings.typed.items() if field.rpartition(".")[0] == key
        }
        self.findings.errors += conflicts(key, model, typed)


def ref_to(found: Descriptor) -> PluginRef:
    return PluginRef(found.category, found.name, found.value, found.distribution, found.version)


def key_of(one: PluginRef | Descriptor) -> str:
    """``category:name``, as plugins' options are filed."""
    return f"{one.category}:{one.name}"


def _singular(category: str) -> str:
    from aiperf.registry import singular

    return singular(category)
