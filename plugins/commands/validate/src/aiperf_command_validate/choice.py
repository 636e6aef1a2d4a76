"""The statistics that a run's user chose (``--percentiles``, ``--columns``), as its configuration in the files has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aiperf import Plan, Target
from aiperf.sdk.statistics import percentile, percentile_name
from aiperf.sdk.summary import STATISTICS
from msgspec import Struct

USUAL = (1, 5, 10, 25, 50, 75, 90, 95, 99)
"""Percentiles of every distribution."""


class Choice(Struct, frozen=True):
    """percentiles, columns: as they were given; without any the files have their usual ones."""

    percentiles: tuple[float, ...] = ()
    columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, document: Mapping[str, Any] | None) -> Choice:
        """The choice in the ``input_config`` of a summary or of time slices; what is no choice is left out."""
        config = (document or {}).get("input_config")
        artifacts = config.get("artifacts") if isinstance(config, dict) else None
        given = artifacts if isinstance(artifacts, dict) else {}
        percentiles, columns = (given.get(name) for name in ("percentiles", "columns"))
        return cls(
            tuple(each for each in _listed(percentiles) if isinstance(each, float) and 0 < each < 100),
            tuple(each for each in _listed(columns) if isinstance(each, str)),
        )

    def applied(self, plan: Plan) -> Plan:
        """The plan of a report with this choice in place of the run's."""
        if (self.percentiles, self.columns) == (plan.output.percentiles, plan.output.columns):
            return plan
        given = {"percentiles": [*self.percentiles], "columns": [*self.columns]}
        artifacts = {name: value for name, value in plan.run.config.get("artifacts", {}).items() if name not in given}
        artifacts |= {name: value for name, value in given.items() if value}
        config = {**plan.run.config, "artifacts": artifacts}
        return plan.replacing(percentiles=self.percentiles, columns=self.columns, config=config)

    @property
    def computed(self) -> tuple[float, ...]:
        """All percentiles of a distribution in the JSON files, ascending."""
        named = (percentile(name) for name in self.columns)
        return tuple(sorted({*USUAL, *self.percentiles, *(each for each in named if each is not None and 0 < each < 100)}))

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(map(percentile_name, self.computed))

    @property
    def shown(self) -> tuple[str, ...]:
        """The statistics in the CSV files, in their order."""
        return Target(Path(), percentiles=self.percentiles, columns=self.columns).statistics(STATISTICS)


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()
