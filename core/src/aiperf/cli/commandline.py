"""A subcommand: its options, its help and its action."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from aiperf.cli import help_text
from aiperf.cli.argv import Scan
from aiperf.errors import UsageError
from aiperf.redaction import redact
from aiperf.registry.precedence import same
from aiperf.sdk.configuration import Option, Target
from aiperf.sdk.descriptor import Descriptor, OptionSpec


class Subcommand(Struct, frozen=True):
    """One subcommand.

    summary: one sentence, for the list of commands.  more: further sentences of its own help.
    arguments: metavars of positional words (``DIR...``, ``[CATEGORY]``); "" takes none.  settings: validates a scan, and
    raises all its errors.  call: runs the command with the settings; returns the exit code.  dashes: whether ``--`` may
    separate words from options.  installed: names to choose from, by field.  foreign: a hint for each flag of other programs.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    settings: Callable[[Scan], Any]
    call: Callable[[Any], int]
    arguments: str = ""
    more: str = ""
    dashes: bool = True
    installed: Mapping[str, Sequence[str]] = {}
    foreign: Mapping[str, str] = {}

    def help(self) -> str:
        usage = f"aiperf {self.name} [OPTIONS]"
        text = f"{self.summary} {self.more}".rstrip()
        return help_text.command(f"{usage} {self.arguments}".rstrip(), text, self.options, self.installed)

    def miscounted(self, scan: Scan) -> list[UsageError]:
        """The errors of a scan with too few or too many words."""
        metavars = self.arguments.split()
        least = sum(not metavar.startswith("[") for metavar in metavars)
        most = None if "..." in self.arguments else len(metavars)
        if len(scan.words) < least and not scan.errors:
            return [UsageError(f"aiperf {self.name} needs {' '.join(metavars)}", f"see aiperf {self.name} --help")]
        if most is not None and len(scan.words) > most:
            extra = ", ".join(map(repr, map(redact, scan.words[most:])))
            wanted = f"takes {self.arguments}" if self.arguments else "takes only options"
            return [UsageError(f"left over: {extra}; aiperf {self.name} {wanted}", f"see aiperf {self.name} --help")]
        return []


def options_of(own: Iterable[OptionSpec], plugins: Iterable[Descriptor] = (), *, owner: str = "") -> tuple[Option, ...]:
    """The command's own options and those of plugins.  What two declare alike is one option, delivered to both."""
    merged: dict[tuple[str, ...], Option] = {spec.flags: Option(spec, (Target(owner, spec.field),)) for spec in own}
    for plugin in plugins:
        whose = plugin.key
        for spec in plugin.options:
            target = Target(whose, spec.field)
            known = merged.get(spec.flags)
            if known is not None and same(known.spec, spec):
                merged[spec.flags] = Option(known.spec, (*known.targets, target))
            elif known is None:
                merged[spec.flags] = Option(_headed(spec, plugin), (target,))
    return tuple(merged.values())


def _headed(spec: OptionSpec, plugin: Descriptor) -> OptionSpec:
    """The option under the plugin's own heading, where it names none."""
    if spec.group or plugin.category == "commands":
        return spec
    return structs.replace(spec, group=plugin.name.replace("_", " ").capitalize())
