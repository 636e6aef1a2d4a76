"""The values of a cell in the place of those of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aiperf_configuration_yaml.entries import Entry
from aiperf_configuration_yaml.names import ALIASES, KINDS, SAME, SHORT, snake
from aiperf_configuration_yaml.shape import Names

_VARIABLES = "variables"
_ALONE = ("median", "peaks", "points", "value")
"""Keys of distributions that replace another one as a whole: what is merged would be neither."""
_WHOLE = ("endpoint.extra", "endpoint.headers", "slos", "plugins", "metrics")
"""Places below which keys are names of the user's."""
_LABELS = ("warmup.name", "profiling.name", "dataset.name")
"""Names say which part is meant."""


def place_of(path: str, names: Names) -> str:
    """The place of a path: ``profiling.rate`` of ``rate`` and ``phases.profiling.rate``; ``variables.x`` stays.

    The second word of ``phases.`` and ``datasets.`` is a name in the file, the kind of a phase, or ``default``.
    """
    words = [snake(word) for word in path.removeprefix("benchmark.").split(".")]
    if words[0] == _VARIABLES:
        return path
    if len(words) == 1 and words[0] in ALIASES:
        return f"{KINDS[1]}.{words[0]}"
    if words[0] == "phases":
        kinds = {snake(name): kind for name, kind in names.phases.items()}
        words = [kinds.get(words[1], KINDS[1]), *words[2:]] if len(words) > 1 and words[1] in (*kinds, "default") else words
        words = words[1:] if len(words) > 1 and words[0] == "phases" and words[1] in KINDS else words
    elif words[0] in ("dataset", "datasets") and len(words) > 1:
        known = {"default", "0", snake(names.dataset or "default")}
        words = ["dataset", *words[2 if words[0] == "datasets" and words[1] in known else 1 :]]
    for end in range(1, len(words) + 1):
        place = ".".join(words[:end])
        if place in SAME:
            words[:end] = SAME[place].split(".")
            break
    return ".".join(words)


def replaced(entry: Entry | None, words: Sequence[str], value: Entry, place: str = "") -> Entry:
    """The entry with *value* at the place *words* below it, or merged with what is there."""
    if not words:
        return value if entry is None else merged(entry, value)
    below = dict(entry.value) if entry is not None and isinstance(entry.value, dict) else {}
    if entry is not None and not isinstance(entry.value, dict) and entry.value is not None:
        below = {_first_key(place, words[0]): entry}
    key = next((each for each in below if snake(each) == words[0]), words[0])
    inner = f"{place}.{words[0]}" if place else words[0]
    below[key] = replaced(below.get(key), words[1:], value, inner)
    return Entry(value.path, value.line, below) if entry is None else Entry(entry.path, entry.line, below)


def merged(entry: Entry, value: Entry) -> Entry:
    """The value, or both where both are mappings; another distribution replaces one as a whole."""
    if not isinstance(entry.value, dict) or not isinstance(value.value, dict):
        return value
    keys, new = ({snake(key) for key in each.value} for each in (entry, value))
    if any((key in keys) != (key in new) for key in _ALONE) and (keys | new) & {"mean", *_ALONE}:
        return value
    below = dict(entry.value)
    for key, each in value.value.items():
        known = next((name for name in below if snake(name) == snake(key)), key)
        below[known] = merged(below[known], each) if known in below else each
    return Entry(entry.path, entry.line, below)


def leaves(entry: Entry, place: str = "") -> Iterator[tuple[str, Entry]]:
    """The values of a mapping by their places, as they are replaced: a distribution is one, and so is a mapping of names."""
    keys: Mapping[str, Entry] = entry.value if isinstance(entry.value, dict) else {}
    if not keys or place in _WHOLE or {snake(key) for key in keys} & {"mean", *_ALONE}:
        yield place, entry
        return
    for key, below in keys.items():
        name = f"{place}.{snake(key)}" if place else snake(key)
        if name in _LABELS:
            continue
        yield from leaves(below, SAME.get(name, name))


def _first_key(place: str, word: str) -> str:
    """The key that a scalar stands for, where a mapping with *word* is wanted."""
    if place in SHORT:
        return SHORT[place].rpartition(".")[2]
    return "duration" if place.endswith("ramp") else "value" if word == "value" else "mean"

