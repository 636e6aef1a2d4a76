"""The sites of a run, seen from the run: started, supplied, listened to, and ended."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from time import monotonic_ns

import msgspec
from msgspec.structs import replace

from aiperf.planning.sites import part_of
from aiperf.processes import control, local
from aiperf.processes.usage import ProcessUsage
from aiperf.rundir.journal import RunClock
from aiperf.sdk.engine import Shard, SiteClock, SiteEngine, SiteStart
from aiperf.sdk.plan import Plan, SiteOffset
from aiperf.sites import messages
from aiperf.sites.channel import SiteBoard
from aiperf.sites.claims import Answer, Pools
from aiperf.sites.clock_offset import FEWEST_TRIPS, ClockOffset, ClockPath, Trips
from aiperf.sites.files import DOWN_BYTES, UP_BYTES, FileCopy, inputs, is_columns, is_segment, part, sent_file
from aiperf.sites.silence import SILENCE_S

_TRIP_S = 1.0
"""From one look at a site's clock to the next, while the load goes on."""
_LAST_LINES_BYTES = 4096
_LEAD_NS, _LEAD_TRIPS = 20_000_000, 3
"""A phase begins so long after the message that says so, and so many of the shortest trips."""
_TEND_MS = 100
"""Between two looks at all sites."""
_END_S = 2.0


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
    """One site.  lost: why it is, None while it is not.  supplied: it has the data set.  ahead: its clock before the load."""

    def __init__(self, board: SiteBoard, name: str, index: int, process: Shard, log: Path, journal: Path) -> None:
        self._board, self.name, self.index, self.process, self._log = board, name, index, process, log
        self._journal = journal
        self.children: dict[tuple[str, int], SiteChild] = {}
        self.requests: dict[int, int] = {}
        self.trips = Trips()
        self.ahead: ClockOffset | None = None
        self.up = self.supplied = self.ended = False
        self.lost: str | None = None
        self.copy = FileCopy(journal, UP_BYTES)
        self.raw = FileCopy(journal, DOWN_BYTES)
        self.begun_s = time.monotonic()
        self.wall_ahead_ns = 0
        self._trip_s = 0.0
        self._trips_before = 0

    @property
    def sentence(self) -> str:
        """What is to be said of a site that was lost while the load went on."""
        rest = "what came of it counts, and the rest of its arrivals is unknown"
        return f"the site {self.name} was lost: {self.lost}; {rest}"

    def send(self, message: messages.SiteMessage) -> None:
        if self.lost is None and not self.ended:
            self._board.send(self.index, message)

    def lose(self, why: str) -> None:
        """The site is gone, or can't be used."""
        if self.lost is None and not self.ended:
            self.lost = why
            self.process.kill()

    def look(self, silence_s: float) -> None:
        """Notice that it is lost; ask for its clock, and for files."""
        if self.lost is not None or self.ended:
            return
        if (code := self.process.poll()) is not None:
            self.lose(f"its command {local.fate(code)}{self._last_line()}")
            return
        now_s = time.monotonic()
        heard_s = self._board.heard_s.get(self.index)
        if heard_s is not None and now_s - heard_s > silence_s:
            self.lose(f"nothing was heard of it for {silence_s:g} s")
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
    def offset(self) -> SiteOffset:
        """By which its instants are put on the run's clock."""
        if self.ahead is None:
            return SiteOffset(0)
        first_ns = self.ahead.ahead_ns
        knots = tuple((at_ns, ahead_ns - first_ns) for at_ns, ahead_ns in self.path.knots)
        return SiteOffset(first_ns, knots if any(moved_ns for _, moved_ns in knots) else ())

    def ahead_ns(self, at_ns: int) -> int:
        """How far its clock is ahead at an instant of the run's."""
        return (offset := self.offset).ahead_ns + offset.moved_ns(at_ns)

    def _last_line(self) -> str:
        """What its command said last, for a sentence; "" for nothing."""
        try:
            lines = self._log.read_bytes()[-_LAST_LINES_BYTES:].decode(errors="replace").splitlines()
        except OSError:
            return ""
        said = [line.strip() for line in lines if line.strip()]
        return f" ({said[-1]})" if said else ""


