"""Cells drawn from ranges: Sobol points and Latin hypercubes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from aiperf.sdk.errors import ConfigError
from aiperf.sdk.study import Dimension, Setting, StudyCell
from aiperf_studies.names import cell_label, cells_of
from aiperf_studies.scaling import bounds, scaled

from aiperf_planner_standard.trials import ListedPlanner

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_SAMPLES = 1 << 20
_FORMATS = ("index", "kv")
_HOW = "sweep.samples takes a whole number from 2 to 2^20"


class SampledPlanner(ListedPlanner):
    """Draws points of the unit cube, and takes each dimension's value at its coordinate.

    Points of equal values, as rounding makes them, are cells of their own.
    """

    word: ClassVar[str] = ""
    """The planner's name, as ``sweep.type`` has it."""

    def drawn(self, samples: int, dimensions: int, seed: int) -> NDArray[Any]:
        """The points, as an array (samples, dimensions)."""
        raise NotImplementedError(f"{type(self).__name__} must define drawn(samples, dimensions, seed)")

    def count(self) -> int:
        dimensions = self.space.dimensions
        if self.space.scenarios:
            raise ConfigError(f"sweep.type {self.word} takes dimensions, and no scenarios", "leave the scenarios away")
        if not dimensions:
            raise ConfigError(f"sweep.type {self.word} has no dimensions", "list them: path, and lo and hi, or choices")
        for dimension in dimensions:
            _check(dimension)
        samples = self._setting("samples", int)
        if samples is None:
            raise ConfigError(f"sweep.samples is missing, and sweep.type {self.word} needs it", _HOW)
        if not 2 <= samples <= _MOST_SAMPLES:
            raise ConfigError(f"sweep.samples: {samples} is not allowed", _HOW)
        if self._label_format() not in _FORMATS:
            raise ConfigError(f"sweep.labelFormat is {self._label_format()!r}", f"choose {' or '.join(_FORMATS)}")
        try:
            self.drawn(2, len(dimensions), self._seed())
        except ValueError as error:
            raise ConfigError(f"sweep.type {self.word}: {error}", "leave dimensions out, or correct the setting") from error
        return int(samples)

    @cached_property
    def values(self) -> list[list[Setting]]:
        """The values of each sample, by dimension."""
        dimensions = self.space.dimensions
        points = self.drawn(self._count, len(dimensions), self._seed()).tolist()
        return [[scaled(share, each) for share, each in zip(point, dimensions, strict=True)] for point in points]

    def listed(self) -> Sequence[StudyCell]:
        keys = [each.key for each in self.space.dimensions]
        combinations = [dict(zip(keys, row, strict=True)) for row in self.values]
        labels = [
            f"{self.word}_{index:04d}" if self._label_format() == "index" else cell_label(parameters)
            for index, parameters in enumerate(combinations)
        ]
        return cells_of(combinations, labels=labels)

    def design(self) -> dict[str, Setting]:
        """The settings and the values drawn, in the reference's form."""
        return {
            "type": self.word,
            "samples": self._count,
            "seed": self._seed(),
            "scramble": None,
            "optimization": None,
            "dimensions": [
                {
                    "path": each.path, "lo": each.low, "hi": each.high, "scale": each.scale, "kind": each.kind,
                    "choices": [*(each.choices or each.values)] or None,
                }
                for each in self.space.dimensions
            ],
            "samples_mapped": [*self.values],
        }  # fmt: skip

    def _label_format(self) -> str:
        return self._setting("label_format", str) or "index"

    def _seed(self) -> int:
        seed = self._setting("seed", int)
        if seed is None:
            return self.space.seed
        if seed < 0:
            raise ConfigError(f"sweep.seed is {seed}", "give a whole number from 0")
        return int(seed)

    def _setting(self, key: str, kind: type) -> Any:
        """The setting of this key, None where the file has none.

        Raises:
            ConfigError: It has another type.
        """
        value = self.space.settings.get(key)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool)):
            words = {int: "a whole number", bool: "true or false", str: "a word"}
            raise ConfigError(f"sweep.{_camel(key)} is {value!r}", f"give {words[kind]}")
        return value


class Sobol(SampledPlanner):
    """The first points of Sobol's sequence, scrambled unless the file says ``scramble: false``."""

    word = "sobol"

    def drawn(self, samples: int, dimensions: int, seed: int) -> NDArray[Any]:
        from aiperf_studies.sobol import sobol_points

        return sobol_points(samples, dimensions, scramble=self._scrambled(), seed=seed)

    def design(self) -> dict[str, Setting]:
        return {**super().design(), "scramble": self._scrambled()}

    def _scrambled(self) -> bool:
        return self._setting("scramble", bool) is not False


class LatinHypercube(SampledPlanner):
    """A Latin hypercube; ``optimization`` is random-cd unless the file says ``lloyd`` or null."""

    word = "latin_hypercube"

    def drawn(self, samples: int, dimensions: int, seed: int) -> NDArray[Any]:
        from aiperf_studies.latin import latin_hypercube

        return latin_hypercube(samples, dimensions, seed=seed, optimization=self._optimization())

    def design(self) -> dict[str, Setting]:
        return {**super().design(), "optimization": self._optimization()}

    def _optimization(self) -> str | None:
        found: str | None = self._setting("optimization", str) if "optimization" in self.space.settings else "random-cd"
        return found


def _check(dimension: Dimension) -> None:
    if dimension.choices or dimension.values:
        return
    try:
        bounds(dimension)
    except ValueError as error:
        raise ConfigError(f"sweep.dimensions: {dimension.path} {error}", "give lo and hi, or choices") from error


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(map(str.capitalize, rest))
