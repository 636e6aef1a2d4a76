"""The steps of a run that only sites have: the data set goes there before the load, and what was measured comes behind it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from aiperf import environment
from aiperf.errors import AiperfError
from aiperf.processes import control
from aiperf.rundir.journal import RunClock, save_run

if TYPE_CHECKING:
    from aiperf.run.children import Mailbox
    from aiperf.run.steps import Far
    from aiperf.sdk.engine import SiteClock
    from aiperf.sdk.plan import Plan
    from aiperf.sites.remote import RemoteSites

_POLL_MS = 100
_END_S, _REST_S = 5.0, 10.0
_FETCHING = "Fetching the results of the sites"


def supply(
    sites: RemoteSites, plan: Plan, clock: RunClock, receive: Callable[[int], None], tell: Callable[[], None], logs: Path
) -> RunClock:  # fmt: skip
    """Wait until each site has its order, started its processes and got the data set of *plan*.

    Gives the *clock* of the run with those of the sites; it is in ``run.json``, too, for a report of a run that is killed.

    *receive*: handles messages for so many ms.  *logs*: the directory with what the sites' commands have said.

    Raises:
        AiperfError: A site can't take part, or nothing was heard for too long.
    """
    for phase in plan.load.phases:
        for limit in (phase.concurrency, phase.prefill_concurrency):
            if limit is not None and limit < len(plan.run.sites):
                what = f"the limit {limit} of phase {phase.name} can't be divided among {len(plan.run.sites)} sites"
                raise AiperfError(what, "set --concurrency, or use fewer sites")
        if plan.run.restart_lost and plan.plugins.fact("drivers", phase.driver, "trees"):
            why = "how many requests of its trees a lost site has sent is not known"
            raise AiperfError(f"--restart-lost-shards is not possible with phase {phase.name}: {why}", "drop it")
    sites.supply(plan)
    limit_s = environment.start_s()
    until, heard, hint = time.monotonic() + limit_s, -1, f"see {logs}"
    while not sites.ready:
        receive(_POLL_MS)
        tell()
        if (why_lost := sites.lost()) is not None:
            raise AiperfError(why_lost, hint)
        if sites.progress != heard:
            until, heard = time.monotonic() + limit_s, sites.progress
        elif time.monotonic() > until:
            raise AiperfError(f"nothing was heard of {sites.silent} for {limit_s:g} s", hint)
    clock = replace(clock, sites=sites.offsets())
    save_run(Path(plan.output.journal), plan, clock)
    return clock


def gather(
    sites: RemoteSites, mailbox: Mailbox, wait: Callable[[Callable[[], bool], str, Callable[[], Far]], None], clock: RunClock,
    last: control.Message,
) -> tuple[tuple[SiteClock, ...], RunClock]:  # fmt: skip
    """Let the reducers of sites end, take their files, and end the sites; the clocks of all, and that of the run with them.

    Reducers of this machine then go on from the columns.  *wait*: waits for something, and shows what, and how far it is.
    *last*: the last message to the reducers; with Release the sites wait for another plan, unless one was lost.
    """
    mailbox.catch_up = lambda child: [control.Finish()]
    going = [child for child in mailbox.children.reducers if not child.lost]
    for child in going:
        mailbox.send(child, control.Finish())
    sites.measure_again()

    def over() -> bool:
        return all(child.index in mailbox.reduced or child.lost for child in going) and sites.complete

    def far() -> Far:
        return (*sites.copied(), "bytes")

    wait(over, _FETCHING, far)
    mailbox.lose_sites()
    clocks, clock = sites.clocks(), replace(clock, sites=sites.offsets())
    if isinstance(last, control.Release) and sites.lost() is None:
        for child in going:
            mailbox.send(child, last)
        sites.rest()
        until_s = time.monotonic() + _REST_S
        wait(lambda: sites.resting or time.monotonic() > until_s, _FETCHING, far)
    if not sites.resting:
        sites.end(_END_S)
    mailbox.reduced.clear()
    mailbox.live.clear()
    return clocks, clock
