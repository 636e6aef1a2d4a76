"""Which arrival is due when, and which session uses what: what a schedule is, arrival patterns, orders of the data set."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from aiperf.draws import BLOCK, shuffled, uniform, uniforms
from aiperf.errors import ConfigError, PluginError
from aiperf.plan import PhasePlan, Plan
from aiperf.strangers import blamed, load, who

if TYPE_CHECKING:
    from aiperf.columns import Floats, Ints
    from aiperf.rates import RateCurve

_BOOST_LANE = 1 << 20


class Sampler(Protocol):
    """The order of a data set's entries: which of *count* entries, 0 to *count* - 1, session number *session* uses.

    A function of its arguments alone.
    """

    def __call__(self, seed: int, session: int, count: int) -> int: ...


def sampler_of(plan: Plan) -> Sampler:
    """What gives a session of the plan its entry.

    Raises:
        PluginError: It doesn't import; or, of each call, it fails or gives what is no entry.
    """
    ref = plan.samplers[plan.sampling]
    sample: Sampler = load(ref)
    name = who(ref)

    def sampled(seed: int, session: int, count: int) -> int:
        with blamed(name, "failed"):
            entry = sample(seed, session, count)
            if not 0 <= entry < count:
                raise PluginError(f"{name} gave session {session} entry {entry}, of {count}")
            return entry

    return sampled


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
    """Arrivals at a mean rate, which may change over time; the first one gap after the phase's start.

    Gaps are summed in units of the mean gap and put on the clock by the rate's curve once, so that nothing drifts.

    Raises:
        ConfigError: The phase has no rate.
    """

    paced = True

    def __init__(self, context: ScheduleContext) -> None:
        self.context = context
        self._curve = _rate_curve(context)
        # By name, not by index: profiling draws the same whether or not a warmup ran before it.
        self._stream = f"arrivals:{context.phase.name}"
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
        due: Ints = np.rint(self._curve.due_ns(np.concatenate(pieces))).astype(np.int64)
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


def _rate_curve(context: ScheduleContext) -> RateCurve:
    from aiperf.ramps import linear, ramped_rate
    from aiperf.rates import RateCurve

    phase = context.phase
    if phase.rate_series is not None:
        return RateCurve([at_s for at_s, _ in phase.rate_series], [rate for _, rate in phase.rate_series])
    if phase.rate is None:
        raise ConfigError(f"the request_rate schedule of the phase {phase.name!r} needs a rate", "give --request-rate")
    if phase.rate_ramp_ns:
        return ramped_rate(context.ramp or linear, phase.rate_ramp_ns, phase.rate)
    return RateCurve([0.0], [phase.rate])
