"""The contract of reducers: what becomes of the journal.

Workers write what they observe to the journal, and nothing else.  A plugin of this category makes of it what a person reads:
statistics, the rows of per-request files, the summary.  It works beside the load, in reducer processes, each for its shards,
and again whenever somebody asks for a report.  A run uses one plugin: the pinned one, else that with the highest priority,
else a third party's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from aiperf.sdk.options import OptionsT, WithOptions
from aiperf.sdk.plan import Plan, RunClock, Secrets
from aiperf.sdk.snapshot import LiveDelays, LiveFailures, LiveMetric, LiveObjective, Snapshot, VerdictSoFar

if TYPE_CHECKING:
    from aiperf.sdk.endpoint import Endpoint
    from aiperf.sdk.summary import PluginUsed, Summary


class Ended(Struct, frozen=True):
    """A request that has ended.

    at_ns: after the run's start.  phase: its index.  cause: kind and sentence of why it failed; None where it did not.
    """

    at_ns: int
    phase: int
    cause: tuple[str, str] | None = None


class PhaseFigures(Struct, frozen=True):
    """What was reduced of a phase so far.

    phase: its index.  reduced, failed: requests, and the failed ones among them.  late: requests that began too late; None
    without due times.  The others as those of :class:`aiperf.sdk.snapshot.Snapshot`, and of the latest phase alone.
    """

    phase: int
    reduced: int = 0
    failed: int = 0
    late: int | None = None
    metrics: tuple[LiveMetric, ...] = ()
    good: LiveObjective | None = None
    objectives: tuple[LiveObjective, ...] = ()
    failures: tuple[LiveFailures, ...] = ()
    further_failures: int = 0
    delays: LiveDelays = LiveDelays()


class Live(Struct, frozen=True):
    """What was reduced so far.

    done: requests.  phases: figures of the whole run by phase, from the first reducer of a run that is watched; else empty.
    part: what another reducer has, for :meth:`RunningReduction.take_part` of the first; empty where there is nothing new.  Of
    the first, what another one is to take that begins in its place without its journal, as at a site that was lost.
    """

    done: int = 0
    phases: tuple[PhaseFigures, ...] = ()
    part: bytes = b""


class ReducerJob(Struct, frozen=True):
    """A reducer's part of a run: the shards whose number modulo ``plan.run.reducers`` is *index*.

    plan: with its secret options.  journal: the directory.  clock: the run's zero, a :class:`aiperf.sdk.plan.RunClock`.
    watched: somebody looks at live numbers, which are to be folded; else folding them is a waste.
    looked: at all of them, twice a second; else lines of progress show those with a headline, and the objectives.
    lines_s: by the index of a phase, the time between lines of progress; 0 where there are none.
    say: writes lines to the run's log, at a level of ``logging``.  trouble: ends the load early, with a sentence.  moved: to be
    called between pieces of long work; it shows how far it is.  warned: what plugins have logged in this process.
    far: in :meth:`RunningReduction.summarize`, shows what goes on, how much of it is done, of how much, and the unit.
    hurried: whether a signal has come since, and the summary is wanted soon.
    """

    plan: Plan
    journal: Path
    index: int
    clock: Any
    secrets: Secrets
    say: Callable[[int, list[str]], None]
    trouble: Callable[[str], None]
    moved: Callable[[], None]
    warned: Callable[[], Iterable[str]]
    watched: bool = False
    looked: bool = False
    lines_s: Mapping[int, float] = {}
    far: Callable[[str, int, int, str], None] = lambda what, done, of, unit: None
    hurried: Callable[[], bool] = bool


class RunningReduction:
    """A reducer's work on one plan.  An exception of a method ends the run with a sentence; the journal stays.

    rows_wait: whether rows of per-request files wait for :meth:`write_rows`.  slow: :meth:`summarize` may take hours.
    warned: sentences that plugins have logged in further processes.
    """

    rows_wait = slow = False
    warned: Iterable[str] = ()

    @property
    def live(self) -> Live:
        """Live numbers, asked twice a second, and once behind :meth:`finish`; of the first reducer again before
        :meth:`summarize`, when the parts of all have come.  Where lines of progress alone show them, shortly before each."""
        return Live()

    @property
    def done(self) -> int:
        """Requests that were reduced; asked where the other live numbers are not."""
        return self.live.done

    def judge(self, snapshot: Snapshot) -> VerdictSoFar | None:
        """What verdicts that can judge unfinished runs say of a profiling phase; None where there is none.  Asked of the
        first reducer of a watched run."""
        return None

    def take_part(self, part: bytes) -> None:
        """Take what another reducer has; the first reducer of a watched run with several.  One that begins takes the latest
        parts again, and those of reducers that were lost with their journals: others in their places tell what comes since."""

    def ended(self) -> Sequence[Ended]:
        """Requests that were reduced since the last call, in the order of their ends; of many, the latest 100 are enough.

        The run warns of failures with it while the load goes on; without requests it says nothing before the end.  Leave out
        those that were cancelled because the plan asks for it, or ended because the run did.
        """
        return ()

    def step(self) -> int:
        """Reduce what is new, for about 0.1 s; the rest in ms until the next step."""
        raise NotImplementedError(f"{type(self).__name__} must define step()")

    def finish(self) -> None:
        """Workers have ended, and ``run.json`` has the end of the run: reduce the rest."""
        raise NotImplementedError(f"{type(self).__name__} must define finish()")

    def prepare_summary(self) -> None:
        """All reducers have finished: the first may do what needs no samples of telemetry, the last of which are still taken.

        It is left out where nothing is waited for.  :meth:`summarize` follows, with the run's end in ``run.json``.
        """

    def summarize(self) -> None:
        """All reducers have finished; the first writes ``summary.msgpack``, a :class:`aiperf.sdk.summary.Summary`."""
        raise NotImplementedError(f"{type(self).__name__} must define summarize()")

    def write_rows(self) -> list[str]:
        """Write the rows that wait, behind the summary; a sentence on each failure."""
        return []


class Reducer(WithOptions[OptionsT]):
    """Makes results of journals.  options: the plugin's own (None where it declares none).

    rows: whether it gives requests to the batch exporters of the plan; else their files are not written, and the run says so.
    """

    rows: ClassVar[bool] = True

    def check(self, plan: Plan, endpoint: Endpoint[Any]) -> None:
        """Refuse, before load, a plan that can't be reduced.

        Raises:
            ConfigError: With a message for the user.
        """

    def preload(self, plan: Plan) -> None:
        """Import what is needed while another process makes the data set; whoever uses it reports a failure."""

    def begin(self, job: ReducerJob) -> RunningReduction:
        """Begin the work on a plan, or go on with the work of a process that died."""
        raise NotImplementedError(f"{type(self).__name__} must define begin(job)")

    def report(self, directory: Path, change: Callable[[Plan], Plan] | None = None) -> tuple[Summary, Plan, RunClock]:
        """Reduce the journal of a run's *directory* again, in this process, and summarise it.

        *change* turns the run's plan into the plan of the report: other metrics, options of metrics, or slices.

        Raises:
            BadJournal: The directory holds no observations.
            OSError: The directory can't be read or written.
        """
        raise NotImplementedError(f"{type(self).__name__} must define report(directory, change)")


def plugins_used(plan: Plan, shadowed: Mapping[str, Sequence[str]] = MappingProxyType({})) -> tuple[PluginUsed, ...]:
    """The plugins of the run, for its summary.  *shadowed*: by ``category:name``, packages that lost more than the name."""
    from aiperf.sdk.summary import PluginUsed  # not in the parent of a run, which imports this module early

    chosen = plan.plugins
    single = (
        chosen.tokenizer, chosen.grader, chosen.ui, chosen.engine, chosen.url_strategy, chosen.configuration, chosen.scenario,
    )  # fmt: skip
    refs = [chosen.endpoint, chosen.transport, chosen.dataset, *(ref for ref in single if ref is not None)]
    refs += [chosen.samplers[plan.data.sampling]] if plan.data.sampling in chosen.samplers else []
    refs += [*chosen.schedules.values(), *chosen.arrivals.values(), *chosen.ramps.values()]
    refs += [chosen.drivers[name] for name in dict.fromkeys(phase.driver for phase in plan.load.phases)]
    refs += [ref for ref in (chosen.reducer, chosen.series) if ref is not None]
    refs += [*chosen.metrics, *chosen.exporters, *chosen.telemetry, *chosen.verdicts, *chosen.tables]
    refs += [*chosen.companions, *chosen.live, *chosen.hooks]
    given = plan.run.config.get("plugins", {})
    return tuple(
        PluginUsed(
            ref.category, ref.name, ref.distribution, ref.version,
            (*chosen.shadowed.get(ref.key, ()), *shadowed.get(ref.key, ())), given.get(ref.key, {}),
        )
        for ref in refs
    )  # fmt: skip


__all__ = ["Ended", "Live", "PhaseFigures", "Reducer", "ReducerJob", "RunningReduction", "plugins_used"]
