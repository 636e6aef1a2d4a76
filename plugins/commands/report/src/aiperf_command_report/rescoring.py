"""The plan of a report: the run's own, with newly installed plugins that read results, and options of this command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiperf import ConfigError, Plan, PluginError
from aiperf.parts.loading import made
from aiperf.sdk.command import PluginOptions
from aiperf.sdk.descriptor import Descriptor, PluginRef
from aiperf.sdk.grader import engine_of, timeout_s
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.plan import ExportLevel

_NS_PER_S = 1_000_000_000
_CATEGORIES = ("metrics", "exporters", "verdicts", "tables")
_GRADER = "graders"
"""Plugins of a report, as in ``options_of`` of the manifest."""


def replanned(plan: Plan, plugin_options: PluginOptions | None, slice_duration_s: float | None) -> Plan:
    """*plan* with other slices, where a duration is given; with *plugin_options*, newly installed plugins, too.

    Plugins of the run stay: the report names a package that is gone, and the present version of an updated one.
    """
    if slice_duration_s is not None:
        plan = plan.replacing(slice_ns=max(1, round(slice_duration_s * _NS_PER_S)))
        plan = _configured(plan, "artifacts", {"slice_duration": slice_duration_s})
    if plugin_options is None:
        return plan
    metrics, exporters, verdicts, tables = (plugin_options.registry.all(category) for category in _CATEGORIES)
    known = plugin_options.options
    usable = [each for each in (*metrics, *verdicts, *tables) if each.options_model is None or each.key in known]
    series = plugin_options.registry.all("series") if plan.plugins.telemetry else []
    # An exporter that the run did not use takes part where one of its options is given.
    wanted = [plugin for plugin in exporters if plugin.key in plugin_options.given]
    plan = plan.replacing(
        metrics=_refs(plan.plugins.metrics, metrics, [each for each in usable if each.category == "metrics"]),
        exporters=_refs(plan.plugins.exporters, exporters, wanted),
        verdicts=_refs(plan.plugins.verdicts, verdicts, [each for each in usable if each.category == "verdicts"]),
        tables=_refs(plan.plugins.tables, tables, [each for each in usable if each.category == "tables"]),
        series=plan.plugins.series or next((each.ref for each in series), None),
    )
    for key, options in plugin_options.options.items():
        if key.startswith("plots:"):  # of the page alone
            continue
        encoded, earlier = EncodedOptions.of(options), plan.plugins.options.get(key)
        given = {field: encoded.values[field] for field in plugin_options.given.get(key, ())}
        values = {**encoded.values, **({} if earlier is None else earlier.values), **given}
        encoded = EncodedOptions(encoded.options_class, values)
        plan = plan.replacing(options={**plan.plugins.options, key: encoded})
        if given:
            plan = _configured(plan, "plugins", {key: {**plan.run.config.get("plugins", {}).get(key, {}), **given}})
    return plan


def choosing(plan: Plan, percentiles: Sequence[float], columns: Sequence[str]) -> Plan:
    """The plan with these statistics in its tables, if any are given, in place of those that the run chose."""
    if not percentiles and not columns:
        return plan
    chosen = {"percentiles": [*percentiles], "columns": [*columns]}
    artifacts = {name: value for name, value in plan.run.config.get("artifacts", {}).items() if name not in chosen}
    artifacts |= {name: value for name, value in chosen.items() if value}
    config = {**plan.run.config, "artifacts": artifacts}
    return plan.replacing(percentiles=tuple(percentiles), columns=tuple(columns), config=config)


def at_level(plan: Plan, level: ExportLevel) -> Plan:
    """The plan with the files of another export level; its configuration stays the run's.

    Raises:
        ConfigError: The run has not kept its requests and answers.
    """
    if level == ExportLevel.RAW and plan.output.export_level != ExportLevel.RAW:
        raise ConfigError(
            f"--export-level raw: the run kept {plan.output.export_level}, not its requests and answers",
            "write --export-level records, or run again with --export-level raw",
        )
    return plan.replacing(export_level=level)


def regraded(plan: Plan, plugin_options: PluginOptions, name: str) -> Plan:
    """The plan with another grader.

    Raises:
        PluginError: No installed grader has the name, or it can't be used.
    """
    try:
        one = plugin_options.registry.descriptor(_GRADER, name)
    except PluginError as error:
        error.message = f"--accuracy-grader: {error.message}"
        raise
    if one.broken is not None:
        raise PluginError(f"{one.ref} can't be used: {one.broken}")
    limit_s, engine = timeout_s(one.capabilities), engine_of(one.capabilities)
    plan = plan.replacing(grader=one.ref, grading_timeout_s=limit_s, grading_engine=engine, grading_again=True)
    made(one.ref, plan.plugins.options_of(one.ref))  # refuses a grader that lacks something
    return _configured(plan, "accuracy", {"grader": one.name})


def flags(plugin_options: PluginOptions, categories: Sequence[str] = _CATEGORIES) -> list[str]:
    """The given flags of metrics, exporters, verdicts and tables, or of other *categories*."""
    installed = [plugin for category in categories for plugin in plugin_options.registry.all(category)]
    given = {plugin.key: plugin_options.given.get(plugin.key, ()) for plugin in installed}
    return [spec.flags[0] for plugin in installed for spec in plugin.options if spec.field in given[plugin.key]]


def _refs(used: Sequence[PluginRef], installed: Sequence[Descriptor], new: Sequence[Descriptor]) -> tuple[PluginRef, ...]:
    """The used plugins, in their present versions where they are installed, then the *new* ones."""
    now = {(plugin.name, plugin.distribution): plugin.ref for plugin in installed}
    names = {ref.name for ref in used}
    still_used = [now.get((ref.name, ref.distribution), ref) for ref in used]
    return (*still_used, *(plugin.ref for plugin in new if plugin.name not in names))


def _configured(plan: Plan, section: str, values: Mapping[str, Any]) -> Plan:
    """The plan with these values in the configuration of its results."""
    return plan.replacing(config={**plan.run.config, section: {**plan.run.config.get(section, {}), **values}})
