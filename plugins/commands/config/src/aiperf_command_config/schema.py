"""``aiperf config schema``: what a configuration file may have, with the options of all installed packages."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from aiperf import Command
from aiperf.parts.plans import profile_options
from aiperf.sdk.configuration import Option
from aiperf.sdk.descriptor import OptionSpec
from aiperf.sdk.registry import InstalledPlugins
from aiperf_configuration_yaml.places import LATER

from aiperf_command_config.files import written
from aiperf_command_config.options import SchemaOptions

log = logging.getLogger(__name__)

_FILLED = {"type": "string", "pattern": r"\$\{|\{\{"}
"""A text that the environment or an expression fills in."""
_DURATION = {"type": "string", "pattern": r"^\s*(\d+(\.\d*)?|\.\d+)\s*(ms|s|m|h)\s*$"}
_SCALARS = {"int": "integer", "float": "number", "flag": "boolean"}
_TOP = ("random_seed", "pins", "disabled", "multi_run", "sweep", "no_sweep_table")
_ANY: dict[str, Any] = {}
_TEXT = {"type": "string"}
_LIST = {"type": "array"}
_MAPPING = {"type": "object"}
_PHASE_KEYS: dict[str, Any] = {
    "type": {"description": "concurrency, a pattern of arrivals, user_centric or fixed_schedule", **_TEXT}, "name": _TEXT,
    "kind": {"enum": ["warmup", "profiling"]}, "exclude_from_results": {"type": "boolean"}, "alone": {"type": "boolean"},
}  # fmt: skip
_DISTRIBUTION: dict[str, Any] = {
    "type": _TEXT, "value": {"type": ["number", "string"]}, "median": {"type": ["number", "string"]}, "peaks": _LIST,
    "points": _LIST, "min": {"type": ["number", "string"]}, "max": {"type": ["number", "string"]},
}  # fmt: skip


class Schema(Command[SchemaOptions]):
    """Prints the schema, or writes it.

    Raises:
        ConfigError: The file can't be written.
    """

    def run(self, options: SchemaOptions, words: Sequence[str]) -> int:
        written(_text(self.registry), options.output, again=True)
        return 0


def schema_line(registry: InstalledPlugins) -> str:
    """The line that names the schema for editors, which is in the user's cache; "" where that can't be written."""
    text = _text(registry)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aiperf"
    path = folder / f"config-{digest}.schema.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            fresh = path.with_suffix(f".{os.getpid()}")
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(path)
    except OSError as error:
        log.warning("no schema for editors: %s can't be written: %s", path, error.strerror)
        return ""
    return f"# yaml-language-server: $schema={path}\n"


def _text(registry: InstalledPlugins) -> str:
    return json.dumps(schema(profile_options(registry)), indent=1, ensure_ascii=False) + "\n"


def schema(options: Iterable[Option]) -> dict[str, Any]:
    """JSON Schema of a file with these options.  Keys are in camelCase and in snake_case."""
    root: dict[str, Any] = {}
    owned: dict[str, dict[str, Any]] = {}
    for option in options:
        spec = option.spec
        for target in option.targets:
            if target.owner:
                owned.setdefault(target.owner, {})[target.field] = _value(spec)
        if spec.place:
            words = spec.place.partition(" (")[0].split(".")
            _put(root, words if words[0] in _TOP else ["benchmark", *words], _value(spec))
    benchmark = root["benchmark"]
    _special(root, benchmark)
    benchmark["plugins"] = {"properties": owned}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Configuration of aiperf profile",
        **_section(root), "required": ["benchmark"],
    }  # fmt: skip


def _put(holder: dict[str, Any], words: Sequence[str], value: dict[str, Any]) -> None:
    """A value's schema at its place: sections are plain mappings by key, values are under ``=``."""
    for word in words[:-1]:
        holder = holder.setdefault(word, {})
    holder.setdefault(words[-1], {}).setdefault("=", value)


def _leaf(value: dict[str, Any]) -> dict[str, Any]:
    return {"=": value}


