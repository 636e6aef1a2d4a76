"""The scheduling mode without due times."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiperf.sdk.columns import Ints
    from aiperf.sdk.schedule import ScheduleContext


class Burst:
    """No due times: a request leaves whenever a slot is free."""

    paced = False

    def __init__(self, context: ScheduleContext) -> None:
        self.context = context

    def due_block(self, first: int, count: int) -> Ints:
        import numpy as np  # 0.1 s, and a run of this mode never asks

        return np.empty(0, dtype=np.int64)
