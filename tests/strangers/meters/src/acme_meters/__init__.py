"""Metrics of numbers that the answers of the metered endpoint have."""

from __future__ import annotations

from aiperf import Column, Metric, Needs, RecordBatch

from acme_meters.units import JOULES, KILOJOULES, PIECES


class Energy(Metric):
    """The energy of an answer; absent where its meter was silent."""

    tag, title, unit, display, order = "energy", "Energy", JOULES, KILOJOULES, 960
    needs, requires = ("joules",), Needs.NUMBERS
    by, group_tags = ("model",), {"model": "energy.model.{key}"}

    def column(self, batch: RecordBatch) -> Column:
        return batch["joules"]


class Pieces(Metric):
    """The pieces in which an answer came."""

    tag, title, unit = "pieces", "Pieces", PIECES
    needs, requires = ("items",), Needs.NUMBERS

    def column(self, batch: RecordBatch) -> Column:
        return batch["items"]
