"""Options of the generic rankings, given as extra inputs."""

from __future__ import annotations

from typing import Literal

from aiperf import Options


class RankingsOptions(Options):
    rankings: Literal["tei", "nim"] | None = None
