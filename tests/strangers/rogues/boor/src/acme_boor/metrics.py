"""A metric of a unit that is none, and one with too few values."""

from __future__ import annotations

from typing import Any

import numpy as np
from aiperf import Metric, RecordBatch, Unit


class BadUnit(Metric):
    tag, title, unit = "bad_unit", "Bad Unit", "furlongs"  # type: ignore[assignment]

    def column(self, batch: RecordBatch) -> Any:
        return np.ones(len(batch))


class WrongLength(Metric):
    tag, title, unit = "wrong_length", "Wrong Length", Unit.COUNT

    def column(self, batch: RecordBatch) -> Any:
        return np.ones(len(batch) + 1)
