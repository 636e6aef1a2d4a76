"""From validated options to a Plan: plugins by name, checks between options, and defaults that depend on other options.

All configuration errors of a command are collected and reported together; every message names the flag as typed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from aiperf import __version__
from aiperf.errors import AiperfError, PluginError, UnknownPlugin
from aiperf.foreign import SAMPLER
from aiperf.planning import addresses, config_sections, outputs, processes, sites, sources, target
from aiperf.planning.load_checks import check_drivers
from aiperf.planning.phases import named_plugins, phases
from aiperf.planning.problems import Draft, Settings
from aiperf.planning.scenarios import ruled
from aiperf.planning.secret_texts import secret_texts
from aiperf.planning.sources import Source
from aiperf.planning.target import EndpointChoice
from aiperf.redaction import redact, secret_fields
from aiperf.registry.guides import INSTALL_SUITE
from aiperf.registry.third_party import blamed, isolated, load
from aiperf.sdk.categories import CATEGORIES, singular
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.model import names
from aiperf.sdk.options import EncodedOptions, Options
from aiperf.sdk.plan import DataPlan, LoadPlan, OutputPlan, PhasePlan, Plan, PluginPlan, RunPlan, Secrets, TargetPlan

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry
    from aiperf.sdk.descriptor import Descriptor

_ALWAYS = frozenset(category.name for category in CATEGORIES.values() if category.every)
_MISSING = PluginRef("", "", "", "", "")


class Parts(NamedTuple):
    """What a plan is made of, once nothing in the settings contradicts another thing.  counts: of workers and of reducers.
    sites: their names."""

    source: Source
    sampling: str
    tokenizer_name: str | None
    counts: tuple[int, int]
    sites: tuple[str, ...]
    phases: tuple[PhasePlan, ...]
    target: TargetPlan
    output: OutputPlan
    plugins: PluginPlan
    secrets: Secrets


def plan(
    settings: Settings, registry: Registry, hide: Callable[[Sequence[str]], None] = lambda texts: None
) -> tuple[Plan, Secrets]:
    """The plan of a run, and its secrets, which are never written.  *hide*: gets their texts before any hook is called.

    Nothing is started, written or sent; of the plugins only the endpoint's package is imported.

    Raises:
        ConfigErrors: All errors of the settings.
    """
    draft = Draft(settings, registry)
    parts = validated(draft)
    plan = assembled(draft, parts)
    hide(parts.secrets.texts)
    plan = ruled(draft, plan)
    draft.refuse_if_any()
    announced(draft, plan)
    return plan, parts.secrets


def validated(draft: Draft) -> Parts:
    """What the settings say, each option checked by itself and with the others.

    Raises:
        ConfigErrors: All errors of the settings.
    """
    choice = target.endpoint(draft)
    source = sources.source(draft)
    planned = phases(draft, promoted=sources.promoted(draft, source), once=source.once)
    check_drivers(draft, {phase.schedule for phase in planned})
    sampling = sources.sampling(draft, source)
    tokenizer, tokenizer_name = sources.tokenizer(draft, choice)
    engine = draft.chosen("engines", draft.kernel.engine, "engine")
    base_urls, weights = addresses.base_urls(draft, choice)
    transport = addresses.transport(draft, choice, base_urls)
    at = sites.site_names(draft, engine)
    sites.check(draft, at, planned)
    in_chunks = draft.kernel.streaming and choice.can.streaming and choice.can.produces_tokens
    workers, reducers = processes.counts(
        draft, engine, planned, transport, dataset=source.dataset, streaming=in_chunks, sites=len(at)
    )
    strategy = target.url_strategy(draft, weights, workers)
    plugins = _plugins(
        draft, choice, source, planned, tokenizer=tokenizer, engine=engine, strategy=strategy, transport=transport or _MISSING
    )
    extra = target.extra_inputs(draft, choice)
    plugins = replace(plugins, **_options(draft))
    requests = target.target_plan(draft, choice, base_urls, weights, extra)
    headers, hidden = target.headers(draft, choice, plugins), plugins.secret_values()
    texts = secret_texts(headers, hidden, (*requests.urls, *requests.control_urls, requests.path), requests.extra)
    secrets = Secrets(headers, hidden, requests.urls, requests.path, requests.extra, texts)
    asked = {name.lower(): value for name, value in secrets.headers.items()}.get("accept-encoding", "")
    requests = replace(requests, accept_encoding=asked)
    target.check_encodings(draft, asked)
    processes.check(draft)
    target.check_cache_bust(draft, choice, planned)
    target.check_chat_template(draft, choice)
    output = outputs.output_plan(draft, choice, planned[-1])
    draft.refuse_if_any()
    return Parts(source, sampling, tokenizer_name, (workers, reducers), at, planned, requests, output, plugins, secrets)


def assembled(draft: Draft, parts: Parts) -> Plan:
    """The plan of these parts, and the sections that reports have of it."""
    settings, kernel, source, planned = draft.settings, draft.kernel, parts.source, parts.phases
    workers, reducers = parts.counts
    run = RunPlan(
        run_id=os.urandom(6).hex(), version=__version__,
        seed=int.from_bytes(os.urandom(8), "big") >> 1 if kernel.random_seed is None else kernel.random_seed,
        seeded=kernel.random_seed is not None, command=settings.command, workers=workers, reducers=reducers, sites=parts.sites,
        verbose=kernel.verbose or kernel.extra_verbose, log_level=settings.log_level,
        restart_lost=kernel.restart_lost_shards,
    )  # fmt: skip
    data = DataPlan(
        source=None if source.path is None else str(source.path), first=kernel.entries if source.path or source.name else None,
        tokenizer_name=parts.tokenizer_name, sampling=SAMPLER if planned[-1].replay is not None else parts.sampling,
        delay_ratio=kernel.delay_ratio, entries=planned[-1].entries if source.once else sum(phase.entries for phase in planned),
        name=source.name, row=source.row, once=source.once, whole=kernel.check_data, cache_bust=kernel.cache_bust,
        chat_template=kernel.apply_chat_template,
    )  # fmt: skip
    load_plan = LoadPlan(planned, kernel.failed_threshold)
    plan = Plan(run, parts.target, data, load_plan, parts.output, parts.plugins)
    return plan.replacing(config=config_sections.sections(plan, parts.secrets, draft))


def announced(draft: Draft, plan: Plan) -> None:
    """Show the plan to hooks, companions and live views, which may refuse it.

    Raises:
        ConfigErrors: All refusals.
    """
    hooks = draft.registry.hooks()
    hooks.report = draft.warn
    for ref in plan.plugins.hooks:
        hooks.equip(ref, plan.plugins.options_of(ref))
    hooks.call("aiperf_plan_validated", plan=plan)
    draft.errors += hooks.refusals
    for ref in plan.plugins.companions:
        with draft.collected(), isolated(ref, draft.warn, passing=AiperfError):
            load(ref).check(plan, plan.plugins.options_of(ref))
    for ref in plan.plugins.live:
        if plan.plugins.facts.get(ref.key, {}).get("checks"):
            with draft.collected(), isolated(ref, draft.warn, passing=AiperfError):
                load(ref).check(plan, plan.plugins.options_of(ref))
    draft.settle()


def _plugins(
    draft: Draft, choice: EndpointChoice, source: Source, planned: tuple[PhasePlan, ...], *,
    tokenizer: PluginRef | None, engine: PluginRef | None, strategy: PluginRef | None, transport: PluginRef,
) -> PluginPlan:  # fmt: skip
    """The plugins of the run without their options.  An unusable plugin is reported; a nameless one is in its place."""
    registry, named = draft.registry, named_plugins(draft, planned)
    grader = _grader(draft, choice, source)
    telemetry, companions = _telemetry(draft), draft.everything("companions")
    samplers, drivers = _ranked(registry, "samplers"), _ranked(registry, "drivers")
    if not drivers:  # which one a phase has, its schedule decides while the data set is built
        why = "no plugin of the category drivers is installed, and nothing would start requests"
        draft.errors.append(UnknownPlugin(why, INSTALL_SUITE))
    schedules = [registry.descriptor("schedules", name) for name in named["schedules"]]
    live = draft.everything("live")
    every = [plugin for category in registry.categories() for plugin in registry.all(category)]
    watching = [registry.descriptor("live", ref.name) for ref in live]
    return PluginPlan(
        endpoint=_MISSING if choice.descriptor is None else choice.descriptor.ref,
        transport=transport,
        dataset=source.dataset or _MISSING,
        tokenizer=tokenizer, grader=grader, ui=processes.ui(draft),
        schedules=named["schedules"], arrivals=named["arrivals"], ramps=named["ramps"], engine=engine, url_strategy=strategy,
        metrics=draft.everything("metrics"), exporters=draft.everything("exporters"),
        hooks=draft.everything("hooks"), hook_names=registry.hooks().implemented, telemetry=telemetry,
        verdicts=draft.everything("verdicts"), tables=draft.everything("tables"), series=_series(draft) if telemetry else None,
        reducer=_reducer(draft), companions=tuple(_usable(draft, companions)), live=live,
        samplers={plugin.name: plugin.ref for plugin in samplers}, drivers={plugin.name: plugin.ref for plugin in drivers},
        facts={one.key: one.capabilities for one in (*samplers, *drivers, *schedules, *watching) if one.capabilities},
        shadowed={plugin.key: plugin.shadows for plugin in every if plugin.shadows},
        metric_ranks={plugin.key: registry.rank(plugin) for plugin in registry.all("metrics")},
        given=tuple(dict.fromkeys(field.rpartition(".")[0] for field in draft.settings.typed if ":" in field)),
        configuration=draft.settings.configuration, scenario=_scenario(draft), grading_timeout_s=_limit_s(draft, grader),
        grading_engine=_engine(draft, grader),
        grading_processes=draft.kernel.grading_processes, grading_limit_s=draft.kernel.grading_timeout_s,
    )  # fmt: skip


def _scenario(draft: Draft) -> PluginRef | None:
    name = draft.kernel.scenario
    return None if name is None else draft.chosen("scenarios", name, "scenario")


def _ranked(registry: Registry, category: str) -> list[Descriptor]:
    """The plugins of a category, the highest rank first."""
    return sorted(registry.all(category), key=registry.rank, reverse=True)


def _reducer(draft: Draft) -> PluginRef | None:
    """The plugin with the highest rank.

    The builder loads it before anything is sent, so a third party's alone, which nobody pinned, is tried here.
    """
    registry, failures = draft.registry, []
    for plugin in _ranked(registry, "reducers"):
        try:
            if not plugin.first_party and not registry.rank(plugin)[0]:
                load(plugin)
        except PluginError as error:
            failures.append(error.message)
            draft.warn(f"{error.message}; it is left out")
        else:
            return draft.chosen("reducers", plugin.name)
    why = "can be used" if failures else "is installed"
    message = f"no plugin of the category reducers {why}, and nothing would be made of what is measured"
    draft.refuse(message, *failures, INSTALL_SUITE)
    return None


def _telemetry(draft: Draft) -> tuple[PluginRef, ...]:
    """The sources, where a companion samples them."""
    sources = draft.everything("telemetry")
    samplers = [one for one in draft.registry.all("companions") if one.capabilities.get("needs_plugins") == "telemetry"]
    if sources and not samplers:
        draft.warn(f"no installed package samples {names([ref.key for ref in sources])}: {INSTALL_SUITE}")
    return sources if samplers else ()


def _series(draft: Draft) -> PluginRef | None:
    """The plugin with the highest rank that can be imported."""
    usable = next(_usable(draft, _ranked(draft.registry, "series")), None)
    return None if usable is None else draft.chosen("series", usable.name)


def _usable(draft: Draft, plugins: Iterable[PluginRef]) -> Iterator[PluginRef]:
    """The plugins that can be imported; a warning for each other one."""
    for plugin in plugins:
        try:
            load(plugin)
        except PluginError as error:
            draft.warn(f"{error.message}; it is left out")
        else:
            yield plugin


def _grader(draft: Draft, choice: EndpointChoice, source: Source) -> PluginRef | None:
    """The grader that is typed, else the data set's own."""
    typed = draft.kernel.accuracy_grader
    name = typed or source.grader
    if not name:
        return None
    name = sources.respelled(name, (plugin.name for plugin in draft.registry.all("graders")))
    option = "accuracy_benchmark" if typed is None and draft.given("accuracy_benchmark") else "accuracy_grader"
    if choice.descriptor is not None and not choice.can.produces_tokens:
        flag, kind = draft.flag(option), choice.descriptor.name
        draft.refuse(f"{flag} needs answers in words, and the endpoint type {kind!r} gives none", f"drop {flag}")
    return draft.chosen("graders", name, option)