def _special(root: dict[str, Any], benchmark: dict[str, Any]) -> None:
    """Keys that no option has: other ways to write what options say."""
    phases = {kind: benchmark.setdefault(kind, {}) for kind in ("warmup", "profiling")}
    for phase in phases.values():
        phase |= {key: _leaf(value) for key, value in _PHASE_KEYS.items()}
        for key, below in phase.items():
            if key.endswith("_ramp"):
                below |= {"=": _ANY, "strategy": _leaf(_TEXT)}
    both = {key: below for phase in phases.values() for key, below in phase.items()}
    one = _section(both)
    benchmark["phases"] = _leaf({"anyOf": [one, {"type": "array", "items": one}]})
    benchmark["model"] = _leaf({"type": ["string", "array"]})
    benchmark.setdefault("models", {})["="] = {"type": ["string", "array"]}
    benchmark["tokenizer"]["="] = _TEXT
    endpoint, dataset, artifacts = (benchmark.setdefault(key, {}) for key in ("endpoint", "dataset", "artifacts"))
    endpoint["url"] = _leaf({"type": ["string", "array"]})
    dataset |= {key: _leaf(_TEXT) for key in ("type", "name", "dataset")}
    dataset["records"] = _leaf({"type": ["array", "object"]})
    for key in ("isl", "osl"):
        if key in dataset.get("prompts", {}):
            dataset[key] = dataset["prompts"][key]
    if gpus := benchmark.get("gpu_telemetry"):
        gpus |= {key: _leaf({"type": ["string", "array"]}) for key in ("url", "urls", "metrics_file")}
        gpus |= {key: _leaf(_TEXT) for key in ("collector", "mode")}
    benchmark |= {key: _leaf({"type": ["object", "null", "boolean"]}) for key in LATER if key not in benchmark}
    benchmark["datasets"] = _leaf({"type": ["array", "object"]})
    artifacts |= {key: _leaf(_ANY) for key in ("records", "raw", "summary")}
    sweep = root.setdefault("sweep", {})
    sweep |= {
        "parameters": _leaf({"type": "object", "additionalProperties": {"type": ["array", "string"]}}), "runs": _leaf(_LIST),
        "dimensions": _leaf(_LIST), "+": True,
    }  # fmt: skip
    root |= {"schema_version": _leaf({"type": ["string", "number"]}), "variables": _leaf(_MAPPING), "plot": _leaf(_ANY)}
    root["pins"], root["disabled"] = _leaf({"type": ["object", "array"]}), _leaf({"type": ["array", "string"]})


def _section(keys: dict[str, Any]) -> dict[str, Any]:
    """A mapping with these keys, in both spellings; one more key is an error, unless it has ``+``."""
    properties: dict[str, Any] = {}
    for key, below in keys.items():
        if key not in ("=", "+"):
            properties |= dict.fromkeys((_camel(key), key), _node(below))
    return {"type": "object", "properties": properties, "additionalProperties": "+" in keys}


def _node(keys: dict[str, Any]) -> dict[str, Any]:
    if "properties" in keys:  # options by plugin
        owners = {
            owner: _section({key: {"=": value} for key, value in below.items()}) for owner, below in keys["properties"].items()
        }
        return {"type": "object", "properties": owners}
    inside = {key for key in keys if key not in ("=", "+")}
    if not inside:
        return dict(keys["="])
    if "mean" in inside:
        keys = keys | {key: {"=": value} for key, value in _DISTRIBUTION.items()}
    forms = [keys[key]["="] for key in ("mean", "duration", "path", "name") if key in inside and "=" in keys[key]][:1]
    forms += [keys["="]] if "=" in keys else []
    if not forms:
        return _section(keys) | {"type": ["object", "null"]}
    return {"anyOf": [_section(keys), *forms, {"type": "null"}]}


def _value(spec: OptionSpec) -> dict[str, Any]:
    about = {"description": spec.help}
    if spec.default is not None and spec.arity != "none":
        about["default"] = spec.default
    one: dict[str, Any] = {"type": _SCALARS.get(spec.type, "string")}
    if spec.choices:
        one = {"enum": [*dict.fromkeys(word for each in spec.choices for word in (each, each.replace("_", "-"), each.upper()))]}
    forms: list[dict[str, Any]] = [one, _FILLED, {"type": "null"}]
    if spec.metavar == "SECONDS":
        forms.append(_DURATION)
    if spec.type in ("str", "path"):
        forms.append({"type": ["number", "boolean"]})
    if spec.arity in ("many", "maybe"):
        forms += [{"type": "array"}, {"type": "object"}, {"type": "string"}]
    elif spec.metavar in ("JSON", "DIST"):
        forms += [{"type": "object"}, {"type": "array"}]
    return about | {"anyOf": forms}


def _camel(word: str) -> str:
    first, *rest = word.split("_")
    return first + "".join(part.capitalize() for part in rest)


__all__ = ["Schema", "schema", "schema_line"]
