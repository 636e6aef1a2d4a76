"""The contract of engines: where the shards of a run are.

There are two kinds.  A :class:`ShardEngine` starts the command of each shard on this machine: in a container, under another
user or scheduler, onto certain cores.  Such shards speak to the run themselves, over the control channel, and write to the
journal: they have the run's clock, and its directory.

A :class:`SiteEngine` starts one command for each *site*, which is another machine or another place on this one, with an aiperf
of the same version.  It gives the command bytes on its standard input, watches it and ends it; nothing more.  The command
starts the workers and the reducers of its site.  Plan, data set, clocks, secrets and results are the kernel's business, and go
through a connection that the command opens.  One command may serve many plans, one after the other, as long as the engine's
options stay the same; the engine is not told.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from aiperf.sdk.options import OptionsT, WithOptions


class ShardStart(Struct, frozen=True):
    """What is started.

    command: words to execute, the first is the interpreter.  descriptors: open ones that it must inherit under their numbers;
    none for an engine that shares no memory.  log: where its standard output and error go, to be appended to.
    """

    index: int
    command: tuple[str, ...]
    descriptors: tuple[int, ...]
    log: Path


class SiteStart(Struct, frozen=True):
    """What is started at a site.

    index: number of the site, from 0 on.  words: for the Python interpreter of the site, behind its name.  input: bytes for the
    standard input of the command, which stays open behind them; they hold keys, so they belong into no argument, variable,
    file or log.  log: a file on this machine for the command's standard output and error, to be appended to.
    address: as :meth:`SiteEngine.address` gave it.  port: of :meth:`SiteEngine.host`, where the run listens.
    workers, reducers: how many of each the command starts, so that a scheduler knows how many processors it needs.
    """

    index: int
    words: tuple[str, ...]
    input: bytes
    log: Path
    address: str
    port: int
    workers: int = 1
    reducers: int = 1


class Shard:
    """One that was started.  Its standard input is open until :meth:`let_go`, or until the run's own process is gone: then it
    ends by itself."""

    def poll(self) -> int | None:
        """Its exit code, below 0 the signal that ended it; None while it runs."""
        raise NotImplementedError(f"{type(self).__name__} must define poll()")

    def wait(self, seconds: float) -> int | None:
        """The exit code once it has ended, or None after so many *seconds*."""
        raise NotImplementedError(f"{type(self).__name__} must define wait(seconds)")

    def let_go(self) -> None:
        """Close its standard input.  May be called again."""
        raise NotImplementedError(f"{type(self).__name__} must define let_go()")

    def kill(self) -> None:
        """End it at once, and return when it has.  May be called of one that has ended."""
        raise NotImplementedError(f"{type(self).__name__} must define kill()")


class RunEngine(WithOptions[OptionsT]):
    """What both kinds have in common.  options: the engine's own (None where it declares none)."""

    shares_memory: ClassVar[bool] = False
    """Whether shards inherit open descriptors, and so count limits and arrivals together.  Where those of a ShardEngine don't,
    what would need that is run by one shard, and a shard that dies is not replaced.  The manifest's capability says the
    same."""

    def close(self) -> None:
        """After the last shard, or site, has ended."""


class ShardEngine(RunEngine[OptionsT]):
    """Starts shards on this machine."""

    def start(self, start: ShardStart) -> Shard:
        """Start one, and return at once; Ctrl-C on the terminal must not reach it.

        Raises:
            AiperfError: It can't be started; with what to do.
        """
        raise NotImplementedError(f"{type(self).__name__} must define start(start)")


class SiteEngine(RunEngine[OptionsT]):
    """Starts sites.  The manifest's capability ``sites: true`` says that it is one."""

    own_process: ClassVar[bool] = False
    """Whether its code runs in a process of its own beside the run, because a library of it may end that process or never
    return.  Such an engine imports the library where it uses it: its module is imported in the run's process, too, where
    :meth:`names` is called.  The other methods are called in its own process: :meth:`host` and :meth:`address` in the main
    thread, :meth:`start` in a thread for each command, where it may wait, and where the methods of its :class:`Shard` follow;
    an error of these is a line of the site's log.  A site ends with that process."""

    def names(self) -> Sequence[str]:
        """What each site is called in messages and results, from its options alone; each name once.

        Raises:
            AiperfError: The options name no sites; with what to do.
        """
        raise NotImplementedError(f"{type(self).__name__} must define names()")

    def host(self) -> str:
        """The IP address of this machine where the run listens for its sites; asked before any site is started.

        The default, loopback, is for engines that forward a connection.  With another one, whoever reaches the port can
        connect, and is turned away without a key of the run.

        Raises:
            AiperfError: The machines can't be reached; with what to do.
        """
        return "127.0.0.1"

    def address(self, index: int, port: int) -> str:
        """Where a program of the site reaches *port* of :meth:`host`: ``tcp://HOST:PORT`` or ``ipc://PATH``.

        The default is for sites that reach that address themselves; it asks :meth:`host` again.  What passes there is encrypted
        by the run.
        """
        host = self.host()
        return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"

    def start(self, start: SiteStart) -> Shard:
        """Start the command of a site, and return at once; Ctrl-C on the terminal must not reach it.

        With ``--restart-lost-shards`` it is called again for a site whose command has ended or was killed, while the load goes
        on at the others: what takes long delays what the run hears of them.

        Raises:
            AiperfError: It can't be started; with what to do.
        """
        raise NotImplementedError(f"{type(self).__name__} must define start(start)")


class SiteLoss(Struct, frozen=True, omit_defaults=True):
    """A site was lost, and another process was started in its place.

    why: in a few words.  lost_ns: wall clock of the run, when that was noticed.  resumed_ns: when the other one went on, None
    where it never came to that.  within_ms: how far instants of the lost one may be from those of the run.
    """

    why: str
    lost_ns: int
    resumed_ns: int | None = None
    within_ms: float = 0.0


class SiteClock(Struct, frozen=True):
    """A site of the run, and its clock.

    shards: indices of its workers.  ahead_ms: how far its monotonic clock was ahead before the load; such clocks count from
    the start of a machine, so it says nothing by itself.  within_ms: how far it may have been from that.  drift_ms: how far
    it was from there behind the load, known to within drift_within_ms; instants are corrected by it.  0 where no look at the
    clock shows one.  wall_ahead_s: how far its wall clock is ahead.  trips:
    round trips that this is made of; trip_ms: the shortest.  lost: why the site was lost, None where it was not.
    losses: those after which another process took its place, whose clock this then is.
    """

    name: str
    shards: tuple[int, ...]
    ahead_ms: float = 0.0
    within_ms: float = 0.0
    drift_ms: float = 0.0
    drift_within_ms: float = 0.0
    wall_ahead_s: float = 0.0
    trips: int = 0
    trip_ms: float = 0.0
    lost: str | None = None
    losses: tuple[SiteLoss, ...] = ()

    @property
    def uncertainty_ms(self) -> float:
        """How far instants of the site may be from those of the run, in the time from the first look at the clock to the last
        one; of a site that was lost before, too."""
        return max(self.within_ms, self.drift_within_ms - self.within_ms, *(loss.within_ms for loss in self.losses))


__all__ = ["RunEngine", "Shard", "ShardEngine", "ShardStart", "SiteClock", "SiteEngine", "SiteLoss", "SiteStart"]
