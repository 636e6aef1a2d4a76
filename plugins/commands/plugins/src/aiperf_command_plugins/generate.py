"""The generated part of a manifest: the options of each options class; the rest of the file stays as it is."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import yaml
from aiperf import PluginError, UsageError
from aiperf.sdk.registry import OptionSpec
from aiperf.sdk.tools import FILE_NAME, ManifestError, read, read_row, specs


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
    """Bring every ``options:`` in the file up to date; returns the number of options of each class.  Idempotent.

    Raises:
        PluginError: The file isn't a manifest, or a class can't be imported or has a bad option.
    """
    text = path.read_text(encoding="utf-8")
    try:
        manifest = read(text.encode())
        rows = [read_row(plain) for plain in manifest.plugins]
    except ManifestError as error:
        raise PluginError(f"{path} {error}") from error
    counts: dict[str, int] = {}
    owners = [(manifest.options_model, None), *((row.options_model, index) for index, row in enumerate(rows))]
    for model, index in owners:
        options = _specs(model, path) if model else ()
        if model:
            counts[model] = len(options)
        text = _replaced(text, index, options, path)
    if text != path.read_text(encoding="utf-8"):
        path.write_text(text, encoding="utf-8")
    return counts


def _specs(reference: str, path: Path) -> tuple[OptionSpec, ...]:
    module, _, name = reference.partition(":")
    above = str(path.parent.parent.resolve())
    if above not in sys.path:  # a package that isn't installed yet
        sys.path.insert(0, above)
    try:
        return specs(getattr(import_module(module), name))
    except Exception as error:  # an author's module may raise anything while it is imported
        raise PluginError(f"{path}: options_model {reference} can't be used: {type(error).__name__}: {error}") from error


def _replaced(text: str, row: int | None, options: tuple[OptionSpec, ...], path: Path) -> str:
    """The text with the ``options:`` of one row, or of the top (None), replaced, added or taken out."""
    node: Any = yaml.compose(text, yaml.SafeLoader)
    if row is not None:
        plugins = next(value for key, value in node.value if key.value == "plugins")
        node = plugins.value[row]
    if node.flow_style:
        raise PluginError(f"{path}: write the row in line {node.start_mark.line + 1} as a block, one key a line")
    lines = text.splitlines()
    indent = " " * node.value[0][0].start_mark.column
    old = next(((key, value) for key, value in node.value if key.value == "options"), None)
    if old is not None:
        start, end = old[0].start_mark.line, _last(lines, old[1].end_mark, old[0].start_mark.line) + 1
    elif row is None:
        # Above the rows: they are what a person reads.
        start = end = next(key for key, _ in node.value if key.value == "plugins").start_mark.line
    else:
        start = end = _last(lines, node.end_mark, node.start_mark.line) + 1
    lines[start:end] = [f"{indent}{line}".rstrip() for line in _block(options)]
    return "\n".join(lines) + "\n"


def _last(lines: list[str], mark: Any, first: int) -> int:
    """The last line of a node, without the blank lines and comments behind it."""
    last = mark.line if mark.column and mark.line < len(lines) and lines[mark.line][: mark.column].strip() else mark.line - 1
    while last > first and (not lines[last].strip() or lines[last].lstrip().startswith("#")):
        last -= 1
    return int(last)


def _block(options: tuple[OptionSpec, ...]) -> list[str]:
    if not options:
        return []
    plain = [msgspec.to_builtins(spec) for spec in options]
    for option in plain:
        option |= {key: list(value) for key, value in option.items() if isinstance(value, tuple)}
    dumped = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=116, default_flow_style=None)
    return ["options:", *(f"  {line}" for line in dumped.splitlines())]
