"""The commands of a run's sites, which may serve one plan after the other: started, asked whether they are there, and ended."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from aiperf.sdk.engine import SiteEngine, SiteStart
from aiperf.sites import messages
from aiperf.sites.channel import SiteBoard
from aiperf.sites.remote_site import RemoteSite
from aiperf.sites.silence import SILENCE_S
from aiperf.sites.site_log import SiteLog

_LOOK_MS = 100


class Keeping(Struct, frozen=True):
    """Sites are for one plan after the other.  phases: most of a plan.  logs: a directory for what their commands say."""

    phases: int
    logs: Path


class SiteCommands:
    """*module*: the program of a site.  *keeping*: None where no other plan follows.  board: the channel to all sites.

    Raises:
        AiperfError: The engine's machines can't be reached.
    """

    def __init__(self, engine: SiteEngine, module: str, keeping: Keeping | None) -> None:
        self._engine, self._module, self.keeping = engine, module, keeping
        self._place = secrets.token_hex(8)
        try:
            self.board = SiteBoard(engine.host())
        except BaseException:
            engine.close()
            raise

    def start(
        self, index: int, name: str, processes: tuple[int, int], journal: Path, log: Path, before: RemoteSite | None = None
    ) -> RemoteSite:  # fmt: skip
        """A site with so many workers and reducers.  *journal*: of the run.  *log*: for what the command says in this plan.

        Raises:
            AiperfError: The engine can't start it.
        """
        address, port = self._engine.address(index, self.board.port), self.board.port
        keys = msgspec.json.encode(self.board.keys(index, address, f"{self._place}-{index}")) + b"\n"
        said = log if self.keeping is None else self.keeping.logs / log.name
        about = SiteLog(said, log)
        start = SiteStart(index, ("-P", "-m", self._module), keys, said, address, port, *processes)
        return RemoteSite(self.board, name, index, self._engine.start(start), about, journal, before)

    def wake(self, sites: Sequence[RemoteSite], hurried: Callable[[], bool]) -> str | None:
        """Tell all that another plan follows; why one can't take part, which says nothing for 30 s, or has ended.

        None where all are ready.  What they have said of the plan before is dropped.  *hurried*: whether to wait no more.
        """
        for site in sites:
            self.board.send(site.index, messages.NextPlan())
        until_s, silent = time.monotonic() + SILENCE_S, {site.index for site in sites}
        while silent and time.monotonic() < until_s and not hurried():
            for site in sites:
                if (fate := site.fate()) is not None:
                    return f"the site {site.name} has ended between two plans: {fate}"
            index, message = self.board.receive(_LOOK_MS) or (-1, None)
            if isinstance(message, messages.Unfit):
                return f"the site {sites[index].name} can't take part in another plan: {message.why}"
            if isinstance(message, messages.SiteUp):
                silent.discard(index)
            self.board.tend()
        names = ", ".join(site.name for site in sites if site.index in silent)
        waited = "in time" if hurried() else f"for {SILENCE_S:g} s"
        return f"nothing was heard of the site {names} {waited}" if silent else None

    def end(self, sites: Sequence[RemoteSite], patience_s: float) -> None:
        """Tell every site that it is not needed, wait, then kill what is left.  May be called again."""
        going = [site for site in sites if site.lost is None and not site.ended]
        for site in going:
            site.send(messages.SiteEnd())
            site.ended = True
        until_s = time.monotonic() + patience_s
        for site in going:
            if not site.up:
                site.process.kill()
            while site.process.poll() is None and time.monotonic() < until_s:
                self.board.receive(10)
                self.board.tend()
            site.process.let_go()
            if site.process.wait(max(0.0, until_s - time.monotonic())) is None:
                site.process.kill()
        for site in sites:
            site.log.follow()

    def close(self) -> None:
        """All sites have ended."""
        self._engine.close()
        self.board.close()
