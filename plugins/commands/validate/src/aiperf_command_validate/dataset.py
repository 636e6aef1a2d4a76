"""Whether a data set's file can be read to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiperf import AiperfError, BadDataset, Capabilities, DatasetContext
from aiperf.parts.tools import data_source
from aiperf.sdk.descriptor import canonical
from aiperf.sdk.registry import InstalledPlugins, PluginRef
from msgspec import Struct

ANY_FORMAT = "dataset"
_TOKENIZER = "builtin"
_EVERYTHING = Capabilities(
    streaming=True, produces_tokens=True, tokenizes_input=True, media_in=("image", "audio", "video"), system_message=True,
    multi_turn=True, verbatim=True, named=("query", "passages"),
)  # fmt: skip
"""Of an endpoint that takes whatever a row may hold."""


class Read(Struct, frozen=True):
    """*format*: the plugin that read it.  *fault*: why it could not be read to its end; None where it could.

    started: conversations that are started by others; these come with the one that nothing starts, and are not among
    *conversations*.
    """

    file: str
    format: str
    valid: bool
    conversations: int
    turns: int
    fault: str | None = None
    started: int = 0


def is_form(word: str, registry: InstalledPlugins) -> bool:
    """Whether the word is ``dataset`` or the name of a format that files have."""
    formats = [plugin for plugin in registry.all("datasets") if plugin.capabilities.get("reads")]
    names = {canonical(name) for plugin in formats for name in plugin.capabilities.get("names", ())}
    return word == ANY_FORMAT or registry.find("datasets", word) in formats or canonical(word) in names


def read(path: Path, form: str, registry: InstalledPlugins) -> Read:
    """Read every row as a run would, with the format's own defaults, and send nothing.

    Raises:
        AiperfError: No format knows the file, or it can't be opened.
    """
    typed = {"input_file": f"validate {form}", "dataset_type": "validate FORMAT FILE"}
    chosen = data_source(path, None if form == ANY_FORMAT else form, registry, typed)
    assert chosen.dataset is not None  # its absence is an error
    plugin, file = chosen.dataset, chosen.path or path
    tokenizer = None
    if registry.find("tokenizers", _TOKENIZER) is not None:
        tokenizer = registry.load("tokenizers", _TOKENIZER)(None).open(_TOKENIZER)
    context = DatasetContext(_lines(file), 0, True, tokenizer, _EVERYTHING, file, chosen.name, chosen.row)
    conversations = turns = started = 0
    fault = None
    try:
        for conversation in _opened(plugin, context, registry):
            conversations += 1
            turns += len(conversation.turns)
            started += max(0, len(conversation.streams) - 1)
    except BadDataset as error:
        fault = "\n".join(error.lines())
    return Read(str(path), chosen.name or plugin.name, fault is None, conversations, turns, fault, started)


def _opened(chosen: PluginRef, context: DatasetContext, registry: InstalledPlugins) -> Any:
    model = registry.load_options_model(registry.descriptor(chosen.category, chosen.name))
    return registry.load(chosen.category, chosen.name)(None if model is None else model(), context)


def _lines(path: Path) -> int:
    """An upper bound for the number of entries of a file; of a directory, one entry is enough."""
    if path.is_dir():
        return 1
    try:
        with path.open("rb") as file:
            return max(1, sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b"")) + 1)
    except OSError as error:
        raise AiperfError(f"{path} can't be read: {error.strerror or error}") from error
