"""What a command line, a file or a program asks of a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aiperf.planning.problems import Settings
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.planner import Space
from aiperf.sdk.study import Setting, StudyCell

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry


class StudyRequest(Struct, frozen=True):
    """A study to make.

    base: its own options, and those that all runs share; options with a list have their defaults.
    settings_of: the validated options of a cell; raises ConfigErrors with all of its faults.
    options: the texts of all options that were given, by flag, secrets redacted, as a manifest keeps them.
    typed: the flag as typed of each list, by the path of its dimension.
    """

    registry: Registry
    base: Settings
    space: Space
    planner: PluginRef
    planner_options: Any
    settings_of: Callable[[StudyCell], Settings]
    options: Mapping[str, Setting]
    typed: Mapping[str, str] = {}

    @property
    def asked(self) -> dict[str, Any]:
        """What two studies in one directory must have in common."""
        asked: dict[str, Any] = {"--sweep-type": self.planner.name}
        for each in self.space.dimensions:
            bounds = [each.low, each.high, each.scale, each.kind]
            asked[f"values of {each.path}"] = list(each.values) or list(each.choices) or bounds
        asked |= {f"variant {each.name}": each.parameters for each in self.space.scenarios}
        asked |= {f"sweep.{key}": value for key, value in self.space.settings.items()}
        return asked | dict(self.options)

    @property
    def sweeps(self) -> bool:
        return bool(self.space.dimensions or self.space.scenarios)
