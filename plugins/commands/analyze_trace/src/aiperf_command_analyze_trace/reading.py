"""Opens a trace of any installed format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aiperf import BadDataset, UsageError
from aiperf.parts.tools import format_of
from aiperf.sdk.registry import InstalledPlugins
from aiperf.sdk.trace import Trace

_BLOCK_TOKENS = 512


def the_file(command: str, words: Sequence[str], option: Path | None) -> Path:
    """The one file of a command, as a word or as ``--input-file``.

    Raises:
        UsageError: There is none, or there are several.
    """
    files: list[Path] = [*map(Path, words), *(() if option is None else (option,))]
    if len(files) != 1:
        given = f"{len(files)} were given" if files else "none was given"
        raise UsageError(f"{command} takes one trace, {given}", f"aiperf {command} FILE")
    return files[0]


def open_trace(path: Path, name: str | None, registry: InstalledPlugins) -> tuple[str, Trace]:
    """The name of the format of a file, or of a directory of files, and what was recorded.  name: None lets the file tell.

    Raises:
        AiperfError: No format knows the file, or it records no lengths.
    """
    form = format_of(path, name, registry, {"input_file": "the trace", "dataset_type": "--custom-dataset-type"})
    try:
        trace = registry.load(form.category, form.name).recorded(path)
    except BadDataset as error:
        traces = [each.name for each in registry.all("datasets") if each.capabilities.get("trace")]
        others = f"--custom-dataset-type names another format: {', '.join(traces)}"
        raise BadDataset(error.message, *error.hints, others) from error
    return form.name, trace


def block_tokens(typed: int | None, trace: Trace) -> int:
    """Length of a block: as typed, else the format's."""
    return typed or trace.block_tokens or _BLOCK_TOKENS
