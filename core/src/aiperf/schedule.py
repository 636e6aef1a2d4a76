"""Which arrival is due when, and every other draw of a run: arithmetic, keyed by what it is for.

Nothing here has a state: each number is a function of (seed, stream, index), so any shard computes any of them alone, and
no two uses share a sequence.  The generator is SplitMix64 used as a counter (Steele, Lea & Flood 2014): the i-th number of
a key is the mix of ``key + (i + 1) * GOLDEN``.  numpy is only imported by what makes many numbers at once; its own
generators promise no stable streams, so transforms are ours.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from aiperf.errors import ConfigError
from aiperf.plan import PhasePlan

if TYPE_CHECKING:
    from aiperf.columns import Floats, Ints

BLOCK = 4096
"""Numbers drawn under one key."""

_GOLDEN, _MIX_A, _MIX_B, _MASK = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, (1 << 64) - 1
_BOOST_LANE = 1 << 20


def _key(seed: int, stream: str, block: int, lane: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}:{stream}:{block}:{lane}".encode()).digest()[:8], "big")


def _mixed(value: int) -> int:
    value &= _MASK
    value = ((value ^ (value >> 30)) * _MIX_A) & _MASK
    value = ((value ^ (value >> 27)) * _MIX_B) & _MASK
    return value ^ (value >> 31)


def uniform(seed: int, stream: str, index: int) -> float:
    """One number in (0, 1): element *index* of the stream, the same as :func:`uniforms` gives.  Needs no numpy."""
    block, i = divmod(index, BLOCK)
    return ((_mixed(_key(seed, stream, block, 0) + (i + 1) * _GOLDEN) >> 11) + 0.5) * 2.0**-53


def uniforms(seed: int, stream: str, block: int, count: int, lane: int = 0) -> Floats:
    """The first *count* numbers in (0, 1) of a block (at most BLOCK); *lane* gives further ones for the same indices.

    Raises:
        ValueError: More numbers than a block has.
    """
    import numpy as np

    if not 0 <= count <= BLOCK:
        raise ValueError(f"a block has {BLOCK} numbers, not {count}")
    z = np.uint64(_key(seed, stream, block, lane)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX_A)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX_B)
    z = z ^ (z >> np.uint64(31))
    numbers: Floats = ((z >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return numbers


def normal(seed: int, stream: str, index: int) -> float:
    """One standard normal number (Box–Muller over two elements of the stream)."""
    radius = math.sqrt(-2.0 * math.log(uniform(seed, stream, 2 * index)))
    return radius * math.cos(2.0 * math.pi * uniform(seed, stream, 2 * index + 1))


def shuffled(seed: int, epoch: int, count: int, i: int) -> int:
    """Where position *i* of the epoch's permutation of ``range(count)`` points.

    A Feistel network over the next power of four, walked until it falls below *count*: no table, so any shard can ask for
    any position.
    """
    if count <= 1:
        return 0
    half = ((count - 1).bit_length() + 1) // 2
    mask = (1 << half) - 1
    keys = [_key(seed, "shuffle", epoch, lane) for lane in range(4)]
    while True:
        left, right = i >> half, i & mask
        for key in keys:
            left, right = right, left ^ (_mixed(key + right * _GOLDEN) & mask)
        i = (left << half) | right
        if i < count:
            return i


class Sampler(Protocol):
    """The order of a data set's entries: which of *count* entries, 0 to *count* - 1, session number *session* uses.

    A function of its arguments alone.
    """

    def __call__(self, seed: int, session: int, count: int) -> int: ...


def sequential(seed: int, session: int, count: int) -> int:
    """In order, wrapping around."""
    return session % count


def shuffle(seed: int, session: int, count: int) -> int:
    """Every entry once, then all of them in another order."""
    epoch, i = divmod(session, count)
    return shuffled(seed, epoch, count, i)


def random(seed: int, session: int, count: int) -> int:
    """Any entry, with replacement."""
    return int(uniform(seed, "entry", session) * count)


class GapFunction(Protocol):
    """An arrival pattern: the first *count* gaps of a block (at most BLOCK), of mean 1, in units of the mean gap.

    A function of its arguments alone, and never negative; *smoothness* > 0 is the person's ``--arrival-smoothness``.
    """

    def __call__(self, seed: int, stream: str, block: int, count: int, smoothness: float) -> Floats: ...


def constant_gaps(seed: int, stream: str, block: int, count: int, smoothness: float) -> Floats:
    """Every gap is the mean."""
    import numpy as np

    return np.ones(count)


def poisson_gaps(seed: int, stream: str, block: int, count: int, smoothness: float) -> Floats:
    """Exponential gaps: arrivals that know nothing of each other."""
    import numpy as np

    gaps: Floats = -np.log(uniforms(seed, stream, block, count))
    return gaps


def gamma_gaps(seed: int, stream: str, block: int, count: int, smoothness: float) -> Floats:
    """Gamma gaps of shape *smoothness* > 0: coefficient of variation 1/√smoothness.

    Marsaglia & Tsang, ACM TOMS 26 (2000); a rejected draw goes on in lanes of its own, so that no draw depends on another's
    fate.  Shapes below 1 are boosted: Gamma(k) = Gamma(k + 1) · U^(1/k).
    """
    import numpy as np

    boosted = smoothness < 1.0
    shape = smoothness + 1.0 if boosted else smoothness
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    gaps = np.empty(count)
    left = np.arange(count)
    attempt = 0
    while len(left):
        u, v, w = (uniforms(seed, stream, block, count, lane=3 * attempt + k)[left] for k in range(3))
        x = np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * np.pi * v)
        cube = (1.0 + c * x) ** 3
        with np.errstate(invalid="ignore", divide="ignore"):
            good = (cube > 0) & (np.log(w) < 0.5 * x * x + d - d * cube + d * np.log(cube))
        gaps[left[good]] = d * cube[good]
        left = left[~good]
        attempt += 1
    if boosted:
        gaps *= uniforms(seed, stream, block, count, lane=_BOOST_LANE) ** (1.0 / smoothness)
    return gaps / smoothness


class Ramp(Protocol):
    """How a limit or a rate grows: the share of its rise, 0 to 1, at a share *x* of its time, 0 to 1.

    Vectorised over *x*; never decreasing; 0 at 0 and 1 at 1.  A function of *x* alone.
    """

    def __call__(self, x: Floats) -> Floats: ...


class Conversations(Protocol):
    """What a schedule may know of the data set: the entries of its phase, numbered from 0."""

    count: int

    def entry(self, session: int) -> int:
        """Which entry the sampler gives a session."""
        ...

    def turns(self, entry: int) -> int: ...

    def timestamp_ns(self, entry: int, turn: int) -> int:
        """When a trace recorded it, -1 where it says nothing."""
        ...


class ScheduleContext(Struct, frozen=True):
    """What a schedule is made from.

    gaps: the phase's arrival pattern, None in modes without one.  ramp: the curve of what rises, None where nothing does.
    data: the phase's conversations; None before there is a data set.  source: the input file, for messages.
    """

    seed: int
    phase: PhasePlan
    gaps: GapFunction | None = None
    ramp: Ramp | None = None
    data: Conversations | None = None
    source: str | None = None


class Schedule(Protocol):
    """Arithmetic: which arrival is due when.  No sleeping inside, and no clock.

    *paced*: whether arrivals have due times; without, they follow free slots.
    """

    paced: bool

    def __init__(self, context: ScheduleContext) -> None: ...

    def due_block(self, first: int, count: int) -> Ints:
        """Due times of arrivals *first* to *first* + *count* - 1, in ns after the phase's start, never decreasing.

        int64.  Fewer than *count* end the schedule.
        """
        ...


class SessionStarts(Struct, frozen=True):
    """Sessions in the order in which they start, each an int64 array.

    due_ns: of their first turns, after the phase's start, never decreasing.  entry: of the phase's entries.
    turns: how many of the conversation's turns they make, at least 1.
    """

    due_ns: Ints
    entry: Ints
    turns: Ints


@runtime_checkable
class SessionSchedule(Schedule, Protocol):
    """A schedule that says when each *session* starts; its later turns follow from *spacing_ns* or from what was recorded.

    ``due_block`` then numbers first turns.

    spacing_ns: time between a session's turns, from start to start; None goes by the data set's times and delays.
    zero_ns: the recorded time that is the phase's start.
    """

    spacing_ns: int | None
    zero_ns: int

    def starts(self, first: int, count: int) -> SessionStarts:
        """Sessions *first* to *first* + *count* - 1.  Fewer than *count* end the schedule."""
        ...


class Burst:
    """No due times: a request leaves whenever a slot is free."""

    paced = False

    def __init__(self, context: ScheduleContext) -> None:
        self.context = context

    def due_block(self, first: int, count: int) -> Ints:
        import numpy as np

        return np.empty(0, dtype=np.int64)


class RequestRate:
    """Arrivals at a mean rate; the first one gap after the phase's start.

    Gaps are summed in units of the mean gap and scaled once, so that constant arrivals don't drift at all.

    Raises:
        ConfigError: The phase has no rate.
    """

    paced = True

    def __init__(self, context: ScheduleContext) -> None:
        phase = context.phase
        if phase.rate is None:
            raise ConfigError(f"the request_rate schedule of the phase {phase.name!r} needs a rate", "give --request-rate")
        self.context = context
        self._ns_per_gap = 1e9 / phase.rate
        # By name, not by index: profiling draws the same whether or not a warmup ran before it.
        self._stream = f"arrivals:{phase.name}"
        self._gaps = context.gaps or poisson_gaps
        self._starts = [0.0]
        self._held: tuple[int, Floats] | None = None

    def due_ns(self, n: int) -> int:
        """When arrival *n* is due, in ns after the phase's start."""
        return int(self.due_block(n, 1)[0])

    def due_block(self, first: int, count: int) -> Ints:
        import numpy as np

        pieces = [np.empty(0)]
        for block in range(first // BLOCK, (first + count + BLOCK - 1) // BLOCK):
            low = max(0, first - block * BLOCK)
            pieces.append(self._sums(block)[low : first + count - block * BLOCK])
        due: Ints = np.rint(np.concatenate(pieces) * self._ns_per_gap).astype(np.int64)
        return due

    def _sums(self, block: int) -> Floats:
        """Running sums of the gaps of a block, behind all blocks before it."""
        import numpy as np

        if self._held is not None and self._held[0] == block:
            return self._held[1]
        while len(self._starts) <= block:
            self._starts.append(float(self._sums(len(self._starts) - 1)[-1]))
        context = self.context
        drawn = self._gaps(context.seed, self._stream, block, BLOCK, context.phase.smoothness)
        sums: Floats = self._starts[block] + np.cumsum(drawn)
        self._held = block, sums
        return sums