def _limit_s(draft: Draft, grader: PluginRef | None) -> float | None:
    """The time for one answer, of a slow grader; options for slow ones are refused without a grader."""
    given = [field for field in ("grading_processes", "grading_timeout_s") if draft.typed(field)]
    if grader is None:
        flag = draft.flag("accuracy_grader")
        if given and draft.kernel.accuracy_grader is None:
            draft.refuse(f"{draft.flags(given)} without a grader: nothing is graded", f"add {flag}, or leave it out")
        return None
    from aiperf.sdk.grader import timeout_s

    limit_s = timeout_s(draft.registry.descriptor(grader.category, grader.name).capabilities)
    if given and limit_s is None:
        draft.warn(f"{draft.flags(given)} is for slow graders; {grader.name} grades while the load goes on")
    return limit_s


def _engine(draft: Draft, grader: PluginRef | None) -> str | None:
    """The optional package that the grader compares with, and its version."""
    if grader is None:
        return None
    from aiperf.sdk.grader import engine_of

    return engine_of(draft.registry.descriptor(grader.category, grader.name).capabilities)


def _sendable(options: Options) -> EncodedOptions:
    """The options as another process gets them, which it can decode."""
    options_class: Any = type(options)
    return _encoded(options) if options.fields_set else _defaults(options_class)


