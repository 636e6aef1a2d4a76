"""Sites in other directories of this machine, by an engine with a process of its own that fails where it is told."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from aiperf import AiperfError, LocalProcess, Options, Shard, SiteEngine, SiteStart, option


class HermitOptions(Options):
    rooms: tuple[Path, ...] = option("--hermit-rooms", default=(), metavar="DIRS", help="A site in each of these directories.")
    whim: str = option("--hermit-whim", default="", metavar="HOW:WHERE", help="Hang, die, raise or refuse in a method.")


class Hermit(SiteEngine[HermitOptions]):
    own_process = True

    def names(self) -> Sequence[str]:
        return [room.name for room in self.options.rooms]

    def host(self) -> str:
        print("the hermit is", os.getpid(), flush=True)
        self.fail("host")
        return super().host()

    def address(self, index: int, port: int) -> str:
        self.fail("address")
        return f"tcp://127.0.0.1:{port}"

    def start(self, start: SiteStart) -> Shard:
        if start.index == len(self.options.rooms) - 1:
            self.fail("start")
        place = self.options.rooms[start.index].absolute()
        site = LocalProcess(("env", "-C", str(place), f"TMPDIR={place}", sys.executable, *start.words), start.log, sends=True)
        site.give(start.input)
        return Cell(self, site)

    def fail(self, where: str) -> None:
        match self.options.whim.split(":"):
            case ["hang", there] if there == where:
                time.sleep(1000)
            case ["die", there] if there == where:
                os.kill(os.getpid(), signal.SIGKILL)
            case ["raise", there] if there == where:
                raise ZeroDivisionError("by the hermit")
            case ["refuse", there] if there == where:
                raise AiperfError("the hermit wants to be alone", "come back tomorrow")


class Cell(Shard):
    """A site."""

    def __init__(self, engine: Hermit, site: Shard) -> None:
        self._engine, self._site = engine, site

    def poll(self) -> int | None:
        return self._site.poll()

    def let_go(self) -> None:
        self._site.let_go()

    def wait(self, seconds: float) -> int | None:
        self._engine.fail("wait")
        return self._site.wait(seconds)

    def kill(self) -> None:
        self._engine.fail("kill")
        self._site.kill()