class RemoteSites:
    """All sites of a run.

    *clock*: of the run.  *journal*: of the run, where columns come.  *log_file*: of the run; the command of each site has one
    beside it.  *module*: the program of a site.  progress: counts what was heard of sites, answers on their clocks left out.

    Raises:
        AiperfError: The engine can't start one.
    """

    def __init__(
        self, plan: Plan, engine: SiteEngine, clock: RunClock, journal: Path, log_file: Path, module: str
    ) -> None:  # fmt: skip
        self._plan, self._engine, self._clock, self._journal = plan, engine, clock, journal
        self._board = SiteBoard(engine.host())
        self._files: dict[str, Path] = {}
        self._supplied: list[messages.SentFile] = []
        self._waiting: deque[control.Message] = deque()
        self._pools: Pools | None = None
        self._gone: set[RemoteSite] = set()
        self._tended_s, self.progress = 0.0, 0
        self.all: list[RemoteSite] = []
        for index, name in enumerate(plan.run.sites):
            address = engine.address(index, self._board.port)
            keys = msgspec.json.encode(self._board.keys(index, address)) + b"\n"
            log = log_file.with_name(f"site-{index}.log")
            workers, reducers = map(len, self._indices(index))
            start = SiteStart(index, ("-P", "-m", module), keys, log, address, self._board.port, workers, reducers)
            self.all.append(RemoteSite(self._board, name, index, engine.start(start), log, journal))

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
        return {shard: sent for site in self.all if site.lost is None for shard, sent in site.requests.items()}

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
        return tuple(map(self._clock_of, self.all))

    def end(self, patience_s: float) -> None:
        """Tell every site that it is not needed, wait, then kill what is left.  May be called again."""
        going = [site for site in self.all if site.lost is None and not site.ended]
        for site in going:
            site.send(messages.SiteEnd())
            site.ended = True
        until_s = time.monotonic() + patience_s
        for site in going:
            if not site.up:
                site.process.kill()
            while site.process.poll() is None and time.monotonic() < until_s:
                self._board.receive(10)
                self._board.tend()
            site.process.let_go()
            if site.process.wait(max(0.0, until_s - time.monotonic())) is None:
                site.process.kill()

    def close(self) -> None:
        """End every site, and close the channel."""
        self.end(_END_S)
        self._engine.close()
        self._board.close()

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
                self._waiting.append(_from_site(site, control.decode(body)))
            case messages.ChildEnded(role, index, code):
                if (child := site.children.get((role, index))) is not None:
                    child.code = code
            case messages.Columns():
                site.take_sizes(message, len(self.all))
            case messages.Usage(workers):
                for index, usage in workers.items():
                    if (child := site.children.get(("worker", index))) is not None:
                        child.usage = usage
            case messages.FilePiece():
                site.take_piece(message)
            case messages.FileWanted(name):
                if name in self._files:
                    site.send(part(self._files[name], message))
                else:
                    site.lose("it asks for a file that is not for sites")
            case messages.Claim() if self._pools is not None:
                self._deal(self._pools.claim(site.index, message))
            case messages.Given() if self._pools is not None:
                self._deal(self._pools.take(site.index, message))
            case messages.Supplied():
                site.supplied = True
            case messages.Unfit(why):
                site.lose(why)

    def _give_order(self, site: RemoteSite) -> None:
        """The clock is known: the site may start its processes."""
        site.ahead = site.trips.offset()
        clock = replace(self._clock, ahead_ns=site.ahead.ahead_ns)
        workers, reducers = self._indices(site.index)
        site.send(messages.Order(part_of(self._plan, site.index), clock, workers, reducers))
        if self._supplied:
            self._supply(site)

    def _supply(self, site: RemoteSite) -> None:
        site.send(messages.Supply(part_of(self._plan, site.index), self._supplied))

    def _clock_of(self, site: RemoteSite) -> SiteClock:
        shards = tuple(self._indices(site.index)[0])
        path = ClockPath(((0, 0),), 0, 0) if site.ahead is None else site.path
        return SiteClock(
            site.name, shards, path.knots[0][1] / 1e6, path.begin_within_ns / 1e6, path.drift_ns / 1e6,
            (path.begin_within_ns + path.within_ns) / 1e6, site.wall_ahead_ns / 1e9, site.trips.count,
            site.trips.shortest_ns / 1e6, site.lost,
        )  # fmt: skip


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
