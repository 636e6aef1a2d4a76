"""The contract of verdicts: what is known of a finished run in, findings out.

Every installed verdict judges every run, in the reducer at its end and again in ``aiperf report``.  A run is ``suspect`` where
any of them finds something suspect; where none does it is ``trustworthy``, or ``partial`` if it was cut short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta, Struct

from aiperf.sdk.options import OptionsT, WithOptions

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats, Ints
    from aiperf.sdk.descriptor import Descriptor
    from aiperf.sdk.fetch import Servers
    from aiperf.sdk.model import ErrorDetails
    from aiperf.sdk.plan import PhasePlan, Plan
    from aiperf.sdk.series import Line, Window
    from aiperf.sdk.snapshot import Snapshot
    from aiperf.sdk.summary import Summary

CERTAIN, LIKELY, POSSIBLE = 1.0, 0.8, 0.5
"""Confidences: the sentence says what was counted or measured; it names the usual explanation of that; one of several."""


class FindingLevel(StrEnum):
    """What a finding is for.

    suspect: the numbers may be wrong; it is one of ``measurement.reasons``, and the run is suspect.
    advice: the numbers are right and may mislead; it is one of the summary's ``warnings``.
    note: what the numbers are worth here; it is one of ``measurement.notes``.
    """

    SUSPECT = "suspect"
    ADVICE = "advice"
    NOTE = "note"


class Finding(Struct, frozen=True):
    """Something that a verdict says of a run.

    kind: a name for programs, in lower case with underscores (``merged_chunks``); it stays when the sentence changes.
    sentence: for people: what was seen, what it means, and what to do.
    confidence: 0 to 1, how sure it is that the sentence is right: CERTAIN, LIKELY, POSSIBLE, or a number of your own.
    numbers: what it rests on, by name with its unit (``slip_p99_ms``); what isn't finite is left out of files.
    scope: the statistics that it concerns, where these are a part (``first token and inter-chunk``); None is all.
    plugin, package: name of the verdict, and ``distribution version``; the kernel fills them in.
    """

    kind: Annotated[str, Meta(pattern="^[a-z][a-z0-9_]*$")]
    level: FindingLevel
    sentence: Annotated[str, Meta(min_length=1)]
    confidence: Annotated[float, Meta(ge=0, le=1)] = CERTAIN
    numbers: dict[str, int | float] = {}
    scope: str | None = None
    plugin: str = ""
    package: str = ""


class WorkerTime(Struct, frozen=True):
    """Shares (%) of a worker's time in the judged phases.

    cpu_pct: on a core.  encode_pct: preparing requests, in the endpoint and in hooks.  disk_pct: a thread of its own wrote the
    journal.  waited_pct: ready to run, and another program had the core.  throttled_pct: in periods in which its cgroup used up
    its limit of CPU.
    """

    cpu_pct: float = 0.0
    encode_pct: float = 0.0
    disk_pct: float = 0.0
    waited_pct: float = 0.0
    throttled_pct: float = 0.0


class WorkerEvent(Struct, frozen=True):
    """An event of a phase in a worker.

    event: ``begin``, ``sending_complete``, ``end``, or ``stopped``: the worker stood still for *for_ns* until then.
    phase: index of the phase.  at_ns: after the start of the run.
    """

    worker: int
    phase: int
    event: str
    at_ns: int
    for_ns: int = 0


class ErrorSeen(Struct, frozen=True):
    """An error of requests, their number, and the end of the first of them, in ns after the begin of the phase."""

    error: ErrorDetails
    count: int
    first_ns: float


class AnswerCounts(Struct, frozen=True):
    """Counts of good answers, and of what they consist of.

    chunks: pieces of content, of failed requests too.
    silent: answers without token counts of the server.  unread_usage: with counts that can't be read.  zeroed: with content
    and a count of 0.  clamped: with more reasoning than output tokens.  hidden_reasoning: with reasoning tokens, and no text of
    reasoning.
    unreadable: answers with events that can't be read; unreadable_events: these events; unread_first: answers with one before
    all content; unread_first_ns: sum of the times from it to the content.
    whole: answers that came whole, and are no stream.  whole_failed: complete answers of failed requests that did.
    answers_begun: answers with content, of failed requests too; merged_first: those whose first content was merged with later
    content.
    prompt_tokens, cached_tokens: as the server counts, in answers with a count of cached tokens.
    length_shift: by how many the answers of another length than was asked for are more (fewer: below 0) by the server's counts,
    where there are any, than by those made here.  far_prompts: answers whose prompts have far other counts at the server.
    """

    valid: int = 0
    chunks: int = 0
    silent: int = 0
    zeroed: int = 0
    clamped: int = 0
    hidden_reasoning: int = 0
    unreadable: int = 0
    unreadable_events: int = 0
    unread_first: int = 0
    unread_first_ns: int = 0
    whole: int = 0
    whole_failed: int = 0
    answers_begun: int = 0
    merged_first: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    unread_usage: int = 0
    length_shift: int = 0
    far_prompts: int = 0


def _no_samples(source: str) -> Iterator[Line]:
    return iter(())


def _no_column(name: str) -> Floats:
    raise LookupError(f"the evidence has no column {name!r}")


def _no_body(entry: int) -> bytes:
    return b""


class Evidence(Struct, frozen=True, kw_only=True):
    """What is known of a finished run.  Read it, and change nothing in it.

    A run has one profiling phase (*phase*), and at most one warmup.  What follows is of *phase*, unless it says otherwise.

    summary: the whole summary: results by tag (:attr:`Summary.results`), outcomes, phases, slices, telemetry.  Its measurement
    has arrivals, quantiles (ms) of client error, slip, loop lag and turnaround, and counts of stamps; not yet a verdict.
    plan: settings of the run, without secrets.
    late_ns: an arrival counts as late when it starts by more than this after its due time.
    interval_p50_ns: p50 of the intervals in which merged chunks came; 0 where none was merged.
    interval_p99_ns: p99 over all chunks; the interval of a chunk that was not merged is 0.
    first_interval_p50_ns, first_interval_p99_ns: likewise of the first content of answers, which the others leave out.
    turnaround_mean_ms: mean of ``measurement.turnaround_ms``; None where that is.
    workers: of each worker, in the phases of the same kind; a worker that wrote fewer than two records of its time has none.
    preparers: ``category:name`` of the plugins that prepare requests: hooks of ``aiperf_request_prepared``, else the endpoint.
    reads: reads of sockets in the whole run, ``measurement.stamps_missing`` of them without a kernel stamp.
    precise_timers: the system's timer kept the due times; else they are about a millisecond off.
    single_turn: every conversation of the data set has one turn.
    errors: by kind, in no order.  opening_ns: of the first good requests, at most 8, the time to the first token or the end.
    answers: in this phase; all_answers: in all phases.
    events: of all phases and workers, in the order of each worker.  told: what the drivers told (``DriverContext.tell``),
    likewise; instants in it are of the monotonic clock.
    models: pairs of the model asked for and the model that answered, as the first answers of each server say it.
    looks: what :meth:`Verdict.look` of any verdict found behind the load, by name.
    windows: of every phase, in the monotonic clock, as moments of samples are; one that never began has no length.
    zero_ns: the run's start in that clock: columns and events count from it.
    read_samples, read_column, read_columns, read_ordered, read_body: what :meth:`samples`, :meth:`column`, :meth:`columns`,
    :meth:`ordered` and :meth:`body` read from; of whole columns where *read_columns* or *read_ordered* is None.
    """

    summary: Summary
    plan: Plan
    phase: PhasePlan
    late_ns: float = 1e6
    interval_p50_ns: float = 0.0
    interval_p99_ns: float = 0.0
    first_interval_p50_ns: float = 0.0
    first_interval_p99_ns: float = 0.0
    turnaround_mean_ms: float | None = None
    workers: tuple[WorkerTime, ...] = ()
    preparers: tuple[str, ...] = ()
    reads: int = 0
    precise_timers: bool = True
    single_turn: bool = True
    errors: tuple[ErrorSeen, ...] = ()
    opening_ns: tuple[float, ...] = ()
    answers: AnswerCounts = AnswerCounts()
    all_answers: AnswerCounts = AnswerCounts()
    events: tuple[WorkerEvent, ...] = ()
    told: tuple[dict[str, Any], ...] = ()
    models: tuple[tuple[str, str], ...] = ()
    looks: dict[str, str] = {}
    windows: tuple[Window, ...] = ()
    zero_ns: int = 0
    read_samples: Callable[[str], Iterator[Line]] = _no_samples
    read_column: Callable[[str], Floats] = _no_column
    read_columns: Callable[[Sequence[str]], Iterator[tuple[Floats, ...]]] | None = None
    read_ordered: Callable[[str], Iterator[tuple[Ints, Floats]]] | None = None
    read_body: Callable[[int], bytes] = _no_body

    def samples(self, source: str) -> Iterator[Line]:
        """The lines of a telemetry source of this name, from the file, at each call; none where it took no sample."""
        return self.read_samples(source)

    def column(self, name: str) -> Floats:
        """A number for each request of *phase*, of any outcome, in the order in which they were reduced; NaN where it has none.

        *name*: of :data:`aiperf.sdk.columns.NUMBERS` (``output_tokens``, ``ended_ns``), in that column's unit, times since the
        run's start.  The column is read from the stored requests at each call: 8 bytes a request.

        Raises:
            LookupError: There is no such column; the sentence has the nearest name.
        """
        return self.read_column(name)

    def columns(self, *names: str) -> Iterator[tuple[Floats, ...]]:
        """The columns of these names, a block of requests after the other, for who needs each request once.

        Blocks are short (65,536 requests, or fewer), so that the memory doesn't grow with the run; joined they are what
        :meth:`column` gives.  Raises as :meth:`column`.
        """
        if self.read_columns is not None:
            yield from self.read_columns(names)
        else:
            yield tuple(map(self.read_column, names))

    def ordered(self, name: str) -> Iterator[tuple[Ints, Floats]]:
        """The values of a column in ascending order, without NaN, in blocks: each one's request, and the value.

        A request is its place in the column, from 0; of equal values the first request comes first.  Raises as :meth:`column`.
        """
        if self.read_ordered is not None:
            yield from self.read_ordered(name)
            return
        column = self.read_column(name)
        order = column.argsort(kind="stable")
        places = order[: int((column == column).sum())]  # NaN is behind all others
        yield places, column[places]

    def body(self, entry: int) -> bytes:
        """The encoded body of the first turn of an entry of the data set, as it is stored: for the first model, unmarked.

        Empty where it isn't known.  *entry*: as the column of this name has it.
        """
        return self.read_body(entry)


class Look(Struct, frozen=True):
    """A run in which none of the latest requests succeeded, and what its servers can be asked with.

    causes: kinds that ``explain`` gave, of most failures first.  plan: without secrets.  servers: they take the run's own key
    and headers.  endpoints: the installed endpoint types as their manifests describe them, the default first.
    """

    causes: tuple[str, ...]
    plan: Plan
    servers: Servers
    endpoints: tuple[Descriptor, ...]


class UnfinishedRun(Struct, frozen=True):
    """What is known of a run under way.

    phase: under way, a profiling phase.  late_ns: as of :class:`Evidence`.  plan: without secrets.
    """

    snapshot: Snapshot
    plan: Plan
    phase: PhasePlan
    late_ns: float = 1e6
    read_samples: Callable[[str], Iterator[Line]] = _no_samples

    def samples(self, source: str) -> Iterator[Line]:
        """The lines of a telemetry source so far, as :meth:`Evidence.samples`."""
        return self.read_samples(source)


class Verdict(WithOptions[OptionsT]):
    """Judges finished runs.  options: the verdict's own (None where it declares none)."""

    unfinished: ClassVar[bool] = False
    """Whether it can judge runs under way, by :meth:`judge_unfinished`."""

    def judge(self, evidence: Evidence) -> Finding | Iterable[Finding] | None:
        """What is to be said of the run; None or no finding where there is nothing.

        The same evidence gives the same findings.  An exception is reported with package and name; the findings before it stay.
        """
        raise NotImplementedError(f"{type(self).__name__} must define judge(evidence)")

    def judge_unfinished(self, run: UnfinishedRun) -> Finding | Iterable[Finding] | None:
        """What is to be said so far, every 5 s, in a reducer process and while somebody looks; only where :attr:`unfinished`.

        Findings that are suspect make the run suspect so far.  Advice is left out.
        """
        return None

    def explain(self, error: ErrorDetails, plan: Plan) -> Finding | None:
        """The cause of an error and the next step, in a run under way; None where the error doesn't tell.

        *plan*: with those of its URLs alone at which the error was seen.  It is asked once for each kind of error, beside the
        load; the first verdict that knows a cause is believed.
        """
        return None

    def look(self, look: Look) -> dict[str, str]:
        """What the servers say when they are asked once more, by a name of the verdict's own; it becomes ``Evidence.looks``.

        Called in the parent process behind a load at whose end no request succeeded, before any judgement; ``aiperf report``
        has what was found, and asks nobody.  What isn't known within 3 s is left out, so each question needs a time limit.
        """
        return {}


__all__ = [
    "CERTAIN", "LIKELY", "POSSIBLE", "AnswerCounts", "ErrorSeen", "Evidence", "Finding", "FindingLevel", "Look",
    "UnfinishedRun", "Verdict", "WorkerEvent", "WorkerTime",
]  # fmt: skip
