"""Lists on options, and variants, as the space of a sweep."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from aiperf.environment import duration_s
from aiperf.errors import ConfigError, UsageError
from aiperf.sdk.configuration import Option, OptionValue
from aiperf.sdk.descriptor import OptionSpec, canonical
from aiperf.sdk.study import Dimension, Scenario, Setting

_INT = re.compile(r"[+-]?\d{1,15}", re.ASCII)
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_NAMED = re.compile(r"\s*([^=,:]+?)\s*:\s*(.*)", re.DOTALL)


def is_list(value: OptionValue) -> bool:
    """Whether the option has several values, of which each has a run of its own."""
    return value.option.spec.cells and len(value.values) == 1 and "," in value.values[0]


def path_of(option: Option) -> str:
    """The path by which parameters of a cell know the option."""
    target = option.targets[0]
    return option.spec.place or f"{target.owner or 'options'}.{target.field}"


def dimension_of(value: OptionValue) -> Dimension:
    """The dimension of a list; its key is the path's last segment.

    Raises:
        UsageError: A value is empty, or stands twice, or brackets are around the list.
    """
    text, path = value.values[0], path_of(value.option)
    if text.lstrip()[:1] == "[":
        raise UsageError(f"{value.typed}: {text!r} has brackets", f"write {value.typed} {text.strip(' []')}")
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise UsageError(f"{value.typed}: {text!r} has an empty value", f"write {value.typed} {','.join(filter(None, parts))}")
    values = [setting(part, value.option.spec) for part in parts]
    if twice := [part for part, count in Counter(map(str, values)).items() if count > 1]:
        hint = "repeat runs with --num-profile-runs"
        raise UsageError(f"{value.typed}: {twice[0]} stands twice in {text!r}, and two runs can't have one name", hint)
    return Dimension(path, path.rpartition(".")[2], tuple(values))


def distinct(dimensions: Sequence[Dimension]) -> tuple[Dimension, ...]:
    """The dimensions; where two have one key, the key is the whole path."""
    counts = Counter(each.key for each in dimensions)
    return tuple(replace(each, key=each.path) if counts[each.key] > 1 else each for each in dimensions)


def setting(text: str, spec: OptionSpec | None = None) -> Setting:
    """A typed word as a value: a number where it is one, seconds where the option takes a time."""
    if spec is not None and spec.metavar == "SECONDS" and (seconds := _seconds(text)) is not None:
        return seconds
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return int(number) if number.is_integer() and abs(number) < 1e15 else number
    return {"true": True, "false": False}.get(text.lower(), text)


def _seconds(text: str) -> Setting:
    seconds = duration_s(text)
    return int(seconds) if seconds is not None and seconds.is_integer() else seconds


def option_value(option: Option, value: Setting, typed: str) -> OptionValue:
    """The option with the value of a cell."""
    if option.spec.arity == "none":
        return OptionValue(option, typed, [], str(value).lower() in ("true", "1", "yes", "on"))
    if isinstance(value, list):
        return OptionValue(option, typed, [_text(each) for each in value])
    return OptionValue(option, typed, [_text(value)])


def _text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def scenarios_of(value: OptionValue, options: Iterable[Option], *, with_file: bool) -> tuple[Scenario, ...]:
    """The named cells of ``--variant``.

    *with_file*: a configuration file is given, so a key may be the path of anything in it.

    Raises:
        UsageError: There are fewer than two, two have one name, or one can't be read.
    """
    known = _known(options)
    texts = enumerate(value.values, 1)
    found = [_scenario(text, number, value.typed, known, with_file=with_file) for number, text in texts]
    if len(found) < 2:
        hint = f"repeat {value.typed} for each cell"
        raise UsageError(f"{value.typed} is given once, and a sweep has at least two cells", hint)
    if twice := [name for name, count in Counter(each.name for each in found).items() if count > 1]:
        raise UsageError(f"{value.typed}: two cells are called {twice[0]!r}", "give each another name")
    return tuple(found)


def _known(options: Iterable[Option]) -> Mapping[str, list[Option]]:
    """The options by all words for them: flags without dashes, places, and the places' last segments."""
    known: dict[str, list[Option]] = {}
    for option in options:
        words = {canonical(flag.lstrip("-")) for flag in option.spec.flags if flag.startswith("--")}
        for word in words | {canonical(option.spec.place)} - {""}:
            known.setdefault(word, []).append(option)
    for option in options:
        word = canonical(option.spec.place.rpartition(".")[2])
        if option.spec.cells and word and word not in known:
            known[word] = [option]
    return known


def _scenario(text: str, number: int, typed: str, known: Mapping[str, list[Option]], *, with_file: bool) -> Scenario:
    name, rest = f"variant_{number}", text
    if match := _NAMED.fullmatch(text):
        name, rest = match[1], match[2]
    parameters: dict[str, Setting] = {}
    key = ""
    for piece in rest.split(","):
        word, equals, value = piece.partition("=")
        if not equals and key and piece.strip():  # a comma in a value
            parameters[key] = f"{parameters[key]},{piece}"
            continue
        if not equals or not word.strip():
            form = f'write {typed} "{name}: concurrency=4, isl=128"'
            raise UsageError(f"{typed}: {text!r} has no KEY=VALUE at {piece.strip()!r}", form)
        found = known.get(canonical(word.strip().lstrip("-")), [])
        if not found and not with_file:
            from difflib import get_close_matches

            near = get_close_matches(canonical(word), known, 2, 0.7)
            hints = [f"did you mean {' or '.join(near)}?"] if near else ["keys are options without their dashes"]
            raise UsageError(f"{typed}: there is no option {word.strip()!r}", *hints)
        key = path_of(found[0]) if found else word.strip()
        parameters[key] = setting(value.strip(), found[0].spec if found else None)
    return Scenario(name, parameters)


def refuse_shared_names(names: Iterable[str]) -> None:
    """
    Raises:
        ConfigError: Two cells have one name.
    """
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ConfigError(f"two cells would be called {twice[0]!r}, and each has a directory of its name", "leave one out")
