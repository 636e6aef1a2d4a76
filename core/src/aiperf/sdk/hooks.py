"""Every hook that the kernel calls, in calling order.  A plugin may rely on nothing else.

A package registers a module, an object or a class under the entry-point group ``aiperf.hooks`` and marks its functions
with ``aiperf.hookimpl``.  A class is instantiated once in each process that calls one of its hooks; where the plugin
declares options, they are its attribute ``options`` before the first call.

pluggy calls the plugins: the last registered first, ``tryfirst``, ``trylast`` and ``wrapper=True`` as pluggy has them
(``aiperf_request_prepared`` differs).  An exception, SystemExit or a wrong result is reported once for each plugin and
hook, counts as None, and the other plugins still run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pluggy import HookimplMarker, HookspecMarker

if TYPE_CHECKING:  # the specification must not drag in the engine
    from asyncio import AbstractEventLoop
    from collections.abc import Sequence
    from pathlib import Path

    from aiperf import (  # isort: skip
        Artifact, HttpRequest, PhasePlan, Plan, Point, RecordBatch, Schedule, ScheduleContext, Sink, Snapshot, Summary, Target,
        Transport, TransportSettings, Turn,
    )  # fmt: skip
    from aiperf.sdk.descriptor import Descriptor
    from aiperf.sdk.fetch import Servers
    from aiperf.sdk.recognition import Recognition
    from aiperf.sdk.series import Moment

hookspec = HookspecMarker("aiperf")
hookimpl = HookimplMarker("aiperf")


@hookspec(firstresult=True)
def aiperf_where_is(category: str, name: str) -> str | None:
    """Name the distribution with a plugin that nothing installed has; None leaves it to other plugins.

    *name*: in lower case, with ``_`` for ``-``.  The process that meets the name, and no other.  This and the next
    three ask plugins alone whose manifest says ``guide: true``; these take no part in runs.
    """


@hookspec(firstresult=True)
def aiperf_unknown_plugin(category: str, name: str) -> str | None:
    """Say what to do instead of a plugin that no package has, such as an endpoint type; None leaves it to other plugins.

    *name*: as for ``aiperf_where_is``, which is asked first.  The process that meets the name, and no other.
    """


@hookspec(firstresult=True)
def aiperf_unknown_option(flag: str) -> str | None:
    """Say what to do instead of an option of ``aiperf profile`` that nothing installed has; None leaves it to other plugins.

    ``aiperf.sdk.command.LATER`` gives way to installed options of a similar name.

    Parent process, and only where a command line has such an option.
    """


@hookspec(firstresult=True)
def aiperf_unknown_command(name: str) -> str | None:
    """Say what to do instead of a command that nothing installed has; None leaves it to other plugins.

    Parent process, and only where a command line has such a command.
    """


@hookspec(firstresult=True)
def aiperf_local_copy(url: str) -> Path | None:
    """Fetch the file of ``--input-file URL``, ``s3://bucket/prompts.jsonl``; None leaves it to other plugins.

    An AiperfError refuses the plan.  Parent process, once, and only where a run has such a URL.
    """


@hookspec(firstresult=True)
def aiperf_recognise_file(path: Path, formats: Sequence[Descriptor] | None, option: str) -> Recognition | None:
    """Tell the first row of ``--input-file``, and which of *formats* it has; None leaves it to other plugins.

    *formats*: those that read files, with what their manifests say; None where the format is named, and the first row alone is
    asked for.  *option*: how messages call the option that names a format.  What fits is the *format* of the result; where
    none or several do, its *refusal* says so.  Parent process, once, and only where a run has an input file.
    """


@hookspec
def aiperf_plan_validated(plan: Plan) -> None:
    """The options make a plan; a plugin refuses it with ConfigError.  Every plugin is asked.  Parent process, once."""


@hookspec(firstresult=True)
def aiperf_make_schedule(plan: Plan, phase: PhasePlan, context: ScheduleContext) -> Schedule | None:
    """Make the schedule of a phase; None leaves it to other plugins, at last to the schedule that the phase names.

    ConfigError ends the run.  Builder process, a child of the parent that also writes the data set; once a phase.
    """


@hookspec(firstresult=True)
def aiperf_make_transport(settings: TransportSettings, sink: Sink, loop: AbstractEventLoop) -> Transport | None:
    """Make the transport, which reports to *sink* from *loop*; None leaves it to other plugins, at last to ``--transport``.

    Worker process, once in each worker.
    """


@hookspec
def aiperf_run_configured(plan: Plan, servers: Servers) -> None:
    """The data set is built, all processes are up, and nothing has been sent.  Parent process, once.

    An AiperfError ends the run.  *servers* takes requests beside the load, with the run's TLS and authorization.
    """


@hookspec
def aiperf_phase_started(plan: Plan, phase: PhasePlan, servers: Servers) -> None:
    """The clock of a phase is running.  Parent process, once a phase."""


@hookspec
def aiperf_request_prepared(request: HttpRequest, turn: Turn) -> HttpRequest | None:
    """Change the bytes or headers of a request; None leaves it.

    Worker process, once a request, when it is due and before it is sent: microseconds only, they delay the request.
    Plugins run in the order of registration, those with ``tryfirst`` first and those with ``trylast`` last, each on the
    request that the plugin before returned.  A wrapper is refused.  Free where no plugin implements it.
    """


@hookspec
def aiperf_snapshot(snapshot: Snapshot) -> None:
    """Live numbers.  Parent process, at most twice a second while a phase runs, at its end, and once all is reduced."""


@hookspec
def aiperf_batch_reduced(batch: RecordBatch, plan: Plan, live: bool) -> None:
    """Read a batch of finished requests, failed ones too.

    Reducer process, once a batch; of a reducer that died all batches come again, in the same order, before further ones.
    ``aiperf report`` calls it as well, with *live* false.
    """


@hookspec
def aiperf_reduction_ended(plan: Plan, live: bool) -> None:
    """All batches of this process were given.  Reducer process, once; *live* as for ``aiperf_batch_reduced``."""


@hookspec
def aiperf_samples_arrived(source: str, points: Sequence[Point], moment: Moment) -> None:
    """Read a sample of a telemetry source.  The process of that source, once a sample."""


@hookspec
def aiperf_phase_ended(plan: Plan, phase: PhasePlan, servers: Servers) -> None:
    """All requests of a phase are finished or given up.  Parent process, once a phase."""


@hookspec
def aiperf_summary_made(summary: Summary) -> None:
    """The numbers are final.  Parent process, once."""


@hookspec
def aiperf_export(summary: Summary, target: Target) -> list[Artifact] | None:
    """Write further artifacts, and return them.  Parent process, once, after the exporters.

    In a study the files of a run may be written behind ``aiperf_plan_validated`` of the next one, and before its
    ``aiperf_run_configured``: this hook, ``aiperf_run_ended`` and ``aiperf_teardown`` come then, in this order.
    """


@hookspec
def aiperf_run_ended(summary: Summary) -> None:
    """All files are written.  Parent process, once; not in a run that failed before its summary."""


@hookspec
def aiperf_teardown() -> None:
    """The run is over, also a failed one, and its processes have ended or wait for another run.  Parent process, once; not
    where the plan was refused."""


__all__ = [
    "aiperf_batch_reduced", "aiperf_export", "aiperf_local_copy", "aiperf_make_schedule", "aiperf_make_transport",
    "aiperf_phase_ended", "aiperf_phase_started", "aiperf_plan_validated", "aiperf_recognise_file", "aiperf_reduction_ended",
    "aiperf_request_prepared", "aiperf_run_configured", "aiperf_run_ended", "aiperf_samples_arrived", "aiperf_snapshot",
    "aiperf_summary_made", "aiperf_teardown", "hookimpl",
]  # fmt: skip
