"""The contract of engines: where the shards of a run are.

An engine starts the command of a shard, watches over it and ends it; nothing more.  Shards speak to the run themselves, over
the control channel, and write to the journal.  So an engine may put them into a container, under another user or scheduler,
onto certain cores, but onto this machine: the run needs one clock, and the journal's directory must be
the same.
"""

from __future__ import annotations

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


class ShardEngine(WithOptions[OptionsT]):
    """Starts shards.  options: the engine's own (None where it declares none)."""

    shares_memory: ClassVar[bool] = False
    """Whether shards inherit open descriptors, and so count limits and arrivals together.  Where they don't, what would need
    that is run by one shard, and a shard that dies is not replaced.  The manifest's capability says the same."""

    def start(self, start: ShardStart) -> Shard:
        """Start one, and return at once; Ctrl-C on the terminal must not reach it.

        Raises:
            AiperfError: It can't be started; with what to do.
        """
        raise NotImplementedError(f"{type(self).__name__} must define start(start)")

    def close(self) -> None:
        """After the last shard has ended."""


__all__ = ["Shard", "ShardEngine", "ShardStart"]
