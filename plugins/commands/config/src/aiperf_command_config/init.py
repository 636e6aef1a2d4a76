"""``aiperf config init``: a new file, from a template or from a command line."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from aiperf import Command, UsageError
from aiperf.parts.plans import asked
from aiperf.parts.tools import table, width
from aiperf.sdk.registry import InstalledPlugins

from aiperf_command_config.files import written
from aiperf_command_config.library import Template, matching, template
from aiperf_command_config.options import CreateTemplateOptions, InitOptions
from aiperf_command_config.schema import schema_line
from aiperf_command_config.writing import dumped, secrets, tree

_MINIMAL = "minimal"


class Init(Command[InitOptions]):
    """Prints or writes the file, or lists the templates.

    Raises:
        AiperfError: There is no such template, the command line has faults, or the file exists.
    """

    def run(self, options: InitOptions, words: Sequence[str]) -> int:
        if options.listed or options.search is not None or options.category is not None:
            if options.template is not None or options.from_line is not None or options.output is not None:
                raise UsageError("a list and a new file exclude each other", "leave out --list, --search and --category")
            print("\n".join(_listed(matching(options.search, options.category), verbose=options.verbose)))
            return 0
        if options.from_line is not None:
            if options.template is not None or options.model is not None or options.url:
                raise UsageError("--from has the model and the server in its line", "leave out --template, --model and --url")
            text = _of_line(self.registry, options.from_line)
        else:
            text = template(options.template or _MINIMAL).made(options.model, options.url)
        written(f"{schema_line(self.registry)}{text}", options.output)
        return 0


class CreateTemplate(Command[CreateTemplateOptions]):
    """genai-perf's command of this name.

    Raises:
        ConfigError: The file exists, or can't be written.
    """

    def run(self, options: CreateTemplateOptions, words: Sequence[str]) -> int:
        written(f"{schema_line(self.registry)}{template(_MINIMAL).text}", options.output)
        print(f"run it with aiperf profile --config {shlex.quote(str(options.output))}", file=sys.stderr)
        return 0


def _listed(found: Sequence[Template], *, verbose: bool) -> Iterator[str]:
    for category in dict.fromkeys(each.category for each in found):
        yield f"{category}:"
        rows = [(each.name, f"{each.purpose} ({each.uses})" if verbose else each.purpose) for each in found]
        yield from table([row for row, each in zip(rows, found, strict=True) if each.category == category], width())
        yield ""
    yield "Write one with aiperf config init --template NAME --output FILE."


def _of_line(registry: InstalledPlugins, line: str) -> str:
    """The file of a command line.

    Raises:
        AiperfError: It is no line of aiperf profile, or has faults.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"--from: the line has no words: {error}", "are its quotation marks in pairs?") from error
    name = Path(words[0]).name if words else ""
    if name == "aiperf":
        words = words[1:]
    if words[:1] == ["profile"]:
        words = words[1:]
    elif name == "aiperf" or not words or not words[0].startswith("-"):
        example = 'for example: --from "aiperf profile -m MODEL --concurrency 8"'
        raise UsageError("--from takes a line of aiperf profile", example)
    found = asked(registry, words)
    whole, lost = tree(found.given, found.space, found.planner)
    for flag in lost:
        print(f"left out: {flag} has no place in a file", file=sys.stderr)
    for flag, variable in secrets(found.given):
        print(f"{flag} is secret: the file reads it from the variable {variable}, which must be set", file=sys.stderr)
    return dumped(whole)


__all__ = ["CreateTemplate", "Init"]
