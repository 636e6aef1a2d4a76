"""The processes of a run: how many workers and reducers, the engine's limits, the display and channels."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any

from aiperf import environment
from aiperf.foreign import DISPLAY, NO_DISPLAY
from aiperf.planning.expected_load import (
    SESSIONS_PER_WORKER,
    WORKER_SHARE,
    ExpectedLoad,
    expected_load,
    highest,
    reducers_for,
)
from aiperf.planning.kernel_options import KernelOptions
from aiperf.planning.problems import Draft
from aiperf.registry.third_party import isolated, load
from aiperf.sdk.descriptor import PluginRef, canonical
from aiperf.sdk.model import names
from aiperf.sdk.plan import PhasePlan


def counts(
    draft: Draft, engine: PluginRef | None, phases: tuple[PhasePlan, ...], transport: PluginRef | None = None, *,
    dataset: PluginRef | None = None, streaming: bool = False, sites: int = 0,
) -> tuple[int, int]:  # fmt: skip
    """Workers and reducers.  One worker runs limits that workers without shared memory can't count together, and a transport
    with the capability ``one_worker``.  Each of *sites* has as many of both.

    *dataset*: whose options say how long answers are.  *streaming*: whether these come in chunks.
    A fixed schedule has one worker: its rate is unknown until the trace is read.  The CPUs of this machine bound the numbers
    where workers and reducers are here; those of sites are unknown.
    """
    tokens = None if dataset is None else _answer_tokens(draft, dataset)
    loads = [expected_load(phase, streaming=streaming, answer_tokens=tokens) for phase in phases]
    workers, reducers = 1, 1
    with draft.collected():
        workers, reducers = _from_load(draft.kernel, phases, expected := highest(loads), sites)
        if sites:
            workers, reducers = _at_sites(draft, sites, workers, reducers)
        _told(draft, workers, reducers, expected, sites)
    if transport is not None and draft.registry.descriptor("transports", transport.name).capabilities.get("one_worker"):
        for field in ("workers", "workers_max"):
            if ((draft.typed(field) and getattr(draft.kernel, field)) or 1) > 1:
                flag, why = draft.flag(field), f"the transport {transport.name!r} has one worker"
                draft.refuse(f"{flag} {getattr(draft.kernel, field)} is not possible: {why}", f"use {flag} 1")
        return 1, 1
    if sites or engine is None or workers == 1:
        return workers, reducers
    if draft.registry.descriptor("engines", engine.name).capabilities.get("shares_memory"):
        return workers, reducers
    together = [phase.name for phase in phases if not phase.paced or phase.concurrency or phase.prefill_concurrency]
    if not together:
        return workers, reducers
    if draft.given("workers"):
        why = f"workers of the engine {engine.name} share no memory, and the limits of {names(together)} count for all together"
        draft.refuse(f"{draft.flag('workers')} {workers} is not possible: {why}", f"use {draft.flag('workers')} 1")
        return workers, reducers
    draft.warn(
        f"one worker instead of {workers}: those of the engine {engine.name} share no memory, and the limits of"
        f" {names(together)} count for all of them together"
    )
    return 1, 1


def _answer_tokens(draft: Draft, dataset: PluginRef) -> float | None:
    """Mean length of the answers that the data set's options ask for; None where they don't say it."""
    options = draft.settings.plugins.get(dataset.key)
    if options is None:
        return None
    with isolated(dataset, draft.warn):
        return options.expected_answer_tokens
    return None


def _at_sites(draft: Draft, sites: int, workers: int, reducers: int) -> tuple[int, int]:
    """Workers and reducers of all sites together: what the load needs, or was asked for, as many at each site."""
    for field in ("workers", "workers_max"):
        most = getattr(draft.kernel, field) if draft.typed(field) else None
        if most is not None and (most < sites or (field == "workers" and most % sites)):
            flag = draft.flag(field)
            draft.refuse(f"{flag} {most} can't be divided among {sites} sites", f"use {flag} {-(-most // sites) * sites}")
    most = draft.kernel.workers_max
    workers = -(-workers // sites) * sites
    if most is not None and sites <= most < workers:
        workers = most // sites * sites
    return workers, min(workers, -(-reducers // sites) * sites)


def _from_load(
    kernel: KernelOptions, phases: Sequence[PhasePlan], load: ExpectedLoad, sites: int
) -> tuple[int, int]:  # fmt: skip
    """Workers and reducers for the load; ``--workers``, else ``AIPERF_WORKERS``, forces a number of workers.

    The CPUs of *sites* are unknown: there are as many of both there as the load needs.
    """
    limits = [level for phase in phases for level in (phase.concurrency, phase.prefill_concurrency) if level is not None]
    users = [phase.users for phase in phases if phase.users is not None]
    cpus, cap = None if sites else environment.cpus(), environment.workers_cap() * max(1, sites)
    most = kernel.workers_max or (cap if cpus is None else min(math.floor(environment.worker_cpu_share() * cpus) - 1, cap))
    # More workers than sessions would idle.
    workers = max(1, min([load.workers, most, *limits, *users]))
    forced = kernel.workers or environment.forced_workers()
    if forced is not None:
        workers = forced if kernel.workers_max is None else min(forced, kernel.workers_max)
    scale = environment.workers_per_reducer()
    reducers = kernel.record_processors or (
        reducers_for(load, workers, cpus, forced=forced is not None) if scale is None else math.ceil(workers / scale)
    )
    return workers, min(workers, reducers)


def _told(draft: Draft, workers: int, reducers: int, load: ExpectedLoad, sites: int) -> None:
    """Log what was chosen, and why, where the load by itself asks for more than one worker."""
    kernel = draft.kernel
    if load.workers == 1 or kernel.workers or environment.forced_workers() is not None:
        return
    chosen = f"{_count(workers, 'worker')} and {_count(reducers, 'reducer')}"
    if load.worker_cores > WORKER_SHARE:
        why = f"{load} are expected to take {load.worker_cores:.1f} cores, and a worker uses {WORKER_SHARE:g} of one"
    else:
        why = f"{load.sessions:,} sessions at a time are expected, and a worker holds {SESSIONS_PER_WORKER:,}"
    if workers < load.workers:
        bound = f"{environment.workers_cap()} workers of a site" if sites else f"{environment.cpus()} CPUs"
        if kernel.workers_max:
            bound = f"{draft.flag('workers_max')} {kernel.workers_max}"
        why += f"; the load has work for {load.workers:,}, and {bound} and the load's own limits leave room for {workers}"
    draft.hint(f"{chosen}: {why}; {draft.flag('workers')} sets a number")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def ui(draft: Draft) -> PluginRef | None:
    """The live display.  One that needs a terminal where there is none, or that another one stands in for, is replaced."""
    registry = draft.registry
    name, terminal = draft.kernel.ui, sys.stderr.isatty()
    if draft.kernel.quiet:
        for field in ("verbose", "extra_verbose"):
            draft.exclusive(field, "quiet", "one prints more of the log, the other none of it")
        if canonical(name or NO_DISPLAY) != NO_DISPLAY:
            one, other = f"{draft.flag('ui')} {name}", draft.flag("quiet")
            draft.refuse_both(one, other, "one shows the run, the other nothing of it", f"drop {one}, or {other}")
        return draft.chosen("uis", NO_DISPLAY)
    if name is None:
        preferred = next((one for one in registry.all("uis") if one.capabilities.get("preferred")), None)
        if terminal and not draft.kernel.dry_run and preferred is not None and not unfit(preferred.capabilities):
            return draft.chosen("uis", preferred.name)
        loud = draft.kernel.verbose or draft.kernel.extra_verbose
        return draft.chosen("uis", DISPLAY if (terminal or loud) and registry.find("uis", DISPLAY) else NO_DISPLAY)
    descriptor = registry.find("uis", name)
    understudy = next((one for one in registry.all("uis") if name in one.capabilities.get("instead_of", ())), None)
    if descriptor is None and understudy is not None:
        draft.warn(f"no {name} is installed; using the {understudy.name} display")
        return draft.chosen("uis", understudy.name)
    needs = unfit(descriptor.capabilities) if descriptor is not None else ""
    if needs:
        draft.warn(f"the display {name} needs {needs}; using the {DISPLAY} one")
        return draft.chosen("uis", DISPLAY)
    with draft.collected(draft.flag("ui")):
        load(registry.ref("uis", name))  # the display's process would report an import error too late
    return draft.chosen("uis", name, "ui")


def unfit(display: Mapping[str, Any]) -> str:
    """What a display with these facts needs of the terminal and this one lacks; "" where it fits."""
    if not display.get("terminal"):
        return ""
    if not sys.stderr.isatty():
        return "a terminal"
    if os.environ.get("TERM", "") in ("", "dumb"):
        return f"a terminal that can move its cursor, and TERM is {os.environ.get('TERM', '') or 'not set'}"
    with contextlib.suppress(OSError):  # it isn't the terminal of this session
        if os.tcgetpgrp(sys.stderr.fileno()) != os.getpgrp():
            return "the terminal for itself, and another job has it"
    with contextlib.suppress(OSError):
        size = os.get_terminal_size(sys.stderr.fileno())
        columns, lines = display.get("least_columns", 0), display.get("least_lines", 0)
        if 0 < size.columns < columns or 0 < size.lines < lines:
            return f"{columns} columns and {lines} lines, and the terminal has {size.columns} and {size.lines}"
    return ""


def _is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach the host's ports."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check(draft: Draft) -> None:
    """Refuse contradictory options of channels, and bad environment variables."""
    kernel = draft.kernel
    draft.exclusive("workers", "workers_max", "one is the number of workers, the other its upper bound")
    draft.exclusive("zmq_host", "zmq_ipc_path", "control messages go one way or the other")
    if kernel.zmq_host is not None and kernel.zmq_ipc_path is None and not _is_loopback(kernel.zmq_host):
        why = "whoever reached the port could steer the run, and read its API key"
        draft.refuse(
            f"{draft.flag('zmq_host')} {kernel.zmq_host} is not this machine's loopback: {why}",
            "use 127.0.0.1; workers on other machines are sites (--engine), and what they say is encrypted",
        )
    if kernel.as_json and not kernel.dry_run:
        draft.refuse_alone(draft.flag("as_json"), "--dry-run", "a run writes its results as JSON to a file")
    ipc = kernel.zmq_ipc_path
    if ipc is not None and ipc.exists() and not ipc.is_dir():
        draft.refuse(f"{draft.flag('zmq_ipc_path')}: {ipc} is a file; it must be a directory")
    draft.errors += environment.problems()
