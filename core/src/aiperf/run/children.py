"""The processes of a run: workers and reducers, their messages, and the ones that take the place of those that die.

They start early, so that they import while the data set is built.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from aiperf.errors import AiperfError
from aiperf.processes import control, local
from aiperf.registry.third_party import blamed, made
from aiperf.run.live_parts import LiveParts
from aiperf.run.site_losses import SiteLosses
from aiperf.run.start import Outcome
from aiperf.sdk.engine import Shard, ShardEngine, ShardStart
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.reducer import Ended, Live
from aiperf.sdk.snapshot import VerdictSoFar
from aiperf.worker.shared import Shared

if TYPE_CHECKING:
    from aiperf.run.site_switchboard import SiteSwitchboard
    from aiperf.sites.remote import RemoteSites
    from aiperf.sites.remote_site import RemoteSite, SiteChild

log = logging.getLogger(__name__)

POLL_MS = 100
"""How long the parent waits for a message before it looks around."""
_RESTARTS = 3
"""How many workers, and how many reducers, are replaced in a run."""
_LEAD_NS = 3_000_000
_PHASES = 2
"""Phases that the workers of a plan can share at least: warmup and profiling, where the next plan has both."""


class Child:
    """One process, known to the control channel as *identity* (``worker-0``).  away: the *process* of a site, None here."""

    def __init__(self, role: str, index: int, process: Shard, away: SiteChild | None = None) -> None:
        self.role, self.index, self.process, self.away = role, index, process, away
        self.identity = f"{role}-{index}"
        self.up = self.ready = self.released = False

    @property
    def busy(self) -> bool:
        """Whether it still has to do with the plan."""
        resting = self.away is not None and self.away.site.resting
        return not (self.released or resting) and self.process.poll() is None

    @property
    def lost(self) -> bool:
        """Whether its whole site is."""
        return self.away is not None and self.away.site.lost is not None

    def fate(self) -> str:
        return local.fate(self.process.poll()) + ("" if self.away is None else f" at the site {self.away.site.name}")


class Children:
    """Starts, watches and ends them; never leaves one behind.

    of: the processes of each role; those behind the plan's number wait for a plan with more.  replaceable: whether another
    worker can go on where a dead one stood.  local: whether workers are plain processes of this one.  *kept*: another plan
    may follow.  *sites*: those of the run, None without; workers and reducers of each plan are there, until :meth:`come_home`.

    Without sites reducers are processes of this machine; where workers are, the plan's engine decides.

    Raises:
        AiperfError: The engine can't be used.
    """

    def __init__(
        self, plan: Plan, address: str, journal: Path, log_file: Path, *, kept: bool = False, sites: RemoteSites | None = None
    ) -> None:  # fmt: skip
        self._address, self._sites, self._home = address, sites, sites is None
        ref = None if sites is not None else plan.plugins.engine
        self._engine: ShardEngine = local.Local() if ref is None else made(ref, plan.plugins.options_of(ref))
        self._engine_name = "the local engine" if ref is None else str(ref)
        self.replaceable = self._engine.shares_memory
        self.local = sites is None and type(self._engine) is local.Local
        self.shared = Shared(fewest_phases(plan), several=kept or plan.run.workers > 1)
        self.of: dict[str, list[Child]] = {"worker": [], "reducer": []}
        self._at_home: list[Child] = []
        self.begin(plan, journal, log_file)

    def begin(self, plan: Plan, journal: Path, log_file: Path) -> None:
        """Take the plan over: start the processes that are missing, that died or that did not drop the plan before."""
        self._plan, self._journal, self._log_file = plan, journal, log_file
        self.shared.begin(plan)
        self._home = self._sites is None
        if not self._home:  # sites know themselves which of theirs go on
            self.of = {role: [] for role in self.of}
        self._fill("worker", plan.run.workers)
        self._fill("reducer", plan.run.reducers)

    def _fill(self, role: str, number: int) -> None:
        """Start the processes that are missing, that died or that did not drop the plan before."""
        children = self.of[role]
        for index in range(number):
            if index == len(children):
                children.append(self._started(role, index))
            elif not children[index].released or children[index].process.poll() is not None:
                children[index].process.kill()
                children[index] = self._started(role, index)
            children[index].ready = children[index].released = False

    @property
    def workers(self) -> list[Child]:
        return self.of["worker"][: self._plan.run.workers]

    @property
    def reducers(self) -> list[Child]:
        return self.of["reducer"][: self._plan.run.reducers]

    @property
    def all(self) -> list[Child]:
        return [*self.workers, *self.reducers]

    def _started(self, role: str, index: int) -> Child:
        if self._sites is not None and not self._home:
            return _away(role, index, self._sites.child(role, index))
        if role == "reducer":
            command = local.module_command("aiperf.run.reducer_process", self._address, index)
            return Child(role, index, local.LocalProcess(command, self._log_file))
        fds = self.shared.fds if self._engine.shares_memory else []
        command = local.module_command("aiperf.worker.process", self._address, index, ",".join(map(str, fds)))
        with blamed(self._engine_name, f"can't start shard {index}"):
            return Child(role, index, self._engine.start(ShardStart(index, command, tuple(fds), self._log_file)))

    def restart(self, child: Child) -> None:
        """Start a process in the place of one that died: a reducer goes on from its columns, a worker from its standing."""
        if self._sites is not None and not self._home:
            again = _away(child.role, child.index, self._sites.restarted(child.role, child.index))
        else:
            again = self._started(child.role, child.index)
        self.of[child.role][child.index] = again

    def losses(self, outcome: Outcome, parts: LiveParts) -> SiteLosses | None:
        """What becomes of sites that are lost; None without sites.  *parts*: of their reducers."""
        if self._sites is None:
            return None
        return SiteLosses(self._sites, self, outcome, parts, again=self._plan.run.restart_lost)

    def move(self, site: RemoteSite) -> None:
        """The site takes the place of one that was lost, with its workers and reducers."""
        assert self._sites is not None, "there are sites"
        for child in self._every:
            if child.away is not None and child.away.site.index == site.index:
                self.of[child.role][child.index] = self._started(child.role, child.index)

    def release(self, child: Child, phase: PhasePlan) -> None:
        """Give back what a dead worker held of the phase's limits; a site does so itself."""
        if self._sites is None:
            self.shared.release(child.index, phase)

    def requests(self) -> dict[int, int]:
        """How many requests each worker has sent, as far as that is known."""
        if self._sites is not None:
            return self._sites.requests()
        return self.shared.requests() if self.replaceable else {}

    def come_home(self) -> None:
        """The sites are over: reducers of this machine take the columns that came, and go on from them."""
        self._home = True
        self.of["reducer"] = self._at_home
        self._fill("reducer", self._plan.run.reducers)

    @property
    def lead_ns(self) -> int:
        """A phase begins so long after the message that says so: every worker has it by then."""
        return _LEAD_NS if self._sites is None else self._sites.lead_ns

    def let_go(self) -> None:
        """Close every standard input: the processes end by themselves."""
        for child in self._every:
            child.process.let_go()

    @property
    def _every(self) -> list[Child]:
        resting = [] if self.of["reducer"] is self._at_home else self._at_home
        return [*self.of["worker"], *self.of["reducer"], *resting]

    def end(self, patience_s: float) -> None:
        """Close every standard input, wait, then kill what is left."""
        self.let_go()
        until = time.monotonic() + patience_s
        for child in self._every:
            if child.process.wait(max(0.0, until - time.monotonic())) is None:
                child.process.kill()
        self._engine.close()
        self.shared.close()


