"""The sites of a run, seen from the run: started, supplied, listened to, and ended."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from time import monotonic_ns

import msgspec
from msgspec.structs import replace

from aiperf.errors import AiperfError
from aiperf.planning.sites import part_of
from aiperf.processes import control
from aiperf.registry.third_party import blamed
from aiperf.rundir.journal import RunClock
from aiperf.sdk.driver import NOTES
from aiperf.sdk.engine import SiteClock, SiteEngine, SiteLoss
from aiperf.sdk.plan import PhasePlan, Plan, SiteOffset
from aiperf.sites import messages
from aiperf.sites.claims import Answer, Pools
from aiperf.sites.commands import Keeping, SiteCommands
from aiperf.sites.files import cut_to_frames, files_of, inputs, part, sent_file
from aiperf.sites.going_on import PhaseTimes
from aiperf.sites.remote_site import RemoteSite, SiteChild, times
from aiperf.sites.silence import SILENCE_S

_LEAD_NS, _LEAD_TRIPS = 20_000_000, 3
"""A phase begins so long after the message that says so, and so many of the shortest trips."""
_TEND_MS = 100
"""Between two looks at all sites."""
_END_S = 2.0
MOST_RESTARTS = 3
"""How often one site is started again in a run."""


class RemoteSites:
    """All sites of a run.

    *clock*: of the run.  *journal*: of the run, where columns come.  *log_file*: of the run; the command of each site has one
    beside it.  *module*: the program of a site.  *keeping*: None where no other plan follows.
    progress: counts what was heard of sites, answers on their clocks left out.

    Raises:
        AiperfError: The engine can't start one; those that it has started are ended.
    """
    # Larger than 250 lines: each message of a site, and each of the run to one, changes what the others may do.

    def __init__(
        self, plan: Plan, engine: SiteEngine, clock: RunClock, journal: Path, log_file: Path, module: str,
        keeping: Keeping | None = None,
    ) -> None:  # fmt: skip
        self._commands = SiteCommands(engine, module, keeping)
        self._board, self._most = self._commands.board, (plan.run.workers, plan.run.reducers)
        self._of_plan(plan, clock, journal, log_file)
        self.all: list[RemoteSite] = []
        try:
            for index, name in enumerate(plan.run.sites):
                self.all.append(self._started(index, name))
        except BaseException:
            self.close()
            raise

    def _of_plan(self, plan: Plan, clock: RunClock, journal: Path, log_file: Path) -> None:
        """Set what belongs to one plan to what it is before its load."""
        self._plan, self._clock, self._journal, self._log_file = plan, clock, journal, log_file
        self._files: dict[str, Path] = {}
        self._supplied: list[messages.SentFile] = []
        self._waiting: deque[control.Message] = deque()
        self._pools: Pools | None = None
        self._gone: set[RemoteSite] = set()
        self._tended_s, self.progress = 0.0, 0
        self._begun: control.Begin | None = None

    def _started(self, index: int, name: str, before: RemoteSite | None = None) -> RemoteSite:
        workers, reducers = map(len, self._indices(index))
        return self._commands.start(index, name, (workers, reducers), self._journal, self._log(index), before)

    def _log(self, index: int) -> Path:
        """What the command of a site says in this plan."""
        return self._log_file.with_name(f"site-{index}.log")

    def large_enough(self, plan: Plan) -> bool:
        """Whether their engine was told of as many processes as the *plan* has."""
        return plan.run.workers <= self._most[0] and plan.run.reducers <= self._most[1]

    def wake(self, hurried: Callable[[], bool]) -> str | None:
        """Between two plans: let every site make itself ready for another one; why one can't, None where all are.

        *hurried*: whether to wait for none of them any more.
        """
        return self._commands.wake(self.all, hurried)

    def begin(self, plan: Plan, clock: RunClock, journal: Path, log_file: Path) -> None:
        """Another plan, behind :meth:`wake`: the same commands, and nothing else of the plan before."""
        self._of_plan(plan, clock, journal, log_file)
        before, self.all = self.all, []
        for site in before:
            log = site.log.next(self._log(site.index))
            self.all.append(again := RemoteSite(self._board, site.name, site.index, site.process, log, journal))
            again.up = True
            again.ask_clock()

    def rest(self) -> None:
        """The plan is over: let every site wait for another one."""
        for site in self.all:
            site.send(messages.PlanOver())

    @property
    def resting(self) -> bool:
        """Whether every site does, so that another plan may follow; none of them was lost in the plan."""
        return all(site.resting and site.lost is None and not site.losses for site in self.all)

    def start_again(self, site: RemoteSite) -> RemoteSite:
        """Another process in the place of a lost *site*, while a phase goes on.

        Raises:
            AiperfError: It can't be: the sentence says why.
        """
        assert site.lost is not None and self._begun is not None, "it was lost in a phase"
        if len(site.losses) >= MOST_RESTARTS:
            raise AiperfError(f"it was started again {times(MOST_RESTARTS)} already")
        cut_to_frames(self._journal, site.index, len(self.all))
        with blamed(self._plan.plugins.engine, "can't start a site again"):
            again = self._started(site.index, site.name, site)
        known = replace(site.clock(()), losses=())
        again.losses.append(SiteLoss(site.lost, time.time_ns(), within_ms=known.uncertainty_ms))
        most = sum(_most_sent(phase, self._pools) for phase in self._plan.load.phases[: self._begun.phase + 1])
        again.first_requests += (max(site.first_requests, default=0) + most,)
        self.all[site.index] = again
        return again

    @property
    def lead_ns(self) -> int:
        """A phase begins so long after the message that says so: every site has it by then."""
        return _LEAD_NS + _LEAD_TRIPS * max((site.trips.shortest_ns for site in self.all), default=0)

    def child(self, role: str, index: int) -> SiteChild:
        """A worker or a reducer, which its site starts with its order."""
        site = self._site_of(index)
        site.children[role, index] = made = SiteChild(site, role, index)
        return made

    def restarted(self, role: str, index: int) -> SiteChild:
        """Another one in the place of one that died."""
        site = self._site_of(index)
        if role == "reducer":  # it may write another end of its columns
            for name in site.copy.names:
                if name.startswith(f"columns-{index}."):
                    site.copy.drop(name)
        site.send(messages.StartChild(role, index))
        return self.child(role, index)

    def requests(self) -> dict[int, int]:
        """How many requests each worker has sent; those of lost sites are missing, of whom nobody knows it."""
        known = [site for site in self.all if site.lost is None and not site.losses]
        return {shard: sent for site in known for shard, sent in site.requests.items()}

    def lost(self) -> str | None:
        """A sentence on the sites that are lost; None where none is."""
        gone = [f"site {site.name}: {site.lost}" for site in self.all if site.lost is not None]
        return "; ".join(gone) or None

    def supply(self, plan: Plan) -> None:
        """The data set is made: send it to every site that has its order; the others get it with their order."""
        self._plan, self._pools = plan, Pools(plan.load.phases, len(self.all))
        self._files = dict(inputs(plan, self._journal))
        self._supplied = [sent_file(path, name) for name, path in self._files.items()]
        for site in self.all:
            if site.ahead is not None:
                self._supply(site)

    @property
    def ready(self) -> bool:
        """Whether every site has the data set."""
        return all(site.supplied for site in self.all)

    @property
    def silent(self) -> str:
        """The names of the sites that have not got the data set."""
        return ", ".join(f"the site {site.name}" for site in self.all if not site.supplied)

    def send(self, role: str, index: int, message: control.Message) -> None:
        site = self._site_of(index)
        if isinstance(message, control.Begin) and site.ahead is not None:
            self._begun = message
            if site.goes_on(index, resumed=message.resumed):
                # It has this before the first arrival is due that it sends.
                elapsed_ns = monotonic_ns() + self.lead_ns - message.start_ns
                phase, workers = self._plan.load.phases[message.phase], self._plan.run.workers
                place = PhaseTimes(phase).place(index, workers, elapsed_ns, site.standing(index, message.phase))
                site.send(messages.GoOn(index, message.phase, place))
            message = replace(message, start_ns=message.start_ns + site.ahead_ns(message.start_ns))
        site.send(messages.ToChild(role, index, control.encode(message)))

    def receive(self, wait_ms: int) -> control.Message | None:
        """What a worker or a reducer says; None where none did in time.  What sites say themselves is handled here."""
        until_s = time.monotonic() + wait_ms / 1000
        while not self._waiting:
            self._tend()
            left_ms = max(0, round((until_s - time.monotonic()) * 1000))
            taken = self._board.receive(min(left_ms, _TEND_MS))
            if taken is not None:
                self._handle(self.all[taken[0]], taken[1])
            elif not left_ms:
                return None
        return self._waiting.popleft()

    def measure_again(self) -> None:
        """The load is over: look at every clock again, as often as before."""
        for site in self.all:
            site.measure_again()

    @property
    def complete(self) -> bool:
        """Whether the files of all sites that are not lost are here, and their clocks were looked at again."""
        return all(site.complete for site in self.all)

    def copied(self) -> tuple[int, int]:
        """How many bytes of the sites' files are here, and how many there are."""
        copies = [copy for site in self.all for copy in (site.copy, site.raw)]
        total = sum(copy.total_bytes for copy in copies)
        return total - sum(copy.missing_bytes for copy in copies), total

    def offsets(self) -> tuple[SiteOffset, ...]:
        """By which their instants are put on the run's clock."""
        return tuple(site.offset for site in self.all)

    def clocks(self) -> tuple[SiteClock, ...]:
        """What is known of each site and its clock."""
        return tuple(site.clock(self._indices(site.index)[0]) for site in self.all)

    def end(self, patience_s: float) -> None:
        """Tell every site that it is not needed, wait, then kill what is left.  May be called again."""
        self._commands.end(self.all, patience_s)

    def close(self) -> None:
        """End every site, and close the channel."""
        self.end(_END_S)
        self._commands.close()

    def _site_of(self, shard: int) -> RemoteSite:
        return self.all[shard % len(self.all)]

    def _indices(self, site: int) -> tuple[list[int], list[int]]:
        """The indices of the workers and of the reducers at a site."""
        run = self._plan.run
        return list(range(site, run.workers, len(run.sites))), list(range(site, run.reducers, len(run.sites)))

    def _tend(self) -> None:
        now_s = time.monotonic()
        if now_s - self._tended_s < _TEND_MS / 1000:
            return
        self._tended_s = now_s
        self._board.tend()
        for site in self.all:
            site.look(SILENCE_S)
            if site.lost is not None and site not in self._gone:
                self._gone.add(site)
                self._deal(self._pools.lose(site.index) if self._pools is not None else ())

    def _deal(self, answers: Iterable[Answer]) -> None:
        """Send to sites what follows of a claim."""
        for index, answer in answers:
            self.all[index].send(answer)

    def _handle(self, site: RemoteSite, message: messages.SiteMessage) -> None:
        if site.lost is not None:  # it was killed, and may still have said something
            return
        if not isinstance(message, messages.TripBack | messages.Usage):
            self.progress += 1
        match message:
            case messages.SiteUp():
                site.up = True
                site.ask_clock()
            case messages.TripBack():
                site.take_trip(message)
                if site.ahead is None and site.measured:
                    self._give_order(site)
            case messages.FromChild(body):
                if (said := self._said_by(site, body)) is not None:
                    self._waiting.append(_from_site(site, said))
                else:
                    site.lose("it sent what is no message of its processes")
            case messages.ChildEnded() | messages.Usage() | messages.Standings():
                site.note(message)
            case messages.Columns():
                site.take_sizes(message, len(self.all))
            case messages.FilePiece():
                site.take_piece(message)
            case messages.FileWanted(name):
                if name in self._files:
                    site.send(part(self._files[name], message))
                else:
                    site.lose("it asks for a file that is not for sites")
            case messages.Notes():
                _pass_on(message, site, self.all)
            case messages.Claim() | messages.Given() if self._pools is None or not self._pools.has(message):
                site.lose("it claims numbers of a phase that the run does not have")
            case messages.Claim() if self._pools is not None:
                self._deal(self._pools.claim(site.index, message))
            case messages.Given() if self._pools is not None:
                self._deal(self._pools.take(site.index, message))
            case messages.Supplied():
                site.supplied = True
            case messages.PlanDropped():
                site.resting = True
            case messages.Unfit(why):
                site.lose(why)

    def _said_by(self, site: RemoteSite, body: bytes) -> control.Message | None:
        """The message of a worker or a reducer of the site; None of what is none."""
        try:
            said = control.decode(body)
        except msgspec.MsgspecError:
            return None
        return said if getattr(said, "index", site.index) in chain(*self._indices(site.index), [site.index]) else None

    def _give_order(self, site: RemoteSite) -> None:
        """The clock is known: the site may start its processes."""
        site.ahead = site.trips.offset()
        clock = replace(self._clock, ahead_ns=site.ahead.ahead_ns)
        workers, reducers = self._indices(site.index)
        requests = dict.fromkeys(workers, site.first_requests[-1]) if site.losses else {}
        columns = {reducer: files_of(self._journal, reducer) for reducer in reducers if site.losses}
        keeping = self._commands.keeping
        phases = 0 if keeping is None else keeping.phases
        site.send(messages.Order(part_of(self._plan, site.index), clock, workers, reducers, requests, columns, phases))
        if self._supplied:
            self._supply(site)

    def _supply(self, site: RemoteSite) -> None:
        site.send(messages.Supply(part_of(self._plan, site.index), self._supplied))


