"""The sites of a run: their names, what can't be run there, and each site's part of the plan."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from aiperf.planning.problems import Draft
from aiperf.registry.third_party import blamed, made
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.engine import SiteEngine
from aiperf.sdk.plan import ExportLevel, PhasePlan, Plan


def site_names(draft: Draft, engine: PluginRef | None) -> tuple[str, ...]:
    """The names of the run's sites; () where its shards are on this machine."""
    if engine is None or not draft.registry.descriptor("engines", engine.name).capabilities.get("sites"):
        return ()
    plugin = draft.registry.descriptor("engines", engine.name)
    options = draft.settings.plugins.get(engine.key)
    if options is None and plugin.options_model is not None:
        options = draft.registry.load_options_model(plugin)()
    with draft.collected(draft.flag("engine")), blamed(engine, "can't name its sites"):
        site_engine: SiteEngine = made(engine, options)
        names = tuple(site_engine.names())
        if len(set(names)) == len(names) and names:
            return names
        said = ", ".join(names) or "no site"
        draft.refuse(f"{draft.flag('engine')} {engine.name} has {said}", "each site is named once, and there is at least one")
    return ()


def check(draft: Draft, names: Sequence[str], phases: Sequence[PhasePlan]) -> None:
    """Refuse what sites can't do, and say how ceilings are divided."""
    if not names:
        if draft.kernel.restart_lost_shards:
            flag = draft.flag("restart_lost_shards")
            draft.refuse(f"{flag} is for a run with sites, and this one has none", f"drop {flag}, or name an engine with sites")
        return
    if draft.kernel.restart_lost_shards and draft.kernel.export_level == ExportLevel.RAW:
        flag, level = draft.flag("restart_lost_shards"), draft.flag("export_level")
        why = "the raw journal of a lost site ends with it"
        draft.refuse(f"{flag} is not possible with {level} raw: {why}", f"use {level} records")
    count = len(names)
    for phase in phases:
        for limit, field in ((phase.concurrency, "concurrency"), (phase.prefill_concurrency, "prefill_concurrency")):
            if limit is not None and limit < count:
                draft.refuse(
                    f"{draft.flag(field)} {limit} of phase {phase.name} can't be divided among {count} sites",
                    f"raise it to {count}, or use fewer sites",
                )
            elif limit is not None and count > 1:
                sum_of = " + ".join(map(str, shares(limit, count)))
                draft.hint(f"{draft.flag(field)} of phase {phase.name}: {limit} = {sum_of} at the sites {', '.join(names)}")


def shares(limit: int, sites: int) -> tuple[int, ...]:
    """A limit divided by largest remainder: the first sites have one more where it does not divide evenly."""
    return tuple(limit // sites + (site < limit % sites) for site in range(sites))


def part_of(plan: Plan, site: int) -> Plan:
    """A site's part of the plan: its share of each limit, and no plugin that works beside the load or writes results.

    Of lanes it has the number of all: they belong to workers by their numbers.
    """
    count = len(plan.run.sites)

    def part(limit: int | None, *, lanes: bool | None = False) -> int | None:
        return limit if limit is None or lanes else shares(limit, count)[site]

    phases = tuple(
        replace(
            phase,
            concurrency=part(phase.concurrency, lanes=plan.plugins.fact("drivers", phase.driver, "lanes")),
            prefill_concurrency=part(phase.prefill_concurrency),
        )
        for phase in plan.load.phases
    )
    return plan.public().replacing(
        phases=phases, source=None, exporters=(), companions=(), live=(), telemetry=(), ui=None, engine=None, series=None,
        configuration=None, scenario=None,
    )  # fmt: skip
