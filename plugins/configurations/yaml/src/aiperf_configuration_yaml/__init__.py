"""A run's options from a YAML file: a value counts like its flag on the command line, and the command line wins.

The form is the reference's configuration file 2.0: ``benchmark`` with models, endpoint, dataset, phases and so on, keys in
camelCase or snake_case.  Each option declares its place (:attr:`OptionSpec.place`).  A plugin's options may also stand under
its name: ``plugins: {endpoints:parrot: {greeting: Ahoy}}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from aiperf import ConfigError, UsageError
from aiperf.sdk.configuration import Configuration, Option, OptionValue
from aiperf.sdk.descriptor import OptionSpec, canonical
from aiperf.sdk.study import Setting

from aiperf_configuration_yaml.entries import Entry, read
from aiperf_configuration_yaml.records import written

_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_TOP = ("schema_version", "random_seed", "pins", "disabled", "benchmark")
_SAME = {
    "model": "models", "endpoint.url": "endpoint.urls", "datasets": "dataset", "dataset.isl": "dataset.prompts.isl",
    "dataset.osl": "dataset.prompts.osl",
}
"""Synonyms of places."""
_SHORT = {"models": "models.items", "tokenizer": "tokenizer.name", "profiling.rate_series": "profiling.rate_series.path"}
"""The place of a scalar where a mapping may stand; a distribution's is its mean, a ramp's its duration."""
_ABOVE = ("sweep", "multi_run", "plot", "variables", "no_sweep_table")
"""The reference's sections beside ``benchmark`` without a counterpart here."""
_WITHIN = ("gpu_telemetry", "server_metrics", "network_latency", "otel", "mlflow", "wandb")
"""The reference's sections within ``benchmark`` without a counterpart here; they may stand switched off."""
_PLAIN, _TYPES = ("type", "value", "mean", "stddev", "distribution"), ("fixed", "normal")
"""The keys and types of distributions that options have one by one."""
_KINDS = ("warmup", "profiling")
_PHASES = ("concurrency", "poisson", "gamma", "constant", "user_centric", "fixed_schedule")
_POOLS = "random_pool"
_OF_A_RATE = ("rate", "rate_ramp", "rate_series", "smoothness")


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

    def entries(self, path: Path) -> Entry:
        """The root of the file."""
        return read(path)

    def plugins(self) -> dict[str, list[str]]:
        sections = {_snake(key): entry for key, entry in self._root.value.items()}
        pins, off = sections.get("pins"), sections.get("disabled")
        return ({"pins": _pins(pins)} if pins is not None else {}) | ({"disabled": _texts(off)} if off is not None else {})

    def values(
        self, options: Sequence[Option], parameters: Mapping[str, Setting] | None = None
    ) -> list[OptionValue | UsageError]:
        if parameters:
            raise ConfigError(f"{self._name}: its values can't be replaced", "one file is one run")
        file = _FileValues(self._name)
        _Reading(file, options).top(self._root, self._name)
        return [*file.given.values(), *file.errors]


class _FileValues:
    """Options set by a file, and the file's errors."""

    def __init__(self, name: str) -> None:
        self.given: dict[OptionSpec, OptionValue] = {}
        self.errors: list[UsageError] = []
        self.name = name

    def named(self, entry: Entry, place: str | None = None) -> dict[str, Entry]:
        """A mapping's entries by key in snake_case, after *place* if it isn't None; another value is refused and gives none."""
        if not isinstance(entry.value, dict):
            self.wrong(entry, "it must be a mapping")
            return {}
        entries: dict[str, Entry] = {}
        for key, below in entry.value.items():
            name = f"{place}.{_snake(key)}" if place else _snake(key)
            name = name if place is None else _SAME.get(name, name)
            if name in entries:
                self.wrong(below, f"the same as {self.where(entries[name])}", "keep one of them")
            else:
                entries[name] = below
        return entries

    def take(self, option: Option, entry: Entry) -> None:
        spec = option.spec
        if spec in self.given:
            self.wrong(entry, f"the same as {self.given[spec].typed}", "keep one of them")
        elif spec.arity == "none":
            on = self.on(entry)
            if on or (on is not None and spec.negative):
                self.given[spec] = OptionValue(option, self.where(entry), [], on)
        elif spec.arity == "one" and isinstance(entry.value, list | dict):
            self.given[spec] = OptionValue(option, self.where(entry), [json.dumps(_snaked(entry.plain))])
        else:
            values = _seconds(_texts(entry)) if spec.metavar == "SECONDS" else _texts(entry, pairs=spec.metavar == "TAG:NUMBER")
            self.given[spec] = OptionValue(option, self.where(entry), values)

    def mark(self, option: Option, entry: Entry) -> None:
        """Set a flag that an entry implies."""
        self.given[option.spec] = OptionValue(option, self.where(entry), [], True)

    def on(self, entry: Entry) -> bool | None:
        word = {"true": True, "false": False}.get(str(entry.plain).lower())
        if word is None:
            self.wrong(entry, f"{entry.plain!r} is not true or false")
        return word

    def where(self, entry: Entry) -> str:
        return f"{entry.path} ({self.name}:{entry.line})"

    def wrong(self, entry: Entry, sentence: str, *hints: str) -> None:
        self.errors.append(UsageError(f"{self.where(entry)}: {sentence}", *hints))

    def unknown(self, entry: Entry, key: str, known: Iterable[str], why: str = "there is no such key") -> None:
        names = list(known)
        near = get_close_matches(_snake(key), names, 2, 0.7)
        known_here = [f"known here: {', '.join(names)}"] if names else []
        self.wrong(entry, why, *([f"did you mean {' or '.join(near)}?"] if near else known_here))