def _encoded(options: Options) -> EncodedOptions:
    encoded = EncodedOptions.of(options)
    encoded.decoded()
    return encoded


@cache
def _defaults(options_class: Any) -> EncodedOptions:
    """The options of a plugin of which nothing is given, as in most cells of a sweep."""
    return _encoded(options_class())


def _options(draft: Draft) -> dict[str, Any]:
    """Fields of a plan: the options of the plugins in use, as other processes decode them, and which of them are secret."""
    from aiperf.registry.option_claims import flags_of_lost
    from aiperf.registry.option_specs import conflicts, validate
    from aiperf.registry.specs import specs

    used = {ref.key for ref in draft.used}
    plugins = dict(draft.settings.plugins)
    for ref in draft.used:
        plugin = draft.registry.descriptor(ref.category, ref.name)
        if plugin.options_model is not None and plugin.key not in plugins:
            with draft.collected():
                model = draft.registry.load_options_model(plugin)
                lost = flags_of_lost(specs(model), plugin.lost_flags) if plugin.lost_flags and model is not None else {}
                options, errors = validate(model, plugin.options, {}, lost)
                for error in errors:
                    flag = error.message.partition(":")[0]
                    why = [f"it can't be given: {plugin.lost_flags[flag]}"] if flag in plugin.lost_flags else []
                    draft.refuse(f"{error.message} by the {singular(ref.category)} plugin {ref.name!r}", *why, *error.hints)
                if options is not None:
                    plugins[plugin.key] = options
    draft.settings = replace(draft.settings, plugins=plugins)
    _refuse_unused(draft, used)
    encoded, secret = {}, {}
    for key, options in plugins.items():
        category, _, name = key.partition(":")
        if key not in used and category not in _ALWAYS:
            continue
        start = f"{key}."
        typed = {field.removeprefix(start): flag for field, flag in draft.settings.typed.items() if field.startswith(start)}
        draft.errors += conflicts(key, options, typed)
        with draft.collected(), blamed(draft.registry.descriptor(category, name), "has options that can't be sent"):
            encoded[key] = _sendable(options)
            secret[key] = tuple(sorted(
                field for field, face in options.option_faces.items()
                if face.spec.secret or _has_login(encoded[key].values.get(field))
            ))  # fmt: skip
            _refuse_secrets(draft, encoded[key].values, secret[key], typed)
    return {"options": encoded, "secret_options": {key: fields for key, fields in secret.items() if fields}}


