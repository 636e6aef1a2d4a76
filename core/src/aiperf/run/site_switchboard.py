"""The parent's end of both channels: to processes of this machine, and to those of sites."""

from __future__ import annotations

from pathlib import Path

from aiperf.processes import control
from aiperf.registry.third_party import blamed, load, made
from aiperf.sdk.engine import SiteEngine
from aiperf.sdk.plan import Plan, RunClock
from aiperf.sites.commands import Keeping
from aiperf.sites.engine_apart import EngineApart
from aiperf.sites.remote import RemoteSites

_MODULE = "aiperf.run.site_process"


class SiteSwitchboard:
    """Sends to the sites until :meth:`come_home`, then to processes of this machine, until :meth:`go_out`; as
    :class:`aiperf.processes.control.Switchboard`."""

    def __init__(self, board: control.Switchboard, sites: RemoteSites) -> None:
        self._board, self._sites, self._home = board, sites, False

    def send(self, to: str, message: control.Message) -> None:
        if self._home:
            self._board.send(to, message)
        else:
            role, _, index = to.rpartition("-")
            self._sites.send(role, int(index), message)

    def receive(self, wait_ms: int) -> control.Message | None:
        """The next message of any worker or reducer; None if none comes within *wait_ms*."""
        return self._board.receive(wait_ms) if self._home else self._sites.receive(wait_ms)

    def come_home(self) -> None:
        """The sites are over."""
        self._home = True

    def go_out(self) -> None:
        """Another plan begins at the sites."""
        self._home = False


def started(plan: Plan, clock: RunClock, journal: Path, log_file: Path, keeping: Keeping | None) -> RemoteSites:
    """The sites of the plan, whose commands are started.  *keeping*: as of :class:`RemoteSites`.

    Raises:
        AiperfError: The engine can't start one.
    """
    ref = plan.plugins.engine
    assert ref is not None, "only an engine has sites"
    plugin: type[SiteEngine] = load(ref)
    if plugin.own_process:
        apart = EngineApart(ref, plan.plugins.options.get(ref.key), log_file.with_name("engine.log"))
        return RemoteSites(plan, apart, clock, journal, log_file, _MODULE, keeping)
    with blamed(ref, "can't start a site"):
        return RemoteSites(plan, made(ref, plan.plugins.options_of(ref)), clock, journal, log_file, _MODULE, keeping)
