"""A worker's share of a run: its requests, transport and drivers, made of the plan and the run's directory."""

from __future__ import annotations

import asyncio
import mmap
import os
from collections.abc import Callable, MutableSequence, Sequence
from functools import partial
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from aiperf import environment
from aiperf.registry.hooks import Hooks
from aiperf.registry.third_party import blamed, load, made
from aiperf.rundir.store import Store
from aiperf.rundir.uses import uses_of
from aiperf.sdk.driver import ARRIVALS, SESSIONS, Counter, Driver, DriverContext
from aiperf.sdk.endpoint import drains, follows
from aiperf.sdk.framing import event_mark
from aiperf.sdk.plan import PhasePlan, Plan, Secrets
from aiperf.sdk.transport import Transport, TransportSettings
from aiperf.worker import slots
from aiperf.worker.clock import LoopTimer
from aiperf.worker.logbook import Logbook
from aiperf.worker.request_sink import RequestSink
from aiperf.worker.requests import Requests

if TYPE_CHECKING:
    from aiperf.worker.following import Following


class WorkerPlace(Struct, frozen=True):
    """The index of a worker among *workers*, which are at so many *sites*, and its inherited file descriptors.

    fds: of the progress table; with several workers or sites, then four a phase: session slots, prefill slots, arrival
    numbers, session numbers; where the site *claims* numbers of bursts, then those of
    :class:`aiperf.worker.shared.ClaimFds`.  Empty where the engine shares no memory.
    """

    index: int
    workers: int
    fds: Sequence[int] = ()
    sites: int = 1
    claims: bool = False

    @property
    def together(self) -> int:
        """Workers of the same site: they share its limits."""
        return self.workers // self.sites

    @property
    def site(self) -> int:
        return self.index % self.sites

    @property
    def first(self) -> bool:
        """Whether it is the first worker of its site."""
        return self.index < self.sites


class _Numbers(NamedTuple):
    """A phase's gate, and who numbers its arrivals and its sessions."""

    gate: slots.SlotGate
    arrivals: Counter
    sessions: Counter


