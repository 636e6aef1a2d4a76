"""The expressions of a file, computed over its ``variables``."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from aiperf_configuration_yaml.entries import Entry
from aiperf_configuration_yaml.names import snake
from aiperf_configuration_yaml.shape import wrong

LITERAL = ("benchmark.endpoint.template.body", "benchmark.artifacts.user_files")
"""Places of texts whose expressions are computed with values of the run, by whoever uses them."""


class Variables:
    """The values of ``variables``, which may be made of each other.

    Raises:
        ConfigError: It is no mapping, or of :meth:`computed`.
    """

    def __init__(self, entry: Entry | None, file: str) -> None:
        self._file = file
        self._entries: dict[str, Entry] = {}
        self._values: dict[str, Entry] = {}
        self._under_way: list[str] = []
        if entry is not None and entry.value is not None:
            if not isinstance(entry.value, dict):
                raise wrong(entry, file, "it must be a mapping, of values by name")
            for name, below in entry.value.items():
                if not name.isidentifier():
                    raise wrong(below, file, f"{name!r} can't be the name of a variable", "use letters, digits and _")
            self._entries = entry.value

    def computed(self, entry: Entry) -> Entry:
        """The entry with its expressions computed, and those of all entries below it.

        Raises:
            ConfigError: One can't be computed.
        """
        if snake(entry.path) in LITERAL:
            return entry
        if isinstance(entry.value, dict):
            return Entry(entry.path, entry.line, {key: self.computed(below) for key, below in entry.value.items()})
        if isinstance(entry.value, list):
            return Entry(entry.path, entry.line, [self.computed(below) for below in entry.value])
        if not isinstance(entry.value, str) or ("{{" not in entry.value and "{%" not in entry.value):
            return entry
        return self._computed(entry)

    def plain(self) -> dict[str, Any]:
        """All values by name."""
        return {name: self._named(name).plain for name in self._entries}

    def _computed(self, entry: Entry) -> Entry:
        from aiperf_rendering.expressions import BadExpression, Expressions  # Jinja2 only where a file has expressions

        used: set[str] = set()

        def value_of(name: str) -> Any:
            found = self._named(name)
            used.update((name, *found.all_variables))
            return found.plain

        try:
            value = Expressions(value_of, tuple(self._entries)).value(entry.value)
        except BadExpression as error:
            braces = "{{ '{{' }} stands for two braces"
            hint = braces if "variable" in str(error) else "docs/config.md says what can be computed"
            raise wrong(entry, self._file, str(error), hint) from error
        return structs.replace(made(entry.path, entry.line, value), variables=frozenset(used))

    def _named(self, name: str) -> Entry:
        if name not in self._values:
            entry = self._entries[name]
            if name in self._under_way:
                raise wrong(entry, self._file, f"it is made of itself: {' → '.join([*self._under_way, name])}")
            self._under_way.append(name)
            self._values[name] = self.computed(entry)
            self._under_way.pop()
        return self._values[name]


def made(path: str, line: int, value: Any) -> Entry:
    """A plain value as an entry, with all below it on the same line."""
    if isinstance(value, dict):
        return Entry(path, line, {str(key): made(f"{path}.{key}", line, below) for key, below in value.items()})
    if isinstance(value, list | tuple):
        return Entry(path, line, [made(f"{path}[{n}]", line, below) for n, below in enumerate(value)])
    return Entry(path, line, value)
