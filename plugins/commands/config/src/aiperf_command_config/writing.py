"""A configuration file from the values of options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from aiperf.sdk.configuration import OptionValue
from aiperf.sdk.descriptor import OptionSpec
from aiperf.sdk.planner import Space

_TOP = ("random_seed", "pins", "disabled", "multi_run", "sweep", "no_sweep_table")
_ORDER = (
    "schemaVersion", "randomSeed", "variables", "multiRun", "sweep", "noSweepTable", "pins", "disabled", "benchmark", "models",
    "model", "tokenizer", "endpoint", "dataset", "warmup", "profiling", "slos", "artifacts",
)  # fmt: skip
"""Sections that stand first, in this order."""
_MARKED = re.compile(r"\$\{(?=[A-Za-z_]\w*(?::[^}]*)?\})|\{\{|\{%")
_OPENING = re.compile(r"\$\{|\{\{|\{%|\{#")
_PHASE_TYPE = re.compile(r"(.*)\.(\w+) \((\w+)\)")
_INT = re.compile(r"-?(0|[1-9]\d*)", re.ASCII)


def tree(values: Iterable[OptionValue], space: Space | None = None, planner: str = "") -> tuple[dict[str, Any], list[str]]:
    """The file of these options as plain mappings, and the flags of those that have no place in a file.

    A secret value is the variable of the environment in whose place it is to be given.
    """
    whole: dict[str, Any] = {"schemaVersion": "2.0", "benchmark": {}}
    lost = []
    warms = False
    for value in values:
        spec, owner = value.option.spec, value.option.targets[0].owner
        warms = warms or spec.place.startswith("warmup.")
        if not spec.place and not owner:
            lost.append(value.typed)
        elif not spec.place:
            _put(whole["benchmark"], ["plugins", owner, spec.field], _value(value))
        else:
            _place(whole, spec, value)
    benchmark = whole["benchmark"]
    if warms and "alone" not in benchmark.get("warmup", {}):
        benchmark["warmup"]["alone"] = False
    if "path" in benchmark.get("dataset", {}):
        benchmark["dataset"] = {"type": "file"} | benchmark["dataset"]
    if space is None or not (space.dimensions or space.scenarios):
        whole.pop("sweep", None)  # what it says is for several cells
    else:
        whole["sweep"] = {"type": planner, **_space(space)} | whole.get("sweep", {})
    return _ordered(whole), lost


def _place(whole: dict[str, Any], spec: OptionSpec, value: OptionValue) -> None:
    plain = _value(value)
    special = _PHASE_TYPE.fullmatch(spec.place)
    if special is not None:  # "profiling.rate (user_centric)": the key of a phase of that type
        phase, key, kind = special.groups()
        if spec.arity == "none":
            key, plain = ("type", kind) if value.on else (kind, False)
        else:
            _put(whole["benchmark"], [phase, "type"], kind)
        _put(whole["benchmark"], [phase, key], plain)
        return
    words = spec.place.split(".")
    if words[:2] == ["models", "items"] and isinstance(plain, list) and len(plain) == 1:
        words, plain = ["model"], plain[0]
    if spec.place == "endpoint.urls" and isinstance(plain, list) and len(plain) == 1:
        words, plain = ["endpoint", "url"], plain[0]
    _put(whole if words[0] in _TOP else whole["benchmark"], list(map(_camel, words)), plain)


def _put(holder: dict[str, Any], words: list[str], value: Any) -> None:
    for word in words[:-1]:
        below = holder.setdefault(word, {})
        holder = below
    holder[words[-1]] = value


def _value(value: OptionValue) -> Any:
    spec = value.option.spec
    if spec.secret:
        return "${" + re.sub(r"\W", "_", spec.field).upper() + "}"
    if spec.arity == "none":
        return value.on
    words = [_scalar(spec, word) for word in value.values]
    return words[0] if spec.arity == "one" else words


def _scalar(spec: OptionSpec, word: str) -> Any:
    if spec.type in ("int", "float") and _INT.fullmatch(word):
        return int(word)
    if spec.type == "float":
        try:
            number = float(word)
        except ValueError:
            return _escaped(word)
        return number if str(number) == word else _escaped(word)
    return _escaped(word)


def _escaped(text: str) -> str:
    """The text, so that nothing in it is filled in or computed."""
    if not _MARKED.search(text):
        return text
    return _OPENING.sub(lambda match: "{{ '$' }}{" if match[0] == "${" else f"{{{{ '{match[0]}' }}}}", text)


def _space(space: Space) -> dict[str, Any]:
    if space.scenarios:
        runs = []
        for scenario in space.scenarios:
            below: dict[str, Any] = {}
            for path, value in scenario.parameters.items():
                _put(below, list(map(_camel, path.split("."))), value)
            runs.append({"name": scenario.name, "benchmark": below})
        return {"runs": runs}
    return {"parameters": {each.path: list(each.values) for each in space.dimensions}}


def secrets(values: Iterable[OptionValue]) -> list[tuple[str, str]]:
    """The flags of secret options, and the variable of the environment that the file has for each."""
    return [(value.typed, str(_value(value))[2:-1]) for value in values if value.option.spec.secret]


def _ordered(whole: Mapping[str, Any]) -> dict[str, Any]:
    ordered = dict(sorted(whole.items(), key=lambda item: _ORDER.index(item[0]) if item[0] in _ORDER else len(_ORDER)))
    if isinstance(ordered.get("benchmark"), dict):
        ordered["benchmark"] = _ordered(ordered["benchmark"])
    return ordered


def _camel(word: str) -> str:
    first, *rest = word.split("_")
    return first + "".join(part.capitalize() for part in rest)


def dumped(whole: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(whole), sort_keys=False, allow_unicode=True, width=120)


__all__ = ["dumped", "secrets", "tree"]
