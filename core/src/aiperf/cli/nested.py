"""Words of a command with options and help of their own: ``aiperf config init`` is the command ``config init``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import structs

from aiperf.cli.commandline import Scan, Subcommand
from aiperf.errors import UsageError
from aiperf.registry.registry import Registry
from aiperf.sdk.descriptor import Descriptor, canonical


def name_of(plugin: Descriptor) -> str:
    """The words that call a command: ``config init``, or ``analyze-trace``."""
    return str(plugin.capabilities.get("word") or plugin.name.replace("_", "-"))


def spoken(registry: Registry, words: Sequence[str]) -> str | None:
    """The name of the command of two words with which a line begins; None where it begins with none."""
    if len(words) < 2 or words[1].startswith("-"):
        return None
    said = canonical(" ".join(words[:2]))
    return next((name for name in map(name_of, registry.all("commands")) if " " in name and canonical(name) == said), None)


def joined(commands: Sequence[Subcommand]) -> list[Subcommand]:
    """The commands, each with its words; and one, which only has words, for each first word that is no command."""
    words: dict[str, dict[str, str]] = {}
    for command in commands:
        first, _, word = command.name.partition(" ")
        if word:
            words.setdefault(canonical(first), {})[word] = command.summary
    whole = [
        structs.replace(command, words=words.pop(key)) if (key := canonical(command.name)) in words else command
        for command in commands
    ]
    return whole + [_only_words(first.replace("_", "-"), below) for first, below in words.items()]


def listed(command: Subcommand) -> str:
    """A command's line in the list of commands."""
    return f"{command.summary} Words: {', '.join(command.words)}.".lstrip() if command.words else command.summary


def _only_words(name: str, words: Mapping[str, str]) -> Subcommand:
    def prepare(scan: Scan) -> Callable[[], int]:
        raise UsageError(f"aiperf {name} needs a word: {', '.join(words)}", f"see aiperf {name} --help")

    return Subcommand(name, "", (), prepare, words=words)
