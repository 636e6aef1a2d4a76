"""Every option there is, the kernel's and those of installed plugins: as Markdown, and as JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aiperf.argv import FIRST
from aiperf.descriptor import Descriptor, OptionSpec
from aiperf.helptext import by_heading
from aiperf.registry import Registry
from aiperf.registry.precedence import label

_HEAD = """\
# Options

Generated from the option models of the installed packages by `aiperf plugins options --markdown`; with `--json` it is their
JSON Schema. A plugin's options are under its own heading and are there while its package is.

The last column is where the option stands in a configuration file (`aiperf profile --config FILE`), below `benchmark:` but for
`random_seed`, `pins` and `disabled`; a word in parentheses is the phase's type. See [config.md](config.md).

## `aiperf profile`"""
_COLUMNS = "| option | value | default | what | in a file |\n|---|---|---|---|---|"


def page(registry: Registry) -> str:
    """The whole page; every option has its row."""
    parts = [_HEAD]
    for heading, specs in by_heading((*registry.kernel_options, *FIRST)):
        parts.append(f"\n### {heading}\n\n{_COLUMNS}")
        parts += [_row(spec) for spec in specs]
    for one in _owners(registry):
        title = f"`aiperf {one.name.replace('_', '-')}`" if one.category == "commands" else f"{one.category}: `{one.name}`"
        parts.append(f"\n## {title}\n\nOf {one.distribution}.\n\n{_COLUMNS}")
        owner = "" if one.category == "commands" else f"{one.category}:{one.name}"
        parts += [_row(spec, owner) for spec in one.options]
    return "\n".join(parts)


def listed(registry: Registry) -> list[tuple[str, str]]:
    """Each option's flags, and whose it is."""
    own = (*registry.kernel_options, *FIRST)
    kernel = [(", ".join(spec.flags), "the kernel") for spec in own if not spec.hidden]
    plugins = [
        (", ".join(spec.flags), f"{one.category}:{one.name} of {label(one)}")
        for one in _owners(registry)
        for spec in one.options
        if not spec.hidden
    ]
    return kernel + plugins


def schema(registry: Registry) -> dict[str, Any]:
    """JSON Schema of an object with the options of each owner: ``kernel``, and ``category:name`` of each plugin with some."""
    from aiperf.options import KernelOptions

    owners: dict[str, Any] = {"kernel": KernelOptions.model_json_schema()}
    owners |= {f"{one.category}:{one.name}": registry.load_options_model(one).model_json_schema() for one in _owners(registry)}
    for found in owners.values():
        for option in found["properties"].values():
            _typed(option)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Options of aiperf and of its installed plugins",
        "type": "object", "additionalProperties": False, "properties": owners,
    }  # fmt: skip


def _owners(registry: Registry) -> Iterator[Descriptor]:
    """Plugins with options, those of commands last."""
    every = [one for category in registry.categories() for one in registry.all(category) if one.options]
    yield from sorted(every, key=lambda one: (one.category == "commands", one.category, one.name))


def _typed(option: dict[str, Any]) -> None:
    """Instead of what only the command line knows: the flags, the place in a file, and the words to choose from."""
    face = option.pop("aiperf", {})
    option["flags"] = face.get("flags", [])
    if face.get("place"):
        option["place"] = face["place"]
    if face.get("choices"):
        option.get("items", option)["enum"] = list(face["choices"])


def _row(spec: OptionSpec, owner: str = "") -> str:
    """*owner*: the plugin under whose name the option stands in a file, where it has no place of its own; "" is nowhere."""
    flags = [*spec.flags, *([spec.negative] if spec.negative else [])]
    value = " ".join(spec.choices) if spec.choices else spec.metavar if spec.arity != "none" else ""
    place = spec.place or (f"plugins.{owner}.{spec.field}" if owner else "")
    return _cells(", ".join(f"`{flag}`" for flag in flags), value, spec.default or "", spec.help, f"`{place}`" if place else "")


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"

