"""The options that a file's values stand for, by their places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from aiperf.sdk.configuration import Option
from aiperf.sdk.descriptor import canonical

from aiperf_configuration_yaml.entries import Entry
from aiperf_configuration_yaml.names import SAME, SHORT
from aiperf_configuration_yaml.values import FileValues

LATER = {
    "gpu_telemetry": "it is for the packages aiperf-metric-gpu-dcgm and aiperf-metric-gpu-nvml, which are not installed",
    "network_latency": "it is for the package aiperf-metric-network, which is not installed",
    "otel": "it is for the package aiperf-exporter-otel, which is not installed",
    "mlflow": "it is for the package aiperf-exporter-mlflow, which is not installed",
    "wandb": "it is for the package aiperf-exporter-wandb, which is not installed",
    "accuracy": "it is for accuracy benchmarks (aiperf-dataset-mmlu, for one), none of which is installed",
    "server_metrics": "it is for the package aiperf-companion-telemetry, which is not installed",
}
"""Sections of the reference without options here, and what they wait for; they may stand switched off."""
_PLAIN, _TYPES = ("type", "value", "mean", "stddev", "distribution"), ("fixed", "normal")
"""The keys and types of distributions that options have one by one."""


class PlaceTable:
    """Options by place, and those of plugins by ``category:name`` and field."""

    def __init__(self, options: Iterable[Option]) -> None:
        self.by_place: dict[str, Option] = {}
        self.owned: dict[str, dict[str, Option]] = {}
        for option in options:
            if option.spec.place:
                self.by_place[option.spec.place] = option
            for target in option.targets:
                if target.owner:
                    self.owned.setdefault(target.owner, {})[target.field] = option


class Places:
    """The options of a file's values, by place.  *special*: what reads a section with a form of its own, by its place."""

    def __init__(self, file: FileValues, table: PlaceTable) -> None:
        self.file, self.by_place, self.owned = file, table.by_place, table.owned
        self.special: dict[str, Callable[[Entry], None]] = {}

    def each(self, named: Mapping[str, Entry]) -> None:
        for place, entry in named.items():
            self.walk(place, entry)

    def walk(self, place: str, entry: Entry) -> None:
        """Take what stands at a place and below it."""
        if entry.value is None:
            return
        special, option = self.special.get(place), self.by_place.get(place)
        if special is not None:
            special(entry)
        elif isinstance(entry.value, dict) and self.below(place):
            if (named := self._switched_on(place, self._distribution(place, entry))) is not None:
                self.each(named)
        elif option is not None:
            self.file.take(option, entry)
        elif place in LATER and not self.below(place):
            if not isinstance(entry.value, dict) or entry.value.get("enabled", entry).value is not False:
                self.file.wrong(entry, LATER[place], f"drop it, or switch it off: {place}: {{enabled: false}}")
        elif not isinstance(entry.value, dict) and (short := self._short(place)) in self.by_place:
            self.walk(short, entry)
        else:
            before, _, key = place.rpartition(".")
            self.file.unknown(entry, key, self.below(before))

    def below(self, place: str) -> list[str]:
        """The known keys below a place."""
        known = [*self.by_place, *self.special, *SAME, *LATER]
        start = f"{place}." if place else ""
        return sorted({one[len(start) :].partition(".")[0] for one in known if one.startswith(start)})

    def _short(self, place: str) -> str:
        return SHORT.get(place) or next((one for one in (f"{place}.mean", f"{place}.duration") if one in self.by_place), "")

    def _switched_on(self, place: str, named: dict[str, Entry]) -> dict[str, Entry] | None:
        """The keys of a section without its switch, where that is no option; None where it is switched off."""
        key = f"{place}.enabled"
        if place not in LATER or key in self.by_place or key not in named:
            return named
        return named if self.file.on(named.pop(key)) else None

    def _distribution(self, place: str, entry: Entry) -> dict[str, Entry]:
        """The keys of a distribution without its ``type`` and ``value``, which are read here.

        One of more than a mean and a spread is the value of an option of its own, where there is one.
        """
        named = self.file.named(entry, place)
        if f"{place}.mean" not in self.by_place:
            return named
        whole, said = self.by_place.get(f"{place}.distribution"), named.get(f"{place}.type")
        plain = {f"{place}.{key}" for key in _PLAIN}
        if whole is not None and (not named.keys() <= plain or (said is not None and said.plain not in _TYPES)):
            self.file.take(whole, entry)
            return {}
        kind, value = named.pop(f"{place}.type", None), named.pop(f"{place}.value", None)
        if kind is not None and kind.plain not in _TYPES:
            self.file.wrong(kind, f"{kind.plain!r} can't be drawn; fixed and normal can")
        if value is not None:
            self.walk(f"{place}.mean", value)
        return named

    def of_plugins(self, entry: Entry) -> None:
        """Options by ``category:name`` and field."""
        if not isinstance(entry.value, dict):
            self.file.wrong(entry, "it must be a mapping, of options by category:name and field")
            return
        for owner, fields in entry.value.items():
            known = next((one for one in self.owned if canonical(one) == canonical(owner)), None)
            if known is None:
                self.file.unknown(fields, owner, list(self.owned), "no installed plugin of that name has options")
                continue
            for field, below in self.file.named(fields).items():
                option = self.owned[known].get(field)
                if option is None:
                    self.file.unknown(below, field, list(self.owned[known]))
                elif below.value is not None:
                    self.file.take(option, below)
