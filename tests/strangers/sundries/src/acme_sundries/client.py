"""Where workers are, what they speak through, what is seen beside them."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable

from aiperf import (
    Exchange,
    LocalProcess,
    PhasePlan,
    Point,
    Shard,
    ShardEngine,
    ShardStart,
    Snapshot,
    TelemetrySource,
    Ui,
)
from aiperf.sdk.companion import Companion, Waiting
from aiperf_transport_sockets import KernelTransport

log = logging.getLogger(__name__)


class Shed(ShardEngine):
    shares_memory = True

    def start(self, start: ShardStart) -> Shard:
        return LocalProcess(("env", "ACME_PLACE=shed", *start.command), start.log, start.descriptors)


class String(KernelTransport):
    _spoken = 0

    def send(self, exchange: Exchange) -> None:
        self._spoken += 1
        super().send(exchange)

    async def close(self) -> None:
        log.warning("%d requests through a string in the %s", self._spoken, os.environ.get("ACME_PLACE", "open"))
        await super().close()


class Kettle(Companion[None]):
    cups = 0

    def waiting(self) -> Waiting | None:
        self.cups += 1
        return Waiting("Waiting for tea", self.cups, 3, "cups") if self.cups <= 3 else None

    def phase_began(self, phase: PhasePlan, at_ns: int) -> None:
        self.began_ns = at_ns

    def phase_ended(self, phase: PhasePlan, at_ns: int) -> None:
        self.context.report(f"{self.cups} cups of tea before {phase.name}, which took {at_ns - self.began_ns} ns")


class Bell(Ui):
    def show(self, snapshot: Snapshot) -> None:
        pass

    def close(self) -> None:
        print("ding!", file=sys.stderr, flush=True)


class Tides(TelemetrySource):
    interval_s = 0.1

    def sample(self) -> Iterable[Point]:
        yield Point("water", 2.5, unit="m", labels={"harbour": "north"})
