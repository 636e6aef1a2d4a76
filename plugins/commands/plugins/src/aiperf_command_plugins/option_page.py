"""Every option of the kernel and of installed plugins: as Markdown, and as JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aiperf.parts.tools import FIRST, KernelOptions, by_heading, options_schema
from aiperf.sdk.registry import Descriptor, InstalledPlugins, OptionSpec

_HEAD = """\
# Options

Generated from the option models of the installed packages by `aiperf plugins options --markdown`; with `--json` it is their
JSON Schema. A plugin's options are under its own heading and are there while its package is.

The last column is where the option stands in a configuration file (`aiperf profile --config FILE`), below `benchmark:` but for
`random_seed`, `pins` and `disabled`; a word in parentheses is the phase's type. See [config.md](config.md).

## `aiperf profile`"""
_COLUMNS = "| option | value | default | what | in a file |\n|---|---|---|---|---|"


def page(registry: InstalledPlugins) -> str:
    """The whole page; every option has its row."""
    parts = [_HEAD]
    for heading, specs in by_heading((*registry.kernel_options, *FIRST)):
        parts.append(f"\n### {heading}\n\n{_COLUMNS}")
        parts += [_row(spec) for spec in specs]
    for plugin in _owners(registry):
        command = plugin.category == "commands"
        title = f"`aiperf {plugin.name.replace('_', '-')}`" if command else f"{plugin.category}: `{plugin.name}`"
        parts.append(f"\n## {title}\n\nOf {plugin.distribution}.\n\n{_COLUMNS}")
        owner = "" if command else plugin.key
        parts += [_row(spec, owner) for spec in plugin.options]
    return "\n".join(parts)


def listed(registry: InstalledPlugins) -> list[tuple[str, str]]:
    """Each option's flags, and its owner."""
    own = (*registry.kernel_options, *FIRST)
    kernel = [(", ".join(spec.flags), "the kernel") for spec in own if not spec.hidden]
    plugins = [
        (", ".join(spec.flags), f"{plugin.key} of {plugin.package}")
        for plugin in _owners(registry)
        for spec in plugin.options
        if not spec.hidden
    ]
    return kernel + plugins


def schema(registry: InstalledPlugins) -> dict[str, Any]:
    """JSON Schema of an object with the options of each owner: ``kernel``, and ``category:name`` of each plugin with some."""
    owners: dict[str, Any] = {"kernel": options_schema(KernelOptions)}
    owners |= {plugin.key: options_schema(registry.load_options_model(plugin)) for plugin in _owners(registry)}
    for schema_of_owner in owners.values():
        definitions = schema_of_owner.pop("$defs", {})
        for name, option in schema_of_owner["properties"].items():
            schema_of_owner["properties"][name] = _typed(_inlined(option, definitions))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Options of aiperf and of its installed plugins",
        "type": "object", "additionalProperties": False, "properties": owners,
    }  # fmt: skip


def _owners(registry: InstalledPlugins) -> Iterator[Descriptor]:
    """Plugins with options, those of commands last."""
    every = [plugin for category in registry.categories() for plugin in registry.all(category) if plugin.options]
    yield from sorted(every, key=lambda plugin: (plugin.category == "commands", plugin.category, plugin.name))


def _inlined(value: Any, definitions: dict[str, Any]) -> Any:
    """*value* with each reference replaced by its definition: an owner's ``$defs`` would not stand at the root."""
    if isinstance(value, list):
        return [_inlined(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {key: _inlined(item, definitions) for key, item in value.items() if key != "$ref"}
    if "$ref" not in value:
        return plain
    definition = definitions[value["$ref"].removeprefix("#/$defs/")]
    return {key: item for key, item in _inlined(definition, definitions).items() if key != "title"} | plain


def _typed(option: dict[str, Any]) -> dict[str, Any]:
    """Replace the fields of the command line with the flags, the place in a file, and the words to choose from."""
    face = option.pop("aiperf", {})
    option["flags"] = face.get("flags", [])
    if face.get("place"):
        option["place"] = face["place"]
    if face.get("choices"):
        option.get("items", option)["enum"] = list(face["choices"])
    return option


def _row(spec: OptionSpec, owner: str = "") -> str:
    """*owner*: the plugin under whose name the option stands in a file, where it has no place of its own; "" is nowhere."""
    flags = [*spec.flags, *([spec.negative] if spec.negative else [])]
    value = " ".join(spec.choices) if spec.choices else spec.metavar if spec.arity != "none" else ""
    place = spec.place or (f"plugins.{owner}.{spec.field}" if owner else "")
    return _cells(", ".join(f"`{flag}`" for flag in flags), value, spec.default or "", spec.help, f"`{place}`" if place else "")


def _cells(*cells: str) -> str:
    escaped = (cell.replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