class _Reading:
    """The options of a file's values."""

    def __init__(self, file: _FileValues, options: Iterable[Option]) -> None:
        self._file = file
        self._places: dict[str, Option] = {}
        self._owned: dict[str, dict[str, Option]] = {}
        for option in options:
            if option.spec.place:
                self._places[option.spec.place] = option
            for target in option.targets:
                if target.owner:
                    self._owned.setdefault(target.owner, {})[target.field] = option
        self._special: Mapping[str, Callable[[Entry], None]] = {
            "models.items": self._models, "dataset": self._dataset, "phases": self._phases,
            "warmup": lambda entry: self._phase(entry, "warmup"), "profiling": lambda entry: self._phase(entry, "profiling"),
            "artifacts.records": self._records,
            "artifacts.raw": lambda entry: self._level("raw", entry) if self._file.on(entry) else None,
            "artifacts.summary": self._summary, "plugins": self._plugins,
        }

    def top(self, root: Entry, name: str) -> None:
        keys = self._file.named(root)
        for key, entry in keys.items():
            if key == "schema_version":
                if str(entry.value) not in ("2.0", "2"):
                    self._file.wrong(entry, f"{entry.value!r} can't be read; 2.0 can")
            elif key in ("random_seed", "disabled"):
                self._walk(key, entry)
            elif key == "pins":
                pins = [Entry(entry.path, entry.line, one) for one in _pins(entry)]
                self._file.take(self._places[key], Entry(entry.path, entry.line, pins))
            elif key in _ABOVE:
                if entry.value not in (None, False, {}, []):
                    self._file.wrong(entry, "it has no counterpart here", "one file is one run: drop it")
            elif key not in _TOP and key in self._below(""):
                self._file.wrong(entry, "it belongs below benchmark:", f"write benchmark: {{{key}: …}}")
            elif key not in _TOP:
                self._file.unknown(entry, key, _TOP)
        benchmark = keys.get("benchmark")
        if benchmark is None:
            self._file.errors.append(UsageError(f"{name}: benchmark: is missing, with what the run is made of"))
            return
        self._each(self._file.named(benchmark, ""))

    def _each(self, named: dict[str, Entry]) -> None:
        for place, entry in named.items():
            self._walk(place, entry)

    def _walk(self, place: str, entry: Entry) -> None:
        if entry.value is None:
            return
        special, option = self._special.get(place), self._places.get(place)
        if special is not None:
            special(entry)
        elif isinstance(entry.value, dict) and self._below(place):
            self._each(self._distribution(place, entry))
        elif option is not None:
            self._file.take(option, entry)
        elif place in _WITHIN:
            if not isinstance(entry.value, dict) or entry.value.get("enabled", entry).value is not False:
                self._file.wrong(entry, "it has no counterpart here", f"drop it, or switch it off: {place}: {{enabled: false}}")
        elif not isinstance(entry.value, dict) and (short := self._short(place)) in self._places:
            self._walk(short, entry)
        else:
            before, _, key = place.rpartition(".")
            self._file.unknown(entry, key, self._below(before))

    def _below(self, place: str) -> list[str]:
        """The known keys below a place."""
        known = [*self._places, *self._special, *_SAME, *_WITHIN]
        start = f"{place}." if place else ""
        return sorted({one[len(start) :].partition(".")[0] for one in known if one.startswith(start)})

    def _short(self, place: str) -> str:
        return _SHORT.get(place) or next((one for one in (f"{place}.mean", f"{place}.duration") if one in self._places), "")

    def _distribution(self, place: str, entry: Entry) -> dict[str, Entry]:
        """The keys of a distribution without its ``type`` and ``value``, which are read here.

        One of more than a mean and a spread is the value of an option of its own, where there is one.
        """
        named = self._file.named(entry, place)
        if f"{place}.mean" not in self._places:
            return named
        whole, said = self._places.get(f"{place}.distribution"), named.get(f"{place}.type")
        plain = {f"{place}.{key}" for key in _PLAIN}
        if whole is not None and (not named.keys() <= plain or (said is not None and said.plain not in _TYPES)):
            self._file.take(whole, entry)
            return {}
        kind, value = named.pop(f"{place}.type", None), named.pop(f"{place}.value", None)
        if kind is not None and kind.plain not in _TYPES:
            self._file.wrong(kind, f"{kind.plain!r} can't be drawn; fixed and normal can")
        if value is not None:
            self._walk(f"{place}.mean", value)
        return named

    # Sections with a form of their own

    def _models(self, entry: Entry) -> None:
        """A name, names, or mappings with a name; other keys of a model are refused."""
        names = []
        for one in entry.value if isinstance(entry.value, list) else [entry]:
            if not isinstance(one.value, dict):
                names.append(one)
                continue
            for key, below in self._file.named(one).items():
                if key == "name":
                    names.append(below)
                elif below.value not in (None, {}, []):
                    self._file.unknown(below, key, ["name"])
        self._file.take(self._places["models.items"], Entry(entry.path, entry.line, names))

    def _dataset(self, entry: Entry) -> None:
        if isinstance(entry.value, list):
            if len(entry.value) != 1:
                self._file.wrong(entry, f"it has {len(entry.value)} data sets; a run uses one")
                return
            entry = entry.value[0]
        named = self._file.named(entry, "dataset")
        named.pop("dataset.name", None)
        kind, records = named.pop("dataset.type", None), named.pop("dataset.records", None)
        if records is not None and "dataset.path" in named:
            self._file.wrong(records, "a data set has a path or records", "drop one of them")
        elif records is not None:
            self._inline(records, named.get("dataset.format"))
        has_path = "dataset.path" in named or records is not None
        if kind is not None and kind.plain not in ("synthetic", "file"):  # by its plugin's name
            self._file.take(self._places["dataset.format"], kind)
        elif kind is not None and (kind.plain == "file") != has_path:
            self._file.wrong(entry, "a path belongs to type: file" if has_path else "a file needs its path, or records")
        self._each(named)

    def _inline(self, records: Entry, form: Entry | None) -> None:
        if isinstance(records.value, dict) and form is not None and canonical(str(form.plain)) != _POOLS:
            self._file.wrong(records, f"lists by name are for the format {_POOLS}", f"write a list, or format: {_POOLS}")
            return
        try:
            path = written(records.plain, self._file.name)
        except ValueError as error:
            self._file.wrong(records, str(error))
            return
        self._file.take(self._places["dataset.path"], Entry(records.path, records.line, str(path)))

    def _phases(self, entry: Entry) -> None:
        """One profiling phase, and at most one warmup before it."""
        each = entry.value if isinstance(entry.value, list) else [entry]
        seen: set[str] = set()
        for one in each:
            kind = _kind(one)
            if kind in seen or (kind == "warmup" and "profiling" in seen):
                self._file.wrong(
                    one, "a run has one profiling phase, and at most one warmup before it", "put the others into files"
                )
                return
            seen.add(kind)
            self._phase(one, kind)

    def _phase(self, entry: Entry, kind: str) -> None:
        words = self._file.named(entry)
        words.pop("name", None)
        said, excluded, named = (words.pop(key, None) for key in ("kind", "exclude_from_results", "type"))
        if said is not None and said.plain != kind:
            self._file.wrong(said, f"this is the {kind}", f"kinds: {', '.join(_KINDS)}")
        if excluded is not None and self._file.on(excluded) not in (None, kind == "warmup"):
            self._file.wrong(excluded, "the warmup is left out of the results, and nothing else is")
        if named is None:
            if isinstance(entry.value, dict):
                self._file.wrong(entry, "it has no type", f"write one of {', '.join(_PHASES)}")
            return
        word = canonical(str(named.plain))
        paced = word not in ("concurrency", "user_centric", "fixed_schedule")
        for key in () if paced else _OF_A_RATE:
            if key in words and (key, word) != ("rate", "user_centric"):
                self._file.wrong(
                    words.pop(key), f"a phase of type {word} has none", f"types with a rate: {', '.join(_PHASES[1:4])}"
                )
        if kind == "warmup":
            self._file.mark(self._places[f"{kind}.alone"], entry)
            if word in ("user_centric", "fixed_schedule"):
                self._file.wrong(named, f"a warmup can't be {word}", f"write one of {', '.join(_PHASES[:4])}")
                return
        if paced:
            if close := get_close_matches(word, _PHASES, 1, 0.8) if word not in _PHASES else []:
                self._file.wrong(named, f"there is no type {word}", f"did you mean {close[0]}?")
                return
            self._file.take(self._places[f"{kind}.type"], named)
            if "rate" not in words and "rate_series" not in words:
                self._file.wrong(entry, f"a phase of type {word} needs its rate", "add rate: 10, or write type: concurrency")
        elif word == "fixed_schedule":
            self._file.mark(self._places["profiling.type (fixed_schedule)"], named)
        elif word == "concurrency" and "concurrency" not in words:
            words["concurrency"] = Entry(f"{entry.path}.concurrency", entry.line, 1)
        for key, below in words.items():
            special = f"{kind}.{key} ({word})"
            if isinstance(below.value, dict) and f"{kind}.{key}.duration" in self._places:
                self._curve(f"{kind}.{key}.duration", below)
            else:
                self._walk(special if special in self._places else f"{kind}.{key}", below)

    def _curve(self, place: str, entry: Entry) -> None:
        """A ramp's duration, and its curve, which is the same for all ramps of a run."""
        for key, below in self._file.named(entry).items():
            if key == "duration":
                self._walk(place, below)
            elif key != "strategy":
                self._file.unknown(below, key, ["duration", "strategy"])
            else:
                curve = self._places["profiling.ramp"]
                before = self._file.given.get(curve.spec)
                if before is None:
                    self._file.take(curve, below)
                elif before.values != [str(below.value)]:
                    self._file.wrong(below, f"all ramps of a run rise alike, and {before.typed} says {before.values[0]}")

    def _records(self, entry: Entry) -> None:
        if entry.value is False:
            self._level("summary", entry)
        elif _texts(entry) not in (["jsonl"], ["True"]):
            self._file.wrong(entry, "what can be written is jsonl, or false for none")

    def _level(self, level: str, entry: Entry) -> None:
        option = self._places["artifacts.level"]
        before = self._file.given.get(option.spec)
        if before is not None and before.values != [level]:
            self._file.wrong(entry, f"raw answers follow the records, which {before.typed} leaves out")
            return
        self._file.given[option.spec] = OptionValue(option, self._file.where(entry), [level])

    def _summary(self, entry: Entry) -> None:
        if _texts(entry) != ["json"]:
            self._file.wrong(
                entry, "the summary is always written: [json]", "leave an exporter out with disabled: [exporters:csv]"
            )

    def _plugins(self, entry: Entry) -> None:
        if not isinstance(entry.value, dict):
            self._file.wrong(entry, "it must be a mapping, of options by category:name and field")
            return
        for owner, fields in entry.value.items():
            known = next((one for one in self._owned if canonical(one) == canonical(owner)), None)
            if known is None:
                self._file.unknown(fields, owner, list(self._owned), "no installed plugin of that name has options")
                continue
            for field, below in self._file.named(fields).items():
                option = self._owned[known].get(field)
                if option is None:
                    self._file.unknown(below, field, list(self._owned[known]))
                elif below.value is not None:
                    self._file.take(option, below)


