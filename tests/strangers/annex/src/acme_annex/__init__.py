"""Sites in other directories of this machine: what an engine for a cluster would do there, without a cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from aiperf import LocalProcess, Options, Shard, SiteEngine, SiteStart, option
from aiperf.sdk.errors import ConfigError


class AnnexOptions(Options):
    rooms: tuple[Path, ...] = option("--annex-rooms", default=(), metavar="DIRS", help="A site in each of these directories.")


class Annex(SiteEngine[AnnexOptions]):
    def names(self) -> Sequence[str]:
        missing = [str(room) for room in self.options.rooms if not room.is_dir()]
        if missing:
            raise ConfigError(f"--annex-rooms: {', '.join(missing)} is no directory", "make it, or name others")
        return [room.name for room in self.options.rooms]

    def start(self, start: SiteStart) -> Shard:
        place = self.options.rooms[start.index].absolute()
        site = LocalProcess(("env", "-C", str(place), f"TMPDIR={place}", sys.executable, *start.words), start.log, sends=True)
        site.give(start.input)
        return site