def _away(role: str, index: int, process: SiteChild) -> Child:
    return Child(role, index, process, process)


def fewest_phases(plan: Plan) -> int:
    """The number of phases for which limits are made with the plan: the next one may have more than it has."""
    return max(_PHASES, len(plan.load.phases))


def counts(plan: Plan) -> dict[str, int]:
    """How many processes of each role the plan has on this machine, as plain processes of this one."""
    engine = plan.plugins.engine
    here = engine is None or engine.value == f"{local.Local.__module__}:{local.Local.__qualname__}"
    return {"worker": plan.run.workers if here else 0, "reducer": plan.run.reducers}


def _together(before: control.Counters | None, now: control.Counters) -> control.Counters:
    """The counters of a worker with those of the one in whose place it is."""
    if before is None or before.phase != now.phase:
        return now
    received = None if now.received_bytes is None else now.received_bytes + (before.received_bytes or 0)
    return replace(
        now, sent=before.sent + now.sent, completed=before.completed + now.completed, errors=before.errors + now.errors,
        refusals=before.refusals + now.refusals, reached=before.reached + now.reached, received_bytes=received,
    )  # fmt: skip


def no_messages(child: Child) -> Sequence[control.Message]:
    return ()


class Mailbox:
    """Receives what *children* report, replaces those that die, and sends a new child what it must hear.

    losses: what becomes of lost sites; None without sites.
    counters: the latest of each worker in this phase.  ended: workers whose phase has ended, or never will.
    phase_end_ns: when the last of the former said it ended, which is earlier than the message is read where this process stood
    still; 0 where none did.
    verdict: the latest on the run under way.
    live: the latest of each reducer; fresh: requests that these reported, until someone takes them.
    reduced: reducers that have folded everything.  summarized: the summary is written; working: a long part of it, None
    before one began.
    rows_wait: reducers that put off rows for it.  row_failures: sentences on those rows.
    refused: that the plan can't be reduced.  unready: why children could not get ready.
    failures: why reducers could not finish.
    catch_up: the messages for a child that gets ready in the place of one that died.
    """
    # More than 20 attributes: each is what messages of one kind told, for who waits for it.

    def __init__(
        self, board: control.Switchboard | SiteSwitchboard, children: Children, outcome: Outcome, artifacts: Path
    ) -> None:  # fmt: skip
        self._board, self.children, self._outcome, self._artifacts = board, children, outcome, artifacts
        self._restarts = 0
        self._before: dict[int, control.Counters] = {}
        self._parts = LiveParts()
        self.losses = children.losses(outcome, self._parts)
        self.counters: dict[int, control.Counters] = {}
        self.ended: set[int] = set()
        self.phase_end_ns = 0
        self.live: dict[int, Live] = {}
        self.fresh: list[Ended] = []
        self.verdict: VerdictSoFar | None = None
        self.reduced: set[int] = set()
        self.summarized = False
        self.working: control.Working | None = None
        self.rows_wait: set[int] = set()
        self.row_failures: list[str] = []
        self.refused: control.Refused | None = None
        self.unready: list[str] = []
        self.failures: list[str] = []
        self.catch_up: Callable[[Child], Sequence[control.Message]] = no_messages
        self._announced: list[Mapping[str, control.Message]] = []
        self._logged: set[str] = set()

    def receive(self, wait_ms: int) -> bool:
        """Handle one message; False if none came within *wait_ms*."""
        message = self._board.receive(wait_ms)
        if message is not None:
            self._handle(message)
        return message is not None

    def send(self, child: Child, message: control.Message) -> None:
        self._board.send(child.identity, message)

    def announce(self, messages: Mapping[str, control.Message]) -> None:
        """Send the message for its role (``worker``, ``reducer``) to every child that is up.

        A child that comes up later gets all that were announced by then, in their order.
        """
        self._announced.append(messages)
        for child in self.children.all:
            if child.up:
                self.send(child, messages[child.role])

    def come_home(self) -> None:
        """The sites are over: what was announced is for the reducers of this machine, too."""
        self.children.come_home()
        for child in self.children.reducers:
            for messages in self._announced if child.up else ():
                self.send(child, messages[child.role])

    def begin_phase(self, lost: set[int]) -> None:
        self.counters.clear()
        self.ended, self.phase_end_ns = set(lost), 0

    def totals(self) -> tuple[int, int]:
        """Completed and failed requests of the phase."""
        counters = self.counters.values()
        return sum(counter.completed for counter in counters), sum(counter.errors for counter in counters)

    def _handle(self, message: control.Message) -> None:
        match message:
            case control.Hello(role, index):
                child = self.children.of[role][index]
                child.up = True
                for messages in self._announced:
                    self.send(child, messages[role])
            case control.Ready(role, index, trouble):
                self.unready += [] if trouble is None else [trouble]
                child = self.children.of[role][index]
                child.ready = True
                if child is self.children.reducers[0] and (parts := self._parts.all()):
                    self.send(child, control.TakeParts(parts))
                for missed in self.catch_up(child):
                    self.send(child, missed)
            case control.Refused():
                self.refused = message
            case control.Counters(index):
                self.counters[index] = _together(self._before.get(index), message)
            case control.PhaseEnded(index, _, last_answer_ns, at_ns):
                self.ended.add(index)
                self.phase_end_ns = max(self.phase_end_ns, at_ns)
                times = self._outcome.times
                times["last_answer_ns"] = max(times.get("last_answer_ns", 0), last_answer_ns)
            case control.Trouble(sentence):
                self._outcome.incomplete = sentence
                self._outcome.warn(sentence)
            case control.Notice(sentence) if sentence not in self._outcome.warnings:
                self._outcome.warn(sentence)
            case control.LogLines(level, lines, once):
                for line in lines:
                    if not once or line not in self._logged:
                        log.log(level, "%s", line)
                self._logged.update(lines if once else ())
            case control.LiveFigures(index):
                before = self.live.get(index, message.live)
                self.live[index] = replace(message.live, phases=message.live.phases or before.phases)
                self.fresh += message.ended
                if message.live.part:
                    self._parts.take(index, message.live.part)
                    if index and (first := self.children.reducers[0]).ready:  # else it gets all of them then
                        self.send(first, control.TakeParts([message.live.part]))
            case control.Judged(verdict):
                self.verdict = verdict
            case control.Reduced(index, trouble, rows_wait):
                self.reduced.add(index)
                (self.rows_wait.add if rows_wait else self.rows_wait.discard)(index)
                self.failures += [] if trouble is None else [trouble]
            case control.Working():
                self.working = message
            case control.Summarized(trouble):
                self.summarized = True
                self.failures += [] if trouble is None else [trouble]
            case control.RowsWritten(index, failures):
                self.rows_wait.discard(index)
                self.row_failures += failures
            case control.Released(role, index):
                self.children.of[role][index].released = True

    def watch_workers(self, phase: PhasePlan) -> None:
        """Replace workers that died in the phase."""
        self.lose_sites(load=True)
        for child in list(self.children.workers):
            if child.index not in self.ended and child.process.poll() is not None:
                while self.receive(0):  # its last messages may still be under way
                    pass
                if child.index not in self.ended:
                    self._replace(child, phase)

    def watch_reducers(self) -> None:
        """Replace reducers that died: the new one goes on from the columns on disk.

        Raises:
            AiperfError: Too many died.
        """
        for child in list(self.children.reducers):
            if child.process.poll() is None or child.lost:
                continue
            if self._restarts >= _RESTARTS:
                hint = f"make the report with: aiperf report {self._artifacts}"
                raise AiperfError(f"{child.identity} {child.fate()} again and again; nothing is lost", hint)
            self._restarts += 1
            log.warning("%s %s; another one goes on from what it had written", child.identity, child.fate())
            self.children.restart(child)

    def lose_sites(self, *, load: bool = False) -> None:
        """Where a site is lost, another one takes its place, or the run goes on to its end without it, and is incomplete.

        *load*: a phase goes on.
        """
        if self.losses is None:
            return
        while load and self.losses.fresh and self.receive(0):  # its last messages
            pass
        gone, replaced = self.losses.handle(load=load)
        for shards in (self.ended, self._outcome.lost, self._outcome.died):
            shards.update(gone)
        for index in replaced & self.counters.keys():
            self.counters[index] = self._before[index] = replace(self.counters[index], in_flight=0)

    def note_gaps(self) -> dict[int, tuple[int, ...]]:
        """The load is over: where sites were started again, the run is incomplete; :attr:`RunEnd.first_requests`."""
        if self.losses is None:
            return {}
        self._outcome.incomplete = self._outcome.incomplete or self.losses.gaps
        return self.losses.first_requests()

    def _replace(self, child: Child, phase: PhasePlan) -> None:
        """Start a worker in the place of one that died, and give back what that one took of the limits.

        After three, while the run ends, and where workers share no memory, the run goes on without it and is incomplete.
        Sessions under way are lost, so each death is in the report.
        """
        outcome = self._outcome
        outcome.died.add(child.index)
        self.children.release(child, phase)
        death = f"worker {child.index} {child.fate()}; what it had in flight is counted as unfinished"
        if outcome.replaced >= _RESTARTS or outcome.signals.count or outcome.incomplete or not self.children.replaceable:
            outcome.lost.add(child.index)
            self.ended.add(child.index)
            outcome.incomplete = outcome.incomplete or death
            outcome.warn(death)
        else:
            outcome.replaced += 1
            outcome.warn(f"{death}, and another one goes on where it stood")
            self.children.restart(child)
