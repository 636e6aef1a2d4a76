"""A run's options from a YAML file: a value counts like its flag on the command line, and the command line wins.

The form is the reference's configuration file 2.0: ``benchmark`` with models, endpoint, dataset, phases and so on, keys in
camelCase or snake_case.  Each option declares its place (:attr:`OptionSpec.place`).  A plugin's options may also stand under
its name: ``plugins: {endpoints:parrot: {greeting: Ahoy}}``.  ``sweep`` makes several cells of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from aiperf import ConfigError, UsageError
from aiperf.sdk.configuration import Configuration, Option, OptionValue, SweepSection
from aiperf.sdk.study import Setting

from aiperf_configuration_yaml.computing import Variables, made
from aiperf_configuration_yaml.entries import Entry, read
from aiperf_configuration_yaml.names import snake
from aiperf_configuration_yaml.overlay import replaced
from aiperf_configuration_yaml.places import PlaceTable
from aiperf_configuration_yaml.reading import Reading, pins
from aiperf_configuration_yaml.shape import Names, WrongEntryError, shaped, where, wrong
from aiperf_configuration_yaml.sweeps import SPACE, Sweep
from aiperf_configuration_yaml.values import FileValues, texts

_SEEN = "their values stand in files and in names"
_BEFORE_COMPUTING = ("benchmark", "variables")


class Yaml(Configuration):
    """A YAML file.  A subclass may make the same entries from another syntax.

    Raises:
        ConfigError: The file can't be read, isn't YAML, or isn't a mapping.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._root = self.entries(path)
        if not isinstance(self._root.value, dict):
            raise ConfigError(f"{path} holds no mapping", "it begins with benchmark:, and what the run is made of below")
        self._names = Names()
        self._swept: Sweep | None = None
        self._said: set[str] = set()
        self._table: tuple[Sequence[Option], PlaceTable] | None = None

    def entries(self, path: Path) -> Entry:
        """The root of the file."""
        return read(path)

    def plugins(self) -> dict[str, list[str]]:
        sections = {snake(key): entry for key, entry in self._root.value.items()}
        chosen, off = sections.get("pins"), sections.get("disabled")
        return ({"pins": pins(chosen)} if chosen is not None else {}) | ({"disabled": texts(off)} if off is not None else {})

    def sweep(self, options: Sequence[Option] = ()) -> SweepSection | None:
        sections = self._sections()
        if (entry := sections.get("sweep")) is None or entry.value in (None, {}):
            return None
        if (benchmark := sections.get("benchmark")) is not None:
            shaped(benchmark, self._name, self._names)
        keys = {option.spec.place.partition(".")[2] for option in options if option.spec.place.startswith("sweep.")}
        computed = Variables(sections.get("variables"), self._name).computed(entry)
        self._swept = Sweep(computed, self._name, self._names, frozenset(keys))
        return self._swept.section

    def values(
        self, options: Sequence[Option], parameters: Mapping[str, Setting] | None = None
    ) -> list[OptionValue | UsageError]:
        file = FileValues(self._name, self._said)
        try:
            self._read(file, options, parameters or {})
        except WrongEntryError as error:
            file.errors.append(UsageError(error.message, *error.hints))
        return [*file.given.values(), *file.errors]

    def _read(self, file: FileValues, options: Sequence[Option], parameters: Mapping[str, Setting]) -> None:
        sections = self._sections()
        benchmark = sections.get("benchmark")
        whole = None if benchmark is None else shaped(benchmark, self._name, self._names)
        own = sections.get("variables")
        for path, value in parameters.items():
            entry = made(path, 0, value) if self._swept is None else self._swept.entry(path, value)
            first, *words = path.split(".")
            if first == "variables":
                own = replaced(own, words, entry)
            else:
                whole = replaced(whole, (first, *words), entry)
        variables = Variables(own, self._name)
        computed = {
            key: entry if key in _BEFORE_COMPUTING else variables.computed(_without_space(entry) if key == "sweep" else entry)
            for key, entry in sections.items()
        }  # fmt: skip
        reading = Reading(file, self._table_of(options), variables.plain())
        reading.whole(computed, None if whole is None else variables.computed(whole), self._name)
        for path in parameters:
            section, _, name = path.partition(".")
            if section == "variables" and (secret := file.secrets.get(name.partition(".")[0])):
                why = f"{path} is a part of {secret}, a secret, and can't differ between cells: {_SEEN}"
                hint = "give it to all runs alike, and make a study for each value"
                file.errors.append(UsageError(f"{self._name}: {why}", hint))

    def _table_of(self, options: Sequence[Option]) -> PlaceTable:
        """The options by place; made once for all cells."""
        if self._table is None or self._table[0] is not options:
            self._table = options, PlaceTable(options)
        return self._table[1]

    def _sections(self) -> dict[str, Entry]:
        sections: dict[str, Entry] = {}
        for key, entry in self._root.value.items():
            if snake(key) in sections:
                raise wrong(entry, self._name, f"the same as {where(sections[snake(key)], self._name)}", "keep one of them")
            sections[snake(key)] = entry
        return sections


def _without_space(sweep: Entry) -> Entry:
    """The section without what makes cells, which :class:`Sweep` reads."""
    if not isinstance(sweep.value, dict):
        return sweep
    return Entry(sweep.path, sweep.line, {key: below for key, below in sweep.value.items() if snake(key) not in SPACE})


__all__ = ["Yaml"]
