"""Reading and checking ``aiperf.yaml``, a distribution's manifest of its plugins, without importing the distribution."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from aiperf.sdk.categories import CATEGORIES
from aiperf.sdk.descriptor import API_VERSION, OptionSpec, PluginDocs, canonical

FILE_NAME = "aiperf.yaml"
SCHEMA_VERSION = 1
"""Of manifests: the value of ``schema_version`` that this kernel reads."""
_Shape = TypeVar("_Shape")


class ManifestRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One row of ``plugins:``.  option_groups: ``module:Class`` of groups whose options stand before its own."""

    category: str
    name: str
    summary: str = ""
    aliases: tuple[str, ...] = ()
    priority: int = 0
    capabilities: dict[str, Any] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    option_groups: tuple[str, ...] = ()
    options: tuple[OptionSpec, ...] = ()
    options_model: str | None = None
    contract: str | None = None
    docs: PluginDocs = PluginDocs()


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """The file.  *options* and *options_model* at the top are the kernel's own; a plugin's stand in its row.

    first_party: the distribution's own name, where this repository makes it.
    option_groups: options that rows of this and other packages share, by the ``module:Class`` that declares them.
    """

    schema_version: int
    api: str
    plugins: tuple[Any, ...] = ()
    options: tuple[OptionSpec, ...] = ()
    options_model: str | None = None
    first_party: str = ""
    option_groups: dict[str, tuple[OptionSpec, ...]] = field(default_factory=dict)


class ManifestError(ValueError):
    """A manifest can't be used; the message continues the file's path."""


def read(text: bytes) -> Manifest:
    """The manifest in *text*, by libyaml's parser where PyYAML has it; its rows are not checked yet.

    Raises:
        ManifestError: Not YAML, an unknown schema version or key, a wrong type, an API range without this kernel's version.
    """
    import yaml

    try:
        plain = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ManifestError(f"is not YAML: {' '.join(str(error).split())}") from error
    version = plain.get("schema_version") if isinstance(plain, dict) else None
    if version != SCHEMA_VERSION:
        raise ManifestError(f"has schema_version {version!r}; this kernel reads {SCHEMA_VERSION}")
    manifest = _converted(plain, Manifest, "is not a manifest")
    if not in_range(API_VERSION, manifest.api):
        raise ManifestError(f"asks for plugin API {manifest.api}; this kernel has {API_VERSION}")
    return manifest


def read_row(plain: Any) -> ManifestRow:
    """One row, checked; of endpoints and data sets the capabilities too, of exporters the names of files.

    Raises:
        ManifestError: A key is unknown or has a wrong type.
    """
    row = _converted(plain, ManifestRow, "has a bad row")
    if row.category == "endpoints":
        from aiperf.sdk.endpoint import Capabilities

        known = Capabilities.__struct_fields__
        for key in row.capabilities:
            if key not in known:
                raise ManifestError(f"has a bad row: endpoints have no capability {key!r}{_near(key, known)}")
        _converted(row.capabilities, Capabilities, "has a bad row: capabilities")
    if row.capabilities and row.category in _FACTS:
        module, _, name = _FACTS[row.category].partition(":")
        _converted(row.capabilities, getattr(import_module(module), name), "has a bad row: capabilities")
    if row.category == "datasets":
        from aiperf.sdk.dataset import DatasetFacts

        facts = _converted(row.capabilities, DatasetFacts, "has a bad row: capabilities")
        if len(set(map(canonical, facts.names))) < len(facts.names):
            raise ManifestError("has a bad row: capabilities: names has one twice")
    if row.category == "commands" and "word" in row.capabilities:
        word = row.capabilities["word"]
        if not isinstance(word, str) or len(word.split(" ")) != 2 or canonical(word.replace(" ", "_")) != canonical(row.name):
            wanted = f"such as 'config init' for a plugin config_init; this plugin is {row.name}"
            raise ManifestError(f"has a bad row: capabilities: word {word!r} is not two words that make its name, {wanted}")
    if row.category == "exporters":
        for name in _converted(row.capabilities.get("files", {}), dict[str, str], _BAD_FILES).values():
            if "/" in name or name in ("", ".", ".."):
                raise ManifestError(f"{_BAD_FILES}: {name!r} is not the name of a file")
    return row


def with_groups(row: ManifestRow, groups: Mapping[str, tuple[OptionSpec, ...]]) -> tuple[OptionSpec, ...]:
    """All options of the row: those of its groups, then its own.  Of one field its own counts, then the first group's.

    Raises:
        ManifestError: There is no such group.
    """
    if missing := [name for name in row.option_groups if name not in groups]:
        what = f"has a row for {row.category}:{row.name} with the option group {missing[0]}"
        raise ManifestError(f"{what}, which no installed package declares")
    fields: dict[str, OptionSpec] = {}
    for name in row.option_groups:
        fields = {spec.field: spec for spec in (*fields.values(), *groups[name], *fields.values())}
    return tuple((fields | {spec.field: spec for spec in row.options}).values())


_FACTS = {
    "graders": "aiperf.sdk.grader:GraderCapabilities", "schedules": "aiperf.sdk.schedule:ScheduleFacts",
    "drivers": "aiperf.sdk.driver:DriverFacts", "samplers": "aiperf.sdk.sampler:SamplerFacts", "uis": "aiperf.sdk.ui:UiFacts",
    "live": "aiperf.sdk.live:LiveFacts",
}  # fmt: skip
"""What manifests may say of plugins, by category; the modules are only loaded where a manifest is read."""
_BAD_FILES = "has a bad row: capabilities: files"


def _converted(plain: Any, shape: type[_Shape], fault: str) -> _Shape:
    try:
        return msgspec.convert(plain, shape)
    except msgspec.ValidationError as error:
        raise ManifestError(f"{fault}: {error}") from error


def unknown_category(category: str) -> str:
    return f"there is no plugin category {category!r}{_near(category, tuple(CATEGORIES))}"


def _near(word: str, possible: tuple[str, ...]) -> str:
    from difflib import get_close_matches  # not at a start from the cache

    close = get_close_matches(word, possible, 1, 0.7)
    return f"; did you mean {close[0]!r}?" if close else ""


_COMPARE = {">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt}
_TERM = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*?)(?:\.0+)*\s*")


def in_range(version: int, wanted: str) -> bool:
    """Whether *version* is in a range such as ``>=1,<2``.

    Raises:
        ManifestError: *wanted* is not a range.
    """
    terms = [match for term in wanted.split(",") if (match := _TERM.fullmatch(term))]
    if len(terms) != wanted.count(",") + 1:
        raise ManifestError(f"has api {wanted!r}, which is not a range such as '>=1,<2'")
    return all(_COMPARE[match[1]]((version,), tuple(map(int, match[2].split(".")))) for match in terms)
