"""The generated parts of a manifest: options and option groups; the rest of the file stays as it is."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import yaml
from aiperf import Options, PluginError, UsageError
from aiperf.parts.tools import FILE_NAME, ManifestError, read, read_row, specs
from aiperf.sdk.registry import OptionSpec


def manifest_path(where: Path) -> Path:
    """The manifest at *where*: the file itself, or the manifest of the package or project in a directory.

    Raises:
        UsageError: There is no manifest, or there are several.
    """
    if where.is_file():
        return where
    patterns = (FILE_NAME, f"src/*/{FILE_NAME}", f"*/{FILE_NAME}")
    paths = next((paths for paths in (sorted(where.glob(pattern)) for pattern in patterns) if paths), [])
    if len(paths) != 1:
        what = f"several: {', '.join(map(str, paths))}" if paths else f"no {FILE_NAME}"
        raise UsageError(f"{where} holds {what}", "name the directory of one plugin package")
    return paths[0]


def write(path: Path) -> dict[str, int]:
    """Bring the options and option groups in the file up to date; returns the number of options of each class.  Idempotent.

    A row refers to the groups among the bases of its class: those that this manifest, or that of the base's package, declares.

    Raises:
        PluginError: The file isn't a manifest, or a class can't be imported or has a bad option.
    """
    text = path.read_text(encoding="utf-8")
    manifest = manifest_at(path)
    rows = [read_row(plain) for plain in manifest.plugins]
    groups = {name: _specs(name, path) for name in manifest.option_groups}
    counts = {name: len(options) for name, options in groups.items()}
    text = _replaced(text, None, "option_groups", groups, path)
    for model, index in [(manifest.options_model, None), *((row.options_model, index) for index, row in enumerate(rows))]:
        options = _specs(model, path) if model else ()
        shared = _groups(model, path) if model and index is not None else []
        if model:
            counts[model] = len(options)
        inherited = {spec for name in shared for spec in _specs(name, path)}
        if index is not None:
            text = _replaced(text, index, "option_groups", shared, path)
        text = _replaced(text, index, "options", [spec for spec in options if spec not in inherited], path)
    if text != path.read_text(encoding="utf-8"):
        path.write_text(text, encoding="utf-8")
    return counts


def manifest_at(path: Path) -> Any:
    """The manifest, with rows that can be read."""
    try:
        manifest = read(path.read_bytes())
        for plain in manifest.plugins:
            read_row(plain)
    except ManifestError as error:
        raise PluginError(f"{path} {error}") from error
    return manifest


def _specs(reference: str, path: Path) -> tuple[OptionSpec, ...]:
    try:
        return specs(_class(reference, path))
    except Exception as error:  # an author's module may raise anything while it is imported
        raise PluginError(f"{path}: options_model {reference} can't be used: {type(error).__name__}: {error}") from error


def _class(reference: str, path: Path) -> type[Options]:
    module, _, name = reference.partition(":")
    above = str(path.parent.parent.resolve())
    if above not in sys.path:  # a package that isn't installed yet
        sys.path.insert(0, above)
    found: type[Options] = getattr(import_module(module), name)
    return found


def _groups(reference: str, path: Path) -> list[str]:
    """The option groups among the bases of a class, the nearest of each line of descent."""
    groups: list[str] = []
    bases = [base for base in _class(reference, path).__bases__ if issubclass(base, Options) and base is not Options]
    for base in bases:
        name = f"{base.__module__}:{base.__qualname__}"
        spec = find_spec(base.__module__.partition(".")[0])
        beside = [Path(folder) / FILE_NAME for folder in (spec and spec.submodule_search_locations) or ()]
        declared = any(name in manifest_at(manifest).option_groups for manifest in beside if manifest.is_file())
        groups += [name] if declared else _groups(name, path)
    return groups


def _replaced(text: str, row: int | None, key: str, value: Any, path: Path) -> str:
    """The text with a *key* of one row, or of the top (None), replaced, added or taken out."""
    node: Any = yaml.compose(text, yaml.SafeLoader)
    if row is not None:
        plugins = next(value for key, value in node.value if key.value == "plugins")
        node = plugins.value[row]
    if node.flow_style:
        raise PluginError(f"{path}: write the row in line {node.start_mark.line + 1} as a block, one key a line")
    lines = text.splitlines()
    indent = " " * node.value[0][0].start_mark.column
    keys = {name.value: (name.start_mark.line, held.end_mark) for name, held in node.value}
    if key in keys:
        start, end = keys[key][0], _last(lines, keys[key][1], keys[key][0]) + 1
    elif row is None:
        # Above the rows: they are what a person reads.
        start = end = keys["plugins"][0]
    elif "options" in keys:
        start = end = keys["options"][0]
    else:
        start = end = _last(lines, node.end_mark, node.start_mark.line) + 1
    lines[start:end] = [f"{indent}{line}".rstrip() for line in _block(key, value)]
    return "\n".join(lines) + "\n"


def _last(lines: list[str], mark: Any, first: int) -> int:
    """The last line of a node, without the blank lines and comments behind it."""
    last = mark.line if mark.column and mark.line < len(lines) and lines[mark.line][: mark.column].strip() else mark.line - 1
    while last > first and (not lines[last].strip() or lines[last].lstrip().startswith("#")):
        last -= 1
    return int(last)


def _block(key: str, value: Any) -> list[str]:
    """The lines of a key whose value is a list, or a mapping of lists; none where it is empty."""
    if not value:
        return []
    if isinstance(value, list) and isinstance(value[0], str):
        return [f"{key}: {json.dumps(value)}"]
    dumped = yaml.safe_dump(_plain(value), sort_keys=False, allow_unicode=True, width=116, default_flow_style=None)
    return [f"{key}:", *(f"  {line}" for line in dumped.splitlines())]


def _plain(value: Any) -> Any:
    """The value as YAML writes it: a tuple as a list, a struct as a mapping."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _plain(msgspec.to_builtins(value)) if isinstance(value, msgspec.Struct) else value
