"""The plan to report by: the run's own with what is installed and asked for now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiperf import Plan
from aiperf.command import Others
from aiperf.descriptor import Descriptor, PluginRef
from msgspec.structs import replace

_NS_PER_S = 1_000_000_000


def replanned(plan: Plan, others: Others | None, slice_duration_s: float | None) -> Plan:
    """*plan* with other slices, where a duration is given; with *others*, newly installed metrics and their options, too.

    What the run used stays: of a package that is gone the report says so, of one that was updated the version it now has.
    """
    if slice_duration_s is not None:
        plan = replace(plan, slice_ns=max(1, round(slice_duration_s * _NS_PER_S)))
        plan = _configured(plan, "artifacts", {"slice_duration": slice_duration_s})
    if others is None:
        return plan
    metrics, exporters = (others.registry.all(category) for category in ("metrics", "exporters"))
    usable = [one for one in metrics if one.options_model is None or _key(one) in others.options]
    # What writes files is asked for with its options, else the run's own writers do.
    wanted = [one for one in exporters if _key(one) in others.given]
    plan = replace(plan, metrics=_refs(plan.metrics, metrics, usable), exporters=_refs(plan.exporters, exporters, wanted))
    for key, model in others.options.items():
        values = model.model_dump(mode="json")
        given = {field: values[field] for field in others.given.get(key, ())}
        plan = replace(plan, options={**plan.options, key: {**values, **plan.options.get(key, {}), **given}})
        if given:
            plan = _configured(plan, "plugins", {key: {**plan.config.get("plugins", {}).get(key, {}), **given}})
    return plan


def flags(others: Others) -> list[str]:
    """What was typed of the options of metrics and exporters."""
    installed = [one for category in ("metrics", "exporters") for one in others.registry.all(category)]
    return [spec.flags[0] for one in installed for spec in one.options if spec.field in others.given.get(_key(one), ())]


def _refs(used: Sequence[PluginRef], installed: Sequence[Descriptor], new: Sequence[Descriptor]) -> tuple[PluginRef, ...]:
    """The plugins that were used, those of packages that are installed as they are now, and then the *new* ones."""
    now = {(one.name, one.distribution): _ref(one) for one in installed}
    names = {ref.name for ref in used}
    kept = [now.get((ref.name, ref.distribution), ref) for ref in used]
    return (*kept, *(_ref(one) for one in new if one.name not in names))


def _ref(one: Descriptor) -> PluginRef:
    return PluginRef(one.category, one.name, one.value, one.distribution, one.version)


def _key(one: Descriptor) -> str:
    return f"{one.category}:{one.name}"


def _configured(plan: Plan, section: str, values: Mapping[str, Any]) -> Plan:
    """The plan whose results say this of it."""
    return replace(plan, config={**plan.config, section: {**plan.config.get(section, {}), **values}})
