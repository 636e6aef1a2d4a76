"""What a run and its sites say to each other.

Messages for a worker or a reducer of a site pass as they are, in :class:`ToChild` and :class:`FromChild`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec import Struct

from aiperf.processes.usage import ProcessUsage
from aiperf.sdk.plan import Plan, RunClock
from aiperf.sites.going_on import PassedCells, Standing


class SiteKeys(Struct, frozen=True):
    """The one line of JSON on a site's standard input.

    address: where the run listens.  server: its public key; public, secret: those of the site.  Keys are Z85 texts.
    place: a name that the processes of one site of the run share, one after the other: see :mod:`aiperf.sites.fence`.
    """

    address: str
    server: str
    public: str
    secret: str
    place: str = ""


class SentFile(Struct, frozen=True):
    """A file that the site needs: its name, size in bytes and SHA-256."""

    name: str
    size: int
    sha256: str


class SiteUp(Struct, frozen=True, tag=True):
    """The site's first word, in each plan.  version: of its aiperf."""

    version: str


class Order(Struct, frozen=True, tag=True):
    """The site's part of the plan, before the data set is made.  clock: on the site's own monotonic clock.
    workers, reducers: indices of those that the site starts, or has.  Where it takes the place of one that was lost, requests
    has the number from which on each worker numbers its requests, and columns the number of each reducer's first file.
    phases: of the largest plan that may follow on this one; 0 where none may."""

    plan: Plan
    clock: RunClock
    workers: list[int]
    reducers: list[int]
    requests: dict[int, int] = {}
    columns: dict[int, int] = {}
    phases: int = 0


class Supply(Struct, frozen=True, tag=True):
    """The site's part of the built plan, and the files that it needs."""

    plan: Plan
    files: list[SentFile]


class Supplied(Struct, frozen=True, tag=True):
    """The answer to Supply: all files are there, and have the hashes that were told."""


class Unfit(Struct, frozen=True, tag=True):
    """The site can't take part, or go on, for the reason in a sentence."""

    why: str


class FileWanted(Struct, frozen=True, tag=True):
    """Send what the file has from *offset* on, *most* bytes of it."""

    name: str
    offset: int
    most: int


class FilePiece(Struct, frozen=True, tag=True):
    """The answer to FileWanted."""

    name: str
    offset: int
    data: bytes


class Columns(Struct, frozen=True, tag=True):
    """The sizes of the site's files of columns, and how many requests each of its workers has sent.  segments: sizes of the
    segments of its workers, where the run keeps them, or reduces them because the site's disk is full."""

    sizes: dict[str, int]
    requests: dict[int, int]
    segments: dict[str, int] = {}


class Usage(Struct, frozen=True, tag=True):
    """What each worker of the site uses of its machine, by index."""

    workers: dict[int, ProcessUsage]


class Standings(Struct, frozen=True, tag=True):
    """How far each worker is in the phase under way, by index; of a site that may be started again."""

    workers: dict[int, Standing]


class GoOn(Struct, frozen=True, tag=True):
    """The worker begins the phase there, in the place of a lost one."""

    worker: int
    phase: int
    place: PassedCells


class ToChild(Struct, frozen=True, tag=True):
    """A message for a worker or a reducer, encoded as on the control channel of one machine."""

    role: str
    index: int
    body: bytes


class FromChild(Struct, frozen=True, tag=True):
    """What a worker or a reducer says."""

    body: bytes


class StartChild(Struct, frozen=True, tag=True):
    """Start a process in the place of one that died.  phase: the one that is under way, whose limits it had; None without."""

    role: str
    index: int


class KillChild(Struct, frozen=True, tag=True):
    role: str
    index: int


class ChildEnded(Struct, frozen=True, tag=True):
    """A worker or a reducer has ended, with this exit code."""

    role: str
    index: int
    code: int


class Trip(Struct, frozen=True, tag=True):
    """Say what the clocks are.  sent_ns: the run's monotonic clock when this was sent."""

    sent_ns: int


class TripBack(Struct, frozen=True, tag=True):
    """The answer to Trip.  mono_ns, wall_ns: the site's clocks between receiving and answering."""

    sent_ns: int
    mono_ns: int
    wall_ns: int


class Notes(Struct, frozen=True, tag=True):
    """What workers have told the others (``DriverContext.notes``), by index; from their site, and then to the other sites."""

    workers: dict[int, list[int]]


class Claim(Struct, frozen=True, tag=True):
    """The site wants *want* numbers of a phase's counter (ARRIVALS, SESSIONS), and *least* of them for now.  empty: a worker
    waits for one, and all are dealt.  rate: how many it draws in a second."""

    phase: int
    counter: int
    want: int
    least: int
    empty: bool = False
    rate: float = 0.0


class Block(Struct, frozen=True, tag=True):
    """The numbers from *start* on, *count* of them, are the site's.  0: all are dealt; with *over* for good, and every further
    number from *start* on is beyond the phase's count, or the site's alone."""

    phase: int
    counter: int
    start: int
    count: int
    over: bool = False


class GiveBack(Struct, frozen=True, tag=True):
    """Another site has none, and draws *rate* in a second: give back as much as lets both end together, of what nobody has
    drawn."""

    phase: int
    counter: int
    rate: float = 0.0


class Given(Struct, frozen=True, tag=True):
    """The answer to GiveBack: pairs of a first number and how many follow on it."""

    phase: int
    counter: int
    blocks: list[tuple[int, int]]


class PlanOver(Struct, frozen=True, tag=True):
    """Drop all that is of the plan, keep the processes, which are told so themselves, and wait for NextPlan."""


class PlanDropped(Struct, frozen=True, tag=True):
    """The answer to PlanOver, when no process has to do with the plan any more."""


class NextPlan(Struct, frozen=True, tag=True):
    """Another plan follows.  The answer is SiteUp; what was said before is of the plan before."""


class SiteEnd(Struct, frozen=True, tag=True):
    """The run needs the site no more."""


SiteMessage: TypeAlias = (
    SiteUp | Order | Supply | Supplied | Unfit | FileWanted | FilePiece | Columns | Usage | Standings | GoOn | ToChild
    | FromChild | StartChild | KillChild | ChildEnded | Trip | TripBack | Notes | Claim | Block | GiveBack | Given | PlanOver
    | PlanDropped | NextPlan | SiteEnd
)  # fmt: skip

UNNUMBERED = (FileWanted, FilePiece, Usage, Standings, Trip, TripBack)
"""Who misses one of these asks again, or gets the next; they may be lost, and are never sent twice by themselves."""

encode = msgspec.msgpack.Encoder().encode
decode: Callable[[bytes], SiteMessage] = msgspec.msgpack.Decoder(SiteMessage).decode
