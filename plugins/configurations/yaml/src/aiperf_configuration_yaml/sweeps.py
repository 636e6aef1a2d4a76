"""The section ``sweep``: which values make cells."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aiperf.sdk.configuration import SweepSection
from aiperf.sdk.study import Dimension, Scenario, Setting
from msgspec import structs

from aiperf_configuration_yaml.computing import made
from aiperf_configuration_yaml.entries import Entry
from aiperf_configuration_yaml.names import snake, snaked
from aiperf_configuration_yaml.overlay import leaves, place_of
from aiperf_configuration_yaml.shape import Names, shaped, where, wrong

SPACE = ("parameters", "runs", "dimensions")
"""Keys that say which cells there are; the others are settings of the planner, or options."""
_OF_A_DIMENSION = ("path", "lo", "hi", "scale", "kind", "choices", "values")
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
_SECTIONS = ("benchmark", "variables")


class Sweep:
    """A section as read.  *option_keys*: keys that are options of their own.

    Raises:
        ConfigError: It can't be read; the message names path and line.
    """

    def __init__(self, entry: Entry, file: str, names: Names, option_keys: frozenset[str]) -> None:
        self._file, self._names = file, names
        if not isinstance(entry.value, dict):
            raise wrong(entry, file, "it must be a mapping", "sweep: {type: grid, parameters: {concurrency: [1, 2, 4]}}")
        keys: dict[str, Entry] = {}
        for key, below in entry.value.items():
            if snake(key) in keys:
                raise wrong(below, file, f"the same as {where(keys[snake(key)], file)}", "keep one of them")
            keys[snake(key)] = below
        kind = keys.pop("type", None)
        if kind is None or kind.value is None:
            raise wrong(entry, file, "it has no type", "write type: grid, zip, scenarios, or the name of another planner")
        self._entries: dict[str, list[Entry]] = {}
        found = [key for key in SPACE if key in keys and keys[key].value not in (None, {}, [])]
        if len(found) > 1:
            first, second = (keys[key] for key in found[:2])
            raise wrong(second, file, f"a sweep has {found[0]} or {found[1]}", f"{where(first, file)} is the other: drop one")
        dimensions = [*self._parameters(keys.get("parameters")), *self._dimensions(keys.get("dimensions"))]
        scenarios = tuple(self._scenarios(keys.get("runs")))
        settings = {key: below for key, below in keys.items() if key not in (*SPACE, *option_keys)}
        if not found and not settings:
            raise wrong(entry, file, "it has no cells", f"add one of {', '.join(SPACE)}: docs/config.md has examples")
        self.section = SweepSection(
            planner=snake(str(kind.plain)), typed=where(entry, file), dimensions=_keyed(dimensions), scenarios=scenarios,
            settings={key: snaked(below.plain) for key, below in settings.items()},
            places={key: where(below, file) for key, below in settings.items()},
        )  # fmt: skip

    def _parameters(self, entry: Entry | None) -> Iterator[Dimension]:
        """Lists by path, in the order of the paths."""
        if entry is None or entry.value is None:
            return
        if not isinstance(entry.value, dict):
            raise wrong(entry, self._file, "it must be a mapping, of lists by path", "parameters: {concurrency: [1, 2, 4]}")
        dimensions = []
        for path, below in entry.value.items():
            if not isinstance(below.value, list) or not below.value:
                raise wrong(below, self._file, "it must be a list of the values to try", f"{path}: [1, 2, 4]")
            dimensions.append(Dimension(self._path(path, below), "", tuple(below.plain)))
        yield from sorted(dimensions, key=lambda dimension: dimension.path)

    def _dimensions(self, entry: Entry | None) -> Iterator[Dimension]:
        """Ranges, choices and lists, in their order."""
        if entry is None or entry.value is None:
            return
        if not isinstance(entry.value, list):
            raise wrong(entry, self._file, "it must be a list", "dimensions: [{path: rate, lo: 1, hi: 50}]")
        for one in entry.value:
            keys = {snake(key): below for key, below in one.value.items()} if isinstance(one.value, dict) else {}
            self._refuse_unknown(one, keys)
            path = self._path(str(keys["path"].plain), keys["path"])
            if "choices" in keys or "values" in keys:
                name = "choices" if "choices" in keys else "values"
                if not isinstance(keys[name].value, list) or not keys[name].value or {"lo", "hi", "scale", "kind"} & set(keys):
                    alone = ", and no range beside it" if isinstance(keys[name].value, list) else ""
                    raise wrong(keys[name], self._file, f"it must be a list of values{alone}")
                values = tuple(keys[name].plain)
                yield Dimension(path, "", choices=values) if name == "choices" else Dimension(path, "", values)
            else:
                yield self._range(path, one, keys)

    def _range(self, path: str, one: Entry, keys: dict[str, Entry]) -> Dimension:
        if "lo" not in keys or "hi" not in keys:
            raise wrong(one, self._file, "it has neither a range nor choices", "write lo and hi, or choices: […]")
        low, high = (self._number(keys[key]) for key in ("lo", "hi"))
        scale, kind = (str(keys[key].plain) if key in keys else usual for key, usual in (("scale", "linear"), ("kind", "real")))
        for key, value, possible in (("scale", scale, ("linear", "log")), ("kind", kind, ("real", "int"))):
            if value not in possible:
                raise wrong(keys[key], self._file, f"{value!r} is not {' or '.join(possible)}")
        if low >= high or (scale == "log" and low <= 0):
            why = "lo must be less than hi" if low >= high else "a range on the scale log begins above 0"
            raise wrong(keys["lo"], self._file, f"{low:g}: {why}")
        return Dimension(path, "", low=low, high=high, scale=scale, kind=kind)

    def _refuse_unknown(self, one: Entry, keys: dict[str, Entry]) -> None:
        if "path" not in keys:
            hint = "each dimension is {path: …, lo: …, hi: …} or {path: …, choices: […]}"
            raise wrong(one, self._file, "it has no path", hint)
        for key, below in keys.items():
            if key not in _OF_A_DIMENSION:
                raise wrong(below, self._file, "there is no such key", f"known here: {', '.join(_OF_A_DIMENSION)}")

    def _number(self, entry: Entry) -> float:
        try:
            return float(str(entry.plain))
        except ValueError as error:
            raise wrong(entry, self._file, f"{entry.plain!r} is not a number") from error

    def _scenarios(self, entry: Entry | None) -> Iterator[Scenario]:
        """Each run's values by place."""
        if entry is None or entry.value is None:
            return
        if not isinstance(entry.value, list):
            raise wrong(entry, self._file, "it must be a list", "runs: [{name: small, benchmark: {…}}]")
        seen: dict[str, Entry] = {}
        for one in entry.value:
            keys = {snake(key): below for key, below in one.value.items()} if isinstance(one.value, dict) else {}
            if (name := keys.pop("name", None)) is None or isinstance(name.value, dict | list):
                raise wrong(one, self._file, "it has no name", "each run is {name: …, benchmark: {…}}")
            word = str(name.plain)
            if not _NAME.fullmatch(word):
                raise wrong(name, self._file, f"{word!r} can't be the name of a directory", "use letters, digits, . _ + and -")
            if word.lower() in seen:
                why = f"{word} is also the name of {where(seen[word.lower()], self._file)}"
                raise wrong(name, self._file, why, "rename one")
            seen[word.lower()] = name
            yield Scenario(word, dict(self._values(word, keys)))

    def _values(self, name: str, keys: dict[str, Entry]) -> Iterator[tuple[str, Setting]]:
        for key, below in keys.items():
            if key not in _SECTIONS:
                known = f"what changes stands below benchmark: {{{key}: …}}"
                raise wrong(below, self._file, "there is no such key", f"known here: name, {', '.join(_SECTIONS)}", known)
            if below.value is None:
                continue
            if key == "variables" and not isinstance(below.value, dict):
                raise wrong(below, self._file, "it must be a mapping, of values by name")
            inside = {f"{key}.{word}": one for word, one in below.value.items()} if key == "variables" else dict(
                leaves(shaped(below, self._file, self._names)))  # fmt: skip
            for place, one in inside.items():
                self._entries.setdefault(place, []).append(one)
                yield place, one.plain

    def _path(self, path: str, entry: Entry) -> str:
        place = place_of(path, self._names)
        if not all(place.split(".")) or not path.strip():
            raise wrong(entry, self._file, f"{path!r} is no path", "keys between dots, below benchmark: dataset.prompts.isl")
        if place in self._entries:
            raise wrong(entry, self._file, f"the same as {where(self._entries[place][0], self._file)}", "keep one of them")
        self._entries[place] = [entry]
        return place

    def entry(self, path: str, value: Setting) -> Entry:
        """A cell's value as an entry with the place that it has in the file."""
        known = self._entries.get(path, [])
        inside = [each for one in known for each in (one.value if isinstance(one.value, list) else [])]
        at = next((each for each in (*inside, *known) if each.plain == value), known[0] if known else Entry(path, 0, None))
        return made(at.path, at.line, value)


def _keyed(dimensions: list[Dimension]) -> tuple[Dimension, ...]:
    """With their keys: the last word of the path, or the whole where two have the same."""
    last = [each.path.rpartition(".")[2] for each in dimensions]
    return tuple(
        structs.replace(each, key=each.path if last.count(word) > 1 else word)
        for each, word in zip(dimensions, last, strict=True)
    )


__all__ = ["SPACE", "Sweep"]
