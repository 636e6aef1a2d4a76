"""One site of a run, seen from the run: what it told, and whether it is still there."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from time import monotonic_ns

from msgspec.structs import replace

from aiperf import environment
from aiperf.processes import local
from aiperf.processes.usage import ProcessUsage
from aiperf.sdk.engine import Shard, SiteClock, SiteLoss
from aiperf.sdk.model import names
from aiperf.sdk.plan import SiteOffset
from aiperf.sites import messages
from aiperf.sites.channel import SiteBoard
from aiperf.sites.clock_offset import FEWEST_TRIPS, ClockOffset, ClockPath, Trips
from aiperf.sites.files import DOWN_BYTES, UP_BYTES, FileCopy, is_columns, is_segment
from aiperf.sites.going_on import Standing
from aiperf.sites.site_log import SiteLog

_TRIP_S = 1.0
"""From one look at a site's clock to the next, while the load goes on."""


class SiteChild(Shard):
    """A worker or a reducer of a site.  usage: what it uses of its machine, as the site told last."""

    def __init__(self, site: RemoteSite, role: str, index: int) -> None:
        self.site, self._role, self._index = site, role, index
        self.code: int | None = None
        self.usage: ProcessUsage | None = None
        self._killed = False

    def poll(self) -> int | None:
        gone = self.site.lost is not None or self.site.ended
        return 1 if gone and self.code is None else self.code

    def wait(self, seconds: float) -> int | None:
        return self.poll()  # it ends with its site

    def let_go(self) -> None:
        pass  # it ends with its site

    def kill(self) -> None:
        if not self._killed:
            self._killed = True
            self.site.send(messages.KillChild(self._role, self._index))