class Share:
    """A worker's share of a run.

    phase_open: whether a phase is under way.  rises: the limits that grow in it.  give_up: ends the run, for the reason in a
    sentence.
    """

    def __init__(self, plan: Plan, place: WorkerPlace, logbook: Logbook, requests: Requests, progress: slots.Progress) -> None:
        self.plan, self.place, self.logbook, self.requests = plan, place, logbook, requests
        self.phase_open = False
        self.rises: list[slots.Rise] = []
        self._progress = progress
        self._driver: Driver[Any] | None = None
        self.give_up: Callable[[str], None] = lambda _: None
        self._factories = {phase.driver: load(plan.plugins.drivers[phase.driver]) for phase in plan.load.phases}

    def driver(self, phase: PhasePlan) -> Driver[Any]:
        """A driver of this worker's share of the phase, behind the phase's limits.

        Raises:
            PluginError: The driver plugin fails.
        """
        place, ref = self.place, self.plan.plugins.drivers[phase.driver]
        cells = self._progress.of(place.index, phase.index)
        fds = tuple(place.fds[1 + 4 * phase.index : 5 + 4 * phase.index]) or (-1,) * 4
        sessions = self._slots(fds[0], phase.concurrency, phase.limits_file, cells, slots.SLOTS)
        prefills = self._slots(fds[1], phase.prefill_concurrency, phase.prefill_limits_file, cells, slots.PREFILLS)
        limited = prefills if phase.prefill_concurrency is not None else None
        numbers = self._claimed(phase, sessions, limited) if place.claims else self._numbers(phase, sessions, limited)
        context = DriverContext(
            phase, self.requests, numbers.gate, loop=self.requests.loop, timer=partial(LoopTimer, self.requests.loop),
            arrival_numbers=numbers.arrivals, session_numbers=numbers.sessions,
            progress=cells, due=_mapped(phase.due_file), sessions=_mapped(phase.sessions_file),
            shard=place.index, shards=place.workers, max_turns=self.requests.store.max_turns, seed=self.plan.run.seed,
            share=None if phase.concurrency is None else -(-phase.concurrency // place.together),
            before=self._driver, notes=self._progress.notes(), tell=self.logbook.tell,
            give_up=self.give_up, following=next(iter(self.plan.load.phases[phase.index + 1 :]), None),
        )  # fmt: skip
        with blamed(ref, "can't drive the phase"):
            driver: Driver[Any] = self._factories[phase.driver](self.plan.plugins.options_of(ref), context)
        self._driver = driver
        return driver

    def _numbers(self, phase: PhasePlan, sessions: slots.Slots, prefills: slots.Slots | None) -> _Numbers:
        """The gate and the numbers of a run on one machine."""
        place, home = self.place, self.plan.load.phases[phase.home]
        gate, several = slots.SlotGate(sessions, prefills), len(place.fds) > 1
        if several:
            of, of_home = 3 + 4 * phase.index, 4 + 4 * home.index
            return _Numbers(gate, slots.SharedCounter(place.fds[of]), slots.SharedCounter(place.fds[of_home]))
        cells, home_cells = (self._progress.of(place.index, each.index) for each in (phase, home))
        return _Numbers(gate, slots.LocalCounter(cells, ARRIVALS), slots.LocalCounter(home_cells, SESSIONS))

    def _claimed(self, phase: PhasePlan, sessions: slots.Slots, prefills: slots.Slots | None) -> _Numbers:
        """The gate and the numbers of a site, which has claimed them."""
        from aiperf.worker.claims import Blocks, ClaimedCounter, ClaimGate
        from aiperf.worker.shared import claim_fds

        def counter(number: int, index: int) -> ClaimedCounter:
            fds = claim_fds(self.place.fds, index)
            blocks = Blocks(fds.blocks, number)
            return ClaimedCounter(fds.stocks[number], fds.positions[number], blocks, self.requests.loop)

        arrivals, numbers = counter(ARRIVALS, phase.index), counter(SESSIONS, phase.home)
        if phase.due_file is not None:  # numbers are planned, and drivers draw none
            return _Numbers(slots.SlotGate(sessions, prefills), arrivals, numbers)
        drawn = self.requests.store.max_turns > 1 and not self.plan.plugins.fact("drivers", phase.driver, "lanes")
        return _Numbers(ClaimGate(sessions, prefills, arrivals, numbers, sessions_drawn=drawn), arrivals, numbers)

    def _slots(self, fd: int, limit: int | None, levels: str | None, held: MutableSequence[int], cell: int) -> slots.Slots:
        """A limit: of this worker alone (*fd* -1), or of all workers.  *levels* names the file of a ramped limit's rise."""
        place, loop = self.place, self.requests.loop
        start = limit if levels is None else slots.first_slots(place.site)
        alone = fd < 0 or limit is None
        free: slots.Slots = slots.LocalSlots(start) if alone else slots.SharedSlots(fd, loop, held, cell)
        if levels is not None and (fd < 0 or place.first):  # one worker raises a limit that all share
            self.rises.append(slots.Rise(slots.site_levels(_mapped(levels), place.site, place.sites), free, loop))
        return free


async def load_share(
    plan: Plan, secrets: Secrets, directory: Path, place: WorkerPlace, hooks: Hooks, warn: Callable[[str], None]
) -> Share:
    """The share of this worker of the run in *directory*, connections opened ahead.

    Raises:
        AiperfError: A plugin cannot be used.
        Exception: Of a transport.
    """
    share = make_share(plan, secrets, directory, place, hooks, warn)
    transport = share.requests.transport
    await transport.open()
    await transport.warm(_connections(plan, place))
    return share


def make_share(
    plan: Plan, secrets: Secrets, directory: Path, place: WorkerPlace, hooks: Hooks, warn: Callable[[str], None], *,
    kind: type[RequestSink] = RequestSink, through: Callable[[Transport], Transport] = lambda transport: transport,
) -> Share:  # fmt: skip
    """The share, its transport not open yet.  To be called in a running loop.

    kind: of its sink.  through: what they are sent through, of the plan's transport.

    Raises:
        AiperfError: A plugin cannot be used.
        Exception: Of a transport.
    """
    loop = asyncio.get_running_loop()
    about = {"run_id": plan.run.run_id, "shard": place.index, "shards": place.workers, "pid": os.getpid()}
    logbook = Logbook(directory, place.index, {**about, "started_mono_ns": monotonic_ns()}, keeps=bool(plan.run.sites))
    target, endpoint = plan.target, load(plan.plugins.endpoint)
    several = follows(endpoint)
    if drains(endpoint) and not several and kind is RequestSink:
        from aiperf.worker.draining import DrainingSink

        kind = DrainingSink
    fd = place.fds[0] if place.fds else slots.make_progress_fd(len(plan.load.phases), place.workers)
    progress = slots.Progress(fd, len(plan.load.phases), place.workers)
    uses = uses_of(directory, place.index)
    store = Store(directory, plan.target.given_path, looks=uses is not None)
    requests = Requests(
        plan, secrets, store, logbook, place.index, hooks.request_chain(),
        loop=loop, numbered=progress.requests(place.index), warn=warn, kind=kind, uses=uses,
    )  # fmt: skip
    following = _following(requests, loop) if several else None
    settings = TransportSettings(
        target.urls, target.tls, target.reuse, target.sticky, keep_heads=plan.output.keeps_requests or following is not None,
        family=environment.ip_version(), trust_env=environment.trust_env(),
        event_mark=event_mark(endpoint.framing, asked=target.streaming),
        options=plan.plugins.options_of(plan.plugins.transport),
    )  # fmt: skip
    share = Share(plan, place, logbook, requests, progress)
    sink = following or requests.sink
    transport = hooks.call("aiperf_make_transport", settings=settings, sink=sink, loop=loop)
    transport = made(plan.plugins.transport, settings, sink, loop) if transport is None else transport
    transport = through(transport)
    if following is not None:
        following.transport = transport
    requests.send_through(following or transport)
    return share


def _following(requests: Requests, loop: asyncio.AbstractEventLoop) -> Following:
    from aiperf.worker.following import Following

    return Following(requests, loop)


def _connections(plan: Plan, place: WorkerPlace) -> int:
    """Connections to open ahead, per URL: as many as this worker will use at once, so that no request of the first wave is
    measured while it connects; 0 where that is wanted."""
    limits = ((_held(plan, phase, place), phase.request_count, phase.session_count) for phase in plan.load.phases)
    most = max(min(limit for limit in row if limit is not None) for row in limits)
    return -(-most // (place.together * len(plan.target.urls))) if plan.target.preconnect else 0


def _held(plan: Plan, phase: PhasePlan, place: WorkerPlace) -> int:
    """The limit of concurrent sessions at the worker's site, 0 without one."""
    return -(-(phase.concurrency or 0) // (place.sites if plan.plugins.fact("drivers", phase.driver, "lanes") else 1))


def _mapped(path: str | None) -> memoryview:
    """A file of int64 as a view, read page by page as needed; empty without a file."""
    if path is None or Path(path).stat().st_size == 0:
        return memoryview(b"").cast("q")
    with Path(path).open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)).cast("q")
