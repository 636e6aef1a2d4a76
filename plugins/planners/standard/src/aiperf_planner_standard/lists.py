"""Cells from lists: all combinations, combinations in step, and named ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product

from aiperf.sdk.errors import ConfigError
from aiperf.sdk.study import Dimension, Setting, StudyCell
from aiperf_studies.names import RESERVED, cells_of, path_safe

from aiperf_planner_standard.trials import ListedPlanner


class Grid(ListedPlanner):
    """All combinations of the values, the first dimension's slowest.  Dimensions come in the order of their paths, so that a
    command line and a file give the same cells.  A space without dimensions has one cell, which is the load itself."""

    def count(self) -> int:
        return math.prod(len(each.values) for each in _lists(self))

    def listed(self) -> Sequence[StudyCell]:
        dimensions = _lists(self)
        if not dimensions:
            return (StudyCell(0, {}),)
        return cells_of(
            dict(zip((each.key for each in dimensions), values, strict=True))
            for values in product(*(each.values for each in dimensions))
        )


class Zip(ListedPlanner):
    """The first values of all dimensions, then the second ones, and so on."""

    def count(self) -> int:
        dimensions = _lists(self)
        if not dimensions:
            raise ConfigError("--sweep-type zip has no lists", "give each of several options a list: --concurrency 1,2,4")
        counts = {each.key: len(each.values) for each in dimensions}
        if len(set(counts.values())) > 1:
            lengths = ", ".join(f"{key} has {count}" for key, count in counts.items())
            raise ConfigError(
                f"--sweep-type zip takes lists of one length: {lengths} values",
                "make them equally long, or choose --sweep-type grid for all combinations",
            )
        return len(dimensions[0].values)

    def listed(self) -> Sequence[StudyCell]:
        dimensions = _lists(self)
        keys = [each.key for each in dimensions]
        return cells_of(dict(zip(keys, row, strict=True)) for row in zip(*(each.values for each in dimensions), strict=True))


class Scenarios(ListedPlanner):
    """Cells that the user names, each with values of its own."""

    def count(self) -> int:
        scenarios, dimensions = self.space.scenarios, self.space.dimensions
        if dimensions:
            lists = ", ".join(each.key for each in dimensions)
            raise ConfigError(f"a sweep has scenarios or lists, not both: {lists}", "give the list's values to scenarios")
        if not scenarios:
            raise ConfigError("--sweep-type scenarios has no scenario", "name each: --variant \"small: concurrency=4\"")
        names = [scenario.name for scenario in scenarios]
        for name in names:
            if path_safe(name) != name or not name:
                raise ConfigError(f"a cell can't be called {name!r}, as its directory has its name", "choose plain letters")
            if name.casefold() in RESERVED:
                raise ConfigError(f"a cell can't be called {name!r}: that is a directory of every sweep", "choose another name")
        _refuse_twice(names)
        return len(scenarios)

    def listed(self) -> Sequence[StudyCell]:
        names = [scenario.name for scenario in self.space.scenarios]
        parameters: list[Mapping[str, Setting]] = [each.parameters for each in self.space.scenarios]
        return cells_of(parameters, names, names)


def _refuse_twice(names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(map(str.casefold, names)).items() if count > 1]
    if twice:
        raise ConfigError(f"two cells are called {twice[0]!r}", "give each another name")


def _lists(planner: ListedPlanner) -> list[Dimension]:
    """The dimensions, which must have values, in the order of their paths."""
    space = planner.space
    word = type(planner).__name__.lower()
    if space.scenarios:
        raise ConfigError(f"--sweep-type {word} takes lists, and no scenarios", "leave --sweep-type away, or the scenarios")
    for each in space.dimensions:
        if not each.values:
            why = f"--sweep-type {word} takes a list of values for {each.path}, not a range or choices"
            raise ConfigError(why, "list its values, or choose --sweep-type sobol or latin_hypercube")
    return sorted(space.dimensions, key=lambda each: each.path)
