"""What the planner is tested with."""

from __future__ import annotations

from aiperf.sdk.planner import Space
from aiperf.sdk.study import Dimension
from aiperf.testing import PlannerContract

from acme_ladder import Halving


class HalvingContract(PlannerContract):
    planner = Halving
    spaces = (Space((Dimension("profiling.concurrency", "concurrency", (1, 8, 16)),), trials=2),)
