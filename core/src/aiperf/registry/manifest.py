"""Reading ``aiperf.yaml``: what a distribution says of its plugins, checked, without importing any of it."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import Struct, field

from aiperf.descriptor import API_VERSION, CATEGORIES, Descriptor, OptionSpec, canonical

FILE_NAME = "aiperf.yaml"
SCHEMA_VERSION = 1


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """One row of ``plugins:``."""

    category: str
    name: str
    summary: str = ""
    aliases: tuple[str, ...] = ()
    priority: int = 0
    capabilities: dict[str, Any] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    options: tuple[OptionSpec, ...] = ()
    options_model: str | None = None
    contract: str | None = None


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """The file.  *options* and *options_model* at the top are the kernel's own; a plugin's stand in its row."""

    schema_version: int
    api: str
    plugins: tuple[Any, ...] = ()
    options: tuple[OptionSpec, ...] = ()
    options_model: str | None = None


class ManifestError(ValueError):
    """Why a manifest can't be used; the text follows the file's path."""


def parse(text: bytes) -> Any:
    """YAML to plain objects, with libyaml's parser where it was built in.

    Raises:
        ManifestError: It isn't YAML.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(text, loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ManifestError(f"is not YAML: {' '.join(str(error).split())}") from error


def read(text: bytes) -> Manifest:
    """The manifest in *text*; its rows are still unchecked.

    Raises:
        ManifestError: Not YAML, an unknown schema version or key, a wrong type, an API range that leaves this kernel out.
    """
    plain = parse(text)
    version = plain.get("schema_version") if isinstance(plain, dict) else None
    if version != SCHEMA_VERSION:
        raise ManifestError(f"has schema_version {version!r}; this kernel reads {SCHEMA_VERSION}")
    try:
        manifest = msgspec.convert(plain, Manifest)
    except msgspec.ValidationError as error:
        raise ManifestError(f"is not a manifest: {error}") from error
    if not in_range(API_VERSION, manifest.api):
        raise ManifestError(f"asks for plugin API {manifest.api}; this kernel has {API_VERSION}")
    return manifest


def read_row(plain: Any) -> Row:
    """One row, checked; for endpoints the capabilities too.

    Raises:
        ManifestError: A key is unknown or has a wrong type.
    """
    try:
        row = msgspec.convert(plain, Row)
    except msgspec.ValidationError as error:
        raise ManifestError(f"has a bad row: {error}") from error
    if row.category == "endpoints":
        from aiperf.endpoint import Capabilities

        known = Capabilities.__struct_fields__
        for key in row.capabilities:
            if key not in known:
                raise ManifestError(f"has a bad row: endpoints have no capability {key!r}{_near(key, known)}")
        try:
            msgspec.convert(row.capabilities, Capabilities)
        except msgspec.ValidationError as error:
            raise ManifestError(f"has a bad row: capabilities: {error}") from error
    return row


def unknown_category(category: str) -> str:
    return f"there is no plugin category {category!r}{_near(category, tuple(CATEGORIES))}"


def _near(word: str, possible: tuple[str, ...]) -> str:
    close = get_close_matches(word, possible, 1, 0.7)
    return f"; did you mean {close[0]!r}?" if close else ""


_TERM = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)\s*")


def in_range(version: int, wanted: str) -> bool:
    """Whether *version* is in a range such as ``>=1,<2``.

    Raises:
        ManifestError: It isn't a range.
    """
    for term in wanted.split(","):
        match = _TERM.fullmatch(term)
        if match is None:
            raise ManifestError(f"has api {wanted!r}, which is not a range such as '>=1,<2'")
        numbers = [int(part) for part in match[2].split(".")]
        while numbers[1:] and numbers[-1] == 0:
            numbers.pop()
        have, asked = (version,), tuple(numbers)
        truth = {
            ">=": have >= asked, "<=": have <= asked, "==": have == asked,
            "!=": have != asked, ">": have > asked, "<": have < asked,
        }  # fmt: skip
        if not truth[match[1]]:
            return False
    return True


def describe(
    row: Row, api: str, value: str, distribution: str, version: str, first_party: bool, broken: str | None
) -> Descriptor:
    """The row, of a manifest for *api*, as a descriptor of the plugin that *value* names."""
    return Descriptor(
        category=row.category,
        name=canonical(row.name),
        value=value,
        distribution=distribution,
        version=version,
        summary=row.summary,
        aliases=tuple(canonical(alias) for alias in row.aliases),
        priority=row.priority,
        capabilities=row.capabilities,
        requires=row.requires,
        options=row.options,
        options_model=row.options_model,
        contract=row.contract,
        api=api,
        first_party=first_party,
        broken=broken,
    )
