"""From validated options to a Plan: plugins by name, checks between options, and defaults that depend on other options.

All configuration errors of a command are collected and reported together; every message names the flag as typed.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from aiperf import __version__
from aiperf.planning import addresses, chosen_plugins, config_sections, endpoints, outputs, processes
from aiperf.planning.endpoints import EndpointChoice
from aiperf.planning.phases import phases
from aiperf.planning.problems import Problems, Selection, Settings
from aiperf.planning.sources import Source, source
from aiperf.registry.third_party import blamed
from aiperf.sdk.categories import CATEGORIES, singular
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.plan import DataPlan, LoadPlan, PhasePlan, Plan, PluginPlan, RunPlan, Secrets

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry

_ALWAYS = frozenset(category.name for category in CATEGORIES.values() if category.every)
_MISSING = PluginRef("", "", "", "", "")


def plan(settings: Settings, registry: Registry) -> tuple[Plan, Secrets]:
    """The plan of a run, and its secrets, which are never written.

    Nothing is started, written or sent; of the plugins only the endpoint's package is imported.

    Raises:
        ConfigErrors: All errors of the settings.
    """
    problems = Problems(settings)
    select = Selection(problems, registry)
    choice, models = endpoints.endpoint(select), endpoints.models(select)
    data = source(select, registry)
    planned = phases(problems, partial(chosen_plugins.shaped, select), promoted=chosen_plugins.promoted(select, data))
    sampling = chosen_plugins.sampling(select)
    tokenizer, tokenizer_name = chosen_plugins.tokenizer(select, choice, models)
    engine = select.chosen("engines", problems.kernel.engine, "engine")
    workers, reducers = processes.counts(select, engine, planned)
    base_urls, weights = addresses.base_urls(problems)
    strategy = addresses.url_strategy(select, weights, workers)
    plugins = _plugins(select, choice, data, planned, tokenizer=tokenizer, engine=engine, strategy=strategy)
    plugins = replace(plugins, **_options(select))
    target = endpoints.target_plan(select, choice, models, base_urls, weights)
    secrets = Secrets(endpoints.headers(select, choice.descriptor, plugins), plugins.secret_values())
    processes.check(select)
    output = outputs.output_plan(select, choice, models, planned[-1])
    problems.refuse_if_any()
    from_file, kernel = data.path is not None, settings.kernel
    plan = Plan(
        _run(settings, workers, reducers),
        target,
        DataPlan(
            source=str(data.path) if from_file else None,
            first=kernel.entries if from_file else None,
            tokenizer_name=tokenizer_name,
            sampling="sequential" if planned[-1].replay is not None else sampling,
            delay_ratio=kernel.delay_ratio, entries=sum(phase.entries for phase in planned),
        ),
        LoadPlan(planned, kernel.failed_threshold), output, plugins,
    )  # fmt: skip
    plan = plan.replacing(config=config_sections.sections(plan, secrets, select))
    _call_hooks(plan, registry, problems)
    problems.settle()
    return plan, secrets


def _run(settings: Settings, workers: int, reducers: int) -> RunPlan:
    kernel = settings.kernel
    return RunPlan(
        run_id=os.urandom(6).hex(),
        version=__version__,
        seed=int.from_bytes(os.urandom(8), "big") if kernel.random_seed is None else kernel.random_seed,
        seeded=kernel.random_seed is not None,
        command=settings.command,
        workers=workers,
        reducers=reducers,
        verbose=kernel.verbose or kernel.extra_verbose,
    )


def _plugins(
    select: Selection, choice: EndpointChoice, data: Source, planned: tuple[PhasePlan, ...], *,
    tokenizer: PluginRef | None, engine: PluginRef | None, strategy: PluginRef | None,
) -> PluginPlan:  # fmt: skip
    """The plugins of the run without their options.  An unusable plugin is reported; a nameless one is in its place."""
    registry = select.registry
    every = [plugin for category in registry.categories() for plugin in registry.all(category)]
    return PluginPlan(
        endpoint=_MISSING if choice.descriptor is None else choice.descriptor.ref,
        transport=select.chosen("transports", select.problems.kernel.transport, "transport") or _MISSING,
        dataset=data.dataset or _MISSING,
        tokenizer=tokenizer, grader=chosen_plugins.grader(select, choice), ui=processes.ui(select),
        schedules=chosen_plugins.schedules(select, planned), arrivals=chosen_plugins.arrivals(select, planned),
        ramps=chosen_plugins.ramps(select, planned), engine=engine, url_strategy=strategy,
        metrics=select.everything("metrics"), exporters=select.everything("exporters"),
        hooks=select.everything("hooks"), hook_names=registry.hooks().implemented, telemetry=select.everything("telemetry"),
        samplers={plugin.name: plugin.ref for plugin in registry.all("samplers")},
        drivers={plugin.name: plugin for plugin in select.everything("drivers")},
        shadowed={plugin.key: plugin.shadows for plugin in every if plugin.shadows},
        metric_ranks={plugin.key: registry.rank(plugin) for plugin in registry.all("metrics")},
    )  # fmt: skip


def _options(select: Selection) -> dict[str, Any]:
    """Fields of a plan: the options of the plugins in use, as other processes decode them, and which of them are secret."""
    from aiperf.registry.option_specs import conflicts

    used = {ref.key for ref in select.used}
    for ref in select.used:
        _require_options(select, ref)
    _refuse_unused(select, used)
    encoded, secret = {}, {}
    for key, options in select.settings.plugins.items():
        category, _, name = key.partition(":")
        if key not in used and category not in _ALWAYS:
            continue
        start = f"{key}."
        typed = {field.removeprefix(start): flag for field, flag in select.settings.typed.items() if field.startswith(start)}
        select.problems.errors += conflicts(key, options, typed)
        with select.problems.collected(), blamed(select.registry.descriptor(category, name), "has options that can't be sent"):
            encoded[key] = EncodedOptions.of(options)
            encoded[key].decoded()
            secret[key] = tuple(sorted(field for field, face in options.option_faces.items() if face.spec.secret))
    return {"options": encoded, "secret_options": {key: fields for key, fields in secret.items() if fields}}


def _require_options(select: Selection, ref: PluginRef) -> None:
    """Report the required options that a plugin in use lacks."""
    plugin = select.registry.descriptor(ref.category, ref.name)
    if plugin.options_model is None or plugin.key in select.settings.plugins:
        return
    with select.problems.collected():
        from aiperf.registry.option_specs import validate

        _, errors = validate(select.registry.load_options_model(plugin), plugin.options, {}, {})
        for error in errors:
            select.problems.refuse(f"{error.message} by the {singular(ref.category)} plugin {ref.name!r}", *error.hints)


def _refuse_unused(select: Selection, used: set[str]) -> None:
    """Refuse a flag whose plugins are all unused.  Several packages may declare one flag alike."""
    owners: dict[str, list[str]] = {}
    for field, flag in select.settings.typed.items():
        owners.setdefault(flag, []).append(field.rpartition(".")[0])
    for flag, keys in owners.items():
        categories = {key.partition(":")[0] for key in keys}
        if "" in keys or used & set(keys) or categories & _ALWAYS or categories <= select.missing:
            continue
        category = keys[0].partition(":")[0]
        names = sorted({repr(key.partition(":")[2]) for key in keys if key.startswith(f"{category}:")})
        owner = f"{singular(category)} plugin{'s' if len(names) > 1 else ''} {' and '.join(names)}"
        instead = next((repr(ref.name) for ref in select.used if ref.category == category), "none")
        select.problems.refuse(
            f"{flag} belongs to the {owner}; this run uses {instead}", f"drop {flag}, or choose {' or '.join(names)}"
        )


def _call_hooks(plan: Plan, registry: Registry, problems: Problems) -> None:
    """Give hook plugins their options, and let them refuse the plan."""
    hooks = registry.hooks()
    hooks.report = problems.warn
    for ref in plan.plugins.hooks:
        hooks.equip(ref, plan.plugins.options_of(ref))
    hooks.call("aiperf_plan_validated", plan=plan)
    problems.errors += hooks.refusals
