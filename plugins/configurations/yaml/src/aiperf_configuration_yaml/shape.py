"""One shape for all ways to write a file: each phase by its kind, one data set, keys in snake_case at the top.

Entries keep the path and line that they have in the file.
"""

from __future__ import annotations

from collections.abc import Mapping

from aiperf import ConfigError

from aiperf_configuration_yaml.entries import Entry
from aiperf_configuration_yaml.names import KINDS, SAME, snake


class Names:
    """The names that a file gives its phases and its data set; both are used in paths.

    phases: the kind by name.  dataset: None where it has none.
    """

    def __init__(self) -> None:
        self.phases: dict[str, str] = {kind: kind for kind in KINDS}
        self.dataset: str | None = None


def shaped(benchmark: Entry, file: str, names: Names) -> Entry:
    """What stands below ``benchmark``, in its one shape.  *names* takes the names, or tells the kinds of phases without more.

    Raises:
        ConfigError: It is no mapping, a key stands there twice, or it has several data sets or phases of a kind.
    """
    if not isinstance(benchmark.value, dict):
        raise wrong(benchmark, file, "it must be a mapping")
    parts: dict[str, Entry] = {}
    for key, entry in benchmark.value.items():
        place = snake(key)
        place = SAME.get(place, place)
        found = _phases(entry, file, names) if place == "phases" else {place: entry}
        for name, below in found.items():
            if name in parts:
                raise wrong(below, file, f"the same as {where(parts[name], file)}", "keep one of them")
            parts[name] = below
    if "dataset" in parts:
        parts["dataset"] = _dataset(parts["dataset"], file, names)
    for place in ("endpoint", "dataset"):
        if place in parts and isinstance(parts[place].value, dict):
            parts[place] = _moved(place, parts[place], file)
    return Entry(benchmark.path, benchmark.line, parts)


def _phases(entry: Entry, file: str, names: Names) -> dict[str, Entry]:
    """One profiling phase, and at most one warmup before it, by kind."""
    found: dict[str, Entry] = {}
    for one in entry.value if isinstance(entry.value, list) else [entry]:
        kind = _kind(one, names)
        if kind in found or (kind == KINDS[0] and KINDS[1] in found):
            why = "a run has one profiling phase, and at most one warmup before it"
            raise wrong(one, file, why, "put the others into files, or into a sweep of type scenarios")
        found[kind] = one
        if (name := _word(one, "name")) is not None:
            names.phases[name] = kind
    return found


def _kind(entry: Entry, names: Names) -> str:
    """The kind of a phase in a list: profiling, unless a key or a name that is known makes it the warmup."""
    said, excluded, name = (_word(entry, key) for key in ("kind", "exclude_from_results", "name"))
    if said is None and excluded is None and name is not None and "type" not in _keys(entry):
        return names.phases.get(name, KINDS[1])
    warmup = said == KINDS[0] or (said is None and str(excluded).lower() == "true")
    return KINDS[0] if warmup else KINDS[1]


def _dataset(entry: Entry, file: str, names: Names) -> Entry:
    """The one data set: alone, in a list, or below its name."""
    if isinstance(entry.value, list):
        if len(entry.value) != 1:
            raise wrong(entry, file, f"it has {len(entry.value)} data sets; a run uses one")
        entry = entry.value[0]
    elif isinstance(entry.value, dict) and len(entry.value) == 1:
        name, below = next(iter(entry.value.items()))
        if isinstance(below.value, dict) and "type" in _keys(below) and entry.path.rpartition(".")[2] == "datasets":
            names.dataset = name
            return Entry(below.path, below.line, below.value)
    names.dataset = _word(entry, "name")
    return entry


def _moved(place: str, entry: Entry, file: str) -> Entry:
    """A section whose synonyms stand at the places that they stand for."""
    below: dict[str, Entry] = {}
    moved: list[tuple[list[str], Entry]] = []
    for key, each in entry.value.items():
        name = f"{place}.{snake(key)}"
        if name in SAME:
            moved.append((SAME[name].split(".")[1:], each))
        else:
            below[key] = each
    for words, each in moved:
        holder = below
        for word in words[:-1]:
            name = next((key for key in holder if snake(key) == word), word)
            inside = holder.get(name)
            if inside is not None and not isinstance(inside.value, dict):
                raise wrong(inside, file, "it must be a mapping")
            deeper: dict[str, Entry] = {} if inside is None else dict(inside.value)
            holder[name] = Entry(entry.path if inside is None else inside.path, each.line, deeper)
            holder = deeper
        if (known := next((key for key in holder if snake(key) == words[-1]), None)) is not None:
            first, second = sorted((each, holder[known]), key=lambda one: one.line)
            raise wrong(second, file, f"the same as {where(first, file)}", "keep one of them")
        holder[words[-1]] = each
    return Entry(entry.path, entry.line, below)


def _keys(entry: Entry) -> Mapping[str, Entry]:
    return {snake(key): below for key, below in entry.value.items()} if isinstance(entry.value, dict) else {}


def _word(entry: Entry, key: str) -> str | None:
    found = _keys(entry).get(key)
    return None if found is None or isinstance(found.value, dict | list) else str(found.value)


def where(entry: Entry, file: str) -> str:
    """The place of an entry, for messages."""
    return f"{entry.path} ({file}:{entry.line})" if entry.line else f"{entry.path} ({file})"


class WrongEntryError(ConfigError):
    """What stands in the file can't be meant."""


def wrong(entry: Entry, file: str, sentence: str, *hints: str) -> WrongEntryError:
    return WrongEntryError(f"{where(entry, file)}: {sentence}", *hints)