class RemoteSite:
    """One site in a plan.  lost: why it is, None while it is not.  supplied: it has the data set.  ahead: its clock before the
    load.  resting: the plan is over there, and it waits for another one.

    losses: of those in whose place it is.  first_requests: from which on workers number their requests, those of each of the
    others in the place of one before and then its own.  standings: how far its workers are, as it, or the one before, told.
    """
    # More than 20 attributes: what was asked of it and what it told, its clock, its files, and those in whose place it is.

    def __init__(
        self, board: SiteBoard, name: str, index: int, process: Shard, log: SiteLog, journal: Path,
        before: RemoteSite | None = None,
    ) -> None:  # fmt: skip
        self._board, self.name, self.index, self.process, self.log = board, name, index, process, log
        self._journal = journal
        self.losses: list[SiteLoss] = [] if before is None else [*before.losses]
        self.first_requests: tuple[int, ...] = () if before is None else before.first_requests
        self.standings: dict[int, Standing] = {} if before is None else dict(before.standings)
        self._earlier: tuple[tuple[int, int], ...] = () if before is None else before.knots
        self._gone_on: set[int] = set()
        self.children: dict[tuple[str, int], SiteChild] = {}
        self.requests: dict[int, int] = {}
        self.trips = Trips()
        self.ahead: ClockOffset | None = None
        self.up = self.supplied = self.ended = self.resting = False
        self.lost: str | None = None
        self.copy = FileCopy(journal, UP_BYTES)
        self.raw = FileCopy(journal, DOWN_BYTES)
        self.begun_s = time.monotonic()
        self.wall_ahead_ns = 0
        self._trip_s = 0.0
        self._trips_before = 0

    @property
    def workers(self) -> set[int]:
        """Indices of its workers."""
        return {index for role, index in self.children if role == "worker"}

    @property
    def reducers(self) -> set[int]:
        """Indices of its reducers."""
        return {index for role, index in self.children if role == "reducer"}

    @property
    def sentence(self) -> str:
        """What is to be said of a site that was lost while the load went on."""
        rest = "what came of it counts, and the rest of its arrivals is unknown"
        again = f", having been started again {times(len(self.losses))}" if self.losses else ""
        return f"the site {self.name} was lost{again}: {self.lost}; {rest}"

    @property
    def gap(self) -> str | None:
        """What is to be said of the times in which the site was not there; None of one that was never lost."""
        if not self.losses:
            return None
        why = names([*dict.fromkeys(loss.why for loss in self.losses)])
        once = times(len(self.losses))
        return f"the site {self.name} was lost and started again {once} ({why}): what it may have sent meanwhile is unknown"

    def goes_on(self, worker: int, *, resumed: bool) -> bool:
        """Whether the worker begins in the place of one of a lost site; asked whenever it begins a phase, or goes on in one."""
        if not self.losses or worker in self._gone_on:
            return False
        self._gone_on.add(worker)
        if resumed:  # else it is there from the beginning of the phase on
            self.losses[-1] = replace(self.losses[-1], resumed_ns=self.losses[-1].resumed_ns or time.time_ns())
        return resumed

    def send(self, message: messages.SiteMessage) -> None:
        if self.lost is None and not self.ended:
            self._board.send(self.index, message)

    def lose(self, why: str) -> None:
        """The site is gone, or can't be used."""
        if self.lost is None and not self.ended:
            self.lost = why
            self.process.kill()

    def fate(self) -> str | None:
        """How its command has ended, and what it said last; None while it runs."""
        code = self.process.poll()
        return None if code is None else f"its command {local.fate(code)}{self.log.last_line()}"

    def note(self, message: messages.ChildEnded | messages.Usage | messages.Standings) -> None:
        """Keep what it says of its processes."""
        match message:
            case messages.ChildEnded(role, index, code):
                if (child := self.children.get((role, index))) is not None:
                    child.code = code
            case messages.Usage(workers):
                for index, usage in workers.items():
                    if (child := self.children.get(("worker", index))) is not None:
                        child.usage = usage
            case messages.Standings(standings):
                self.standings |= standings

    def look(self, silence_s: float) -> None:
        """Notice that it is lost; ask for its clock, and for files."""
        if self.lost is not None or self.ended:
            return
        self.log.follow()
        if (fate := self.fate()) is not None:
            self.lose(fate)
            return
        now_s = time.monotonic()
        heard_s = self._board.heard_s.get(self.index)
        if heard_s is not None and now_s - heard_s > silence_s:
            self.lose(f"nothing was heard of it for {silence_s:g} s")
        elif heard_s is None and self.losses and now_s - self.begun_s > environment.start_s():
            self.lose(f"nothing was heard of it for {environment.start_s():g} s")
        elif self.index in self._board.garbage:
            self.lose("it sent what is no message of a site")
        elif self.index in self._board.twice:
            self.lose("two programs have connected with its key: its engine must start one")
        elif self.up:
            self.ask_for_files()
            if now_s - self._trip_s >= _TRIP_S:
                self.ask_clock()

    def ask_for_files(self) -> None:
        """Ask for the next piece: of columns, and behind the load of segments once there are no more columns."""
        after_load = self._trips_before > 0
        copy = self.raw if after_load and not self.copy.missing_bytes else self.copy
        for wanted in copy.wanted():
            self.send(wanted)

    def take_sizes(self, told: messages.Columns, sites: int) -> None:
        """Its files are so long, of one of so many *sites*."""
        if not all(is_columns(name, self.index, sites) for name in told.sizes):
            self.lose("it names files that are not its columns")
        elif not all(is_segment(name, self.index, sites) for name in told.segments):
            self.lose("it names files that are not its segments")
        else:
            self.requests = told.requests
            for sizes, copy in ((told.sizes, self.copy), (told.segments, self.raw)):
                for name, size in sizes.items():
                    copy.grow(name, size)
            self.raw.keep_only(told.segments)

    def take_piece(self, piece: messages.FilePiece) -> None:
        """A piece of a file that was asked for."""
        (self.raw if piece.name in self.raw.names else self.copy).take(piece)
        self.ask_for_files()

    @property
    def complete(self) -> bool:
        """Whether its files are here, or never will be, and its clock was looked at again."""
        return self.lost is not None or (self.measured and not self.copy.missing_bytes and not self.raw.missing_bytes)

    def ask_clock(self) -> None:
        self._trip_s = time.monotonic()
        self.send(messages.Trip(monotonic_ns()))

    def measure_again(self) -> None:
        """The load is over: look at the clock as often as before it."""
        self._trips_before = self.trips.count
        self.ask_clock()

    @property
    def measured(self) -> bool:
        """Whether the clock was looked at often enough since the start, or since the load."""
        return self.trips.count - self._trips_before >= FEWEST_TRIPS

    def take_trip(self, back: messages.TripBack) -> None:
        now_ns = monotonic_ns()
        self.trips.add(back.sent_ns, back.mono_ns, now_ns)
        wall_now_ns = time.time_ns()
        self.wall_ahead_ns = back.wall_ns - wall_now_ns + (now_ns - back.sent_ns) // 2
        if not self.measured:
            self.ask_clock()

    @property
    def path(self) -> ClockPath:
        """Where its clock was, as far as it was looked at; it was, before the load."""
        assert self.ahead is not None, "it was looked at"
        return self.trips.path(self.ahead.ahead_ns)

    @property
    def _own_knots(self) -> tuple[tuple[int, int], ...]:
        """Instants of the run's clock, and by how much its clock had moved by then, against the first look at it."""
        if self.ahead is None:
            return ()
        return tuple((at_ns, ahead_ns - self.ahead.ahead_ns) for at_ns, ahead_ns in self.path.knots)

    @property
    def knots(self) -> tuple[tuple[int, int], ...]:
        """Knots of all processes that were in its place, each against the first look at its own clock: what one has sent was
        sent before the next one was looked at."""
        earlier, own = self._earlier, self._own_knots
        return (*earlier, (own[0][0] - 1, earlier[-1][1]), *own) if earlier and own else earlier + own

    @property
    def offset(self) -> SiteOffset:
        """By which its instants are put on the run's clock, and those of the processes in whose place it is."""
        knots = self.knots
        moved = any(moved_ns for _, moved_ns in knots)
        return SiteOffset(0 if self.ahead is None else self.ahead.ahead_ns, knots if moved else ())

    def ahead_ns(self, at_ns: int) -> int:
        """How far its clock is ahead at an instant of the run's."""
        return 0 if self.ahead is None else self.ahead.ahead_ns + SiteOffset(0, self._own_knots).moved_ns(at_ns)

    def clock(self, shards: Iterable[int]) -> SiteClock:
        """What is known of it and its clock; *shards*: its workers."""
        path = ClockPath(((0, 0),), 0, 0) if self.ahead is None else self.path
        return SiteClock(
            self.name, tuple(shards), path.knots[0][1] / 1e6, path.begin_within_ns / 1e6, path.drift_ns / 1e6,
            (path.begin_within_ns + path.within_ns) / 1e6, self.wall_ahead_ns / 1e9, self.trips.count,
            self.trips.shortest_ns / 1e6, self.lost, tuple(self.losses),
        )  # fmt: skip

    def standing(self, worker: int, phase: int) -> Standing:
        """How far the worker was in the phase, as far as it, or the one in whose place it is, told."""
        known = self.standings.get(worker)
        return known if known is not None and known.phase == phase else Standing(phase, 0, 0)


def times(count: int) -> str:
    """``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