def _most_sent(phase: PhasePlan, pools: Pools | None) -> int:
    """Most requests that a worker may have sent in the phase so far."""
    return pools.arrivals(phase.index) if phase.due_file is None and pools is not None else PhaseTimes(phase).arrivals


def _pass_on(notes: messages.Notes, site: RemoteSite, sites: Iterable[RemoteSite]) -> None:
    """Send what the workers of the *site* tell those of others to the other *sites*."""
    if not all(worker in site.workers and len(told) == NOTES for worker, told in notes.workers.items()):
        site.lose("it tells what is not its workers' own")
        return
    for other in sites:
        if other is not site:
            other.send(notes)


def _from_site(site: RemoteSite, message: control.Message) -> control.Message:
    """The message with instants of the run's clock, and the name of the site in its sentence."""
    match message:
        case control.PhaseEnded():
            ahead_ns = site.ahead_ns(monotonic_ns())
            last_ns = message.last_answer_ns and message.last_answer_ns - ahead_ns
            return replace(message, last_answer_ns=last_ns, at_ns=message.at_ns - ahead_ns)
        case control.Trouble(sentence) | control.Notice(sentence):
            return replace(message, message=f"site {site.name}: {sentence}")
        case control.Ready() | control.Reduced() if message.trouble is not None:
            return replace(message, trouble=f"site {site.name}: {message.trouble}")
    return message