def _kind(entry: Entry) -> str:
    """The kind of a phase in a list: profiling, unless a key makes it the warmup."""
    words = entry.plain if isinstance(entry.value, dict) else {}
    said = {_snake(key): str(value).lower() for key, value in words.items()}
    warmup = said.get("kind") == "warmup" or ("kind" not in said and said.get("exclude_from_results") == "true")
    return _KINDS[0] if warmup else _KINDS[1]


def _pins(entry: Entry) -> list[str]:
    """``category:name=distribution`` each, of a mapping or a list of them."""
    return [f"{key}={value}" for key, value in entry.plain.items()] if isinstance(entry.value, dict) else _texts(entry)


def _texts(entry: Entry, *, pairs: bool = False) -> list[str]:
    """The value as words of a command line; a mapping is one JSON object, or *pairs* with colons."""
    if isinstance(entry.value, list):
        return [text for one in entry.value for text in _texts(one)]
    if isinstance(entry.value, dict):
        return [f"{key}:{value}" for key, value in entry.plain.items()] if pairs else [json.dumps(entry.plain)]
    return [] if entry.value is None else [str(entry.value)]


def _seconds(texts: list[str]) -> list[str]:
    """``5m`` as 300; what is no duration stays, for the option to refuse."""
    found = [(text, _DURATION.fullmatch(text.strip())) for text in texts]
    return [f"{float(match[1]) * _SECONDS[match[2]]:g}" if match else text for text, match in found]


def _snake(key: str) -> str:
    return _CAMEL.sub("_", key).lower().replace("-", "_")


def _snaked(value: Any) -> Any:
    if isinstance(value, dict):
        return {_snake(key): _snaked(below) for key, below in value.items()}
    return [_snaked(one) for one in value] if isinstance(value, list) else value