def _has_login(value: Any) -> bool:
    """Whether the value is a URL with credentials, or a list with one: it is a secret, whatever the option says."""
    if isinstance(value, list | tuple):
        return any(map(_has_login, value))
    return isinstance(value, str) and "@" in value and redact(value) != value


def _refuse_secrets(draft: Draft, values: Mapping[str, Any], secret: Collection[str], typed: Mapping[str, str]) -> None:
    """Refuse secrets inside other texts, such as a template: they would stand in the files of the run."""
    for field, value in values.items():
        if isinstance(value, str) and field not in secret and (named := secret_fields(value)):
            draft.refuse(
                f"{typed.get(field, field)} has a value for {names(named)}, which would be written with the results",
                f"drop it there, and add --extra-inputs {named[0]}:VALUE, which is redacted",
            )


def _refuse_unused(draft: Draft, used: set[str]) -> None:
    """Refuse a flag whose plugins are all unused.  Several packages may declare one flag alike."""
    owners: dict[str, list[str]] = {}
    for field, flag in draft.settings.typed.items():
        owners.setdefault(flag, []).append(field.rpartition(".")[0])
    for flag, keys in owners.items():
        categories = {key.partition(":")[0] for key in keys}
        if "" in keys or used & set(keys) or categories & _ALWAYS or categories <= draft.missing:
            continue
        category = keys[0].partition(":")[0]
        names = sorted({repr(key.partition(":")[2]) for key in keys if key.startswith(f"{category}:")})
        owner = f"{singular(category)} plugin{'s' if len(names) > 1 else ''} {' and '.join(names)}"
        instead = next((repr(ref.name) for ref in draft.used if ref.category == category), "none")
        option = sources.choosing(draft, keys)
        choose = f"add {option}, which chooses one" if option else f"choose {' or '.join(names)}"
        draft.refuse(f"{flag} belongs to the {owner}; this run uses {instead}", f"drop {flag}, or {choose}")
