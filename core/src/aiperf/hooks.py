"""Every hook the kernel calls, in calling order.  A plugin may rely on nothing else.

A package registers a module, an object or a class with implementations under the entry-point group ``aiperf.hooks`` and
marks them with ``aiperf.hookimpl``.  A class is made once in each process; where the plugin declares options, they are its
attribute ``options`` before the first call.  A hook that raises is isolated, counted and reported; it never ends a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pluggy import HookimplMarker, HookspecMarker

if TYPE_CHECKING:  # the specification must not drag in the engine
    from asyncio import AbstractEventLoop
    from collections.abc import Sequence

    from aiperf.columns import RecordBatch
    from aiperf.engine.contract import Sink, Transport, TransportSettings
    from aiperf.exporter import Artifact, Target
    from aiperf.model import HttpRequest, Turn
    from aiperf.plan import PhasePlan, Plan
    from aiperf.progress import Snapshot
    from aiperf.schedule import Schedule
    from aiperf.summary import Summary
    from aiperf.telemetry import Point
    from aiperf.telemetry.samples import Moment

hookspec = HookspecMarker("aiperf")
hookimpl = HookimplMarker("aiperf")


@hookspec
def aiperf_plan_validated(plan: Plan) -> None:
    """The options make a run.  Parent, once; raise ConfigError to refuse it."""


@hookspec(firstresult=True)
def aiperf_make_schedule(plan: Plan, phase: PhasePlan) -> Schedule | None:
    """Build the schedule the phase names; None leaves it to another plugin.  Parent, once a phase."""


@hookspec
def aiperf_run_configured(plan: Plan) -> None:
    """The data set is built and the processes are up; nothing has been sent.  Parent, once."""


@hookspec(firstresult=True)
def aiperf_make_transport(settings: TransportSettings, sink: Sink, loop: AbstractEventLoop) -> Transport | None:
    """Build what moves bytes, which reports to *sink* from *loop*; None leaves it to another plugin.  Worker, once."""


@hookspec
def aiperf_request_prepared(request: HttpRequest, turn: Turn) -> HttpRequest | None:
    """Change a request's bytes or headers ahead of its due time; None leaves it.

    Worker, once a request, on the measuring loop: microseconds only.  Implementations run in registration order, each
    on what the one before made.  Costs nothing when nobody implements it.
    """


@hookspec
def aiperf_phase_started(plan: Plan, phase: PhasePlan) -> None:
    """The phase's clock is running.  Parent, once a phase."""


@hookspec
def aiperf_snapshot(snapshot: Snapshot) -> None:
    """Live numbers.  Parent, a few times a second."""


@hookspec
def aiperf_batch_reduced(batch: RecordBatch) -> None:
    """Look at a batch of finished requests, failed ones too.  Reducer, per batch; never on the measuring loop."""


@hookspec
def aiperf_samples_arrived(source: str, points: Sequence[Point], moment: Moment) -> None:
    """Look at what a telemetry source gave.  The source's own process, per sample."""


@hookspec
def aiperf_phase_ended(plan: Plan, phase: PhasePlan) -> None:
    """Everything the phase sent has returned or been given up.  Parent, once a phase."""


@hookspec
def aiperf_summary_made(summary: Summary) -> None:
    """The numbers are final.  Parent, once."""


@hookspec
def aiperf_export(summary: Summary, target: Target) -> list[Artifact] | None:
    """Write further artifacts; return what was written.  Parent, once, after the exporters."""


@hookspec
def aiperf_run_ended(summary: Summary) -> None:
    """Everything is written.  Parent, once."""


@hookspec
def aiperf_teardown() -> None:
    """Last call, also after a failed run.  Parent, once."""
