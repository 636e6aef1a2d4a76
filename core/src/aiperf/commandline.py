"""A subcommand as the command line sees it: its options, its help, and what it does with what was given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, structs

from aiperf import argv, helptext
from aiperf.argv import Option, Scan, Target
from aiperf.descriptor import Descriptor, OptionSpec
from aiperf.errors import UsageError
from aiperf.registry.precedence import same

Values = dict[str, dict[str, "str | bool | list[str]"]]
"""What was given, as text: by owner (``category:name`` of a plugin, "" for the command itself), then by field."""


class Face(Struct, frozen=True):
    """One subcommand.

    summary: one sentence, for the list of commands.  more: further sentences of its own help.
    arguments: metavars of positional words (``DIR...``, ``[CATEGORY]``); "" takes none.  call: what it does with the text
    that was given, the words and the scan they come from; returns the exit code.  check: raises what is wrong with the
    text, and does nothing else.  dashes: whether ``--`` means anything.
    installed: names to choose from, by field.  foreign: flags of other programs, with the sentence to say.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    call: Callable[[Values, list[str], Scan], int]
    arguments: str = ""
    more: str = ""
    dashes: bool = True
    installed: Mapping[str, Sequence[str]] = {}
    foreign: Mapping[str, str] = {}
    check: Callable[[Values, Scan], object] | None = None

    def help(self) -> str:
        usage = f"aiperf {self.name} [OPTIONS]"
        text = f"{self.summary} {self.more}".rstrip()
        return helptext.command(f"{usage} {self.arguments}".rstrip(), text, self.options, installed=self.installed)

    def scan(self, words: Sequence[str]) -> Scan:
        """Read the command's words; too few or too many positional ones are errors too."""
        read = argv.scan(words, self.options, dashes=self.dashes, extra=dict(self.foreign))
        if not read.help:
            read.errors += self._miscounted(read)
        return read

    def _miscounted(self, read: Scan) -> list[UsageError]:
        metavars = self.arguments.split()
        least = sum(not one.startswith("[") for one in metavars)
        most = None if "..." in self.arguments else len(metavars)
        if len(read.words) < least and not read.errors:
            return [UsageError(f"aiperf {self.name} needs {' '.join(metavars)}", f"see aiperf {self.name} --help")]
        if most is not None and len(read.words) > most:
            # An unknown option's value lands here too, and has been spoken of.
            extra = ", ".join(map(repr, map(argv.redact, read.words[most:])))
            wanted = f"takes {self.arguments}" if self.arguments else "takes only options"
            return [UsageError(f"left over: {extra}; aiperf {self.name} {wanted}", f"see aiperf {self.name} --help")]
        return []


def text_of(read: Scan) -> Values:
    """What a scan holds, by owner and field."""
    values: Values = {}
    for one in read.given:
        text = one.on if one.on is not None else one.values[0] if one.option.spec.arity == "one" else one.values
        for target in one.option.targets:
            values.setdefault(target.owner, {})[target.field] = text
    return values


def options_of(own: Iterable[OptionSpec], plugins: Iterable[Descriptor] = (), *, owner: str = "") -> tuple[Option, ...]:
    """The command's own options and those of plugins.  What two declare alike is one option, delivered to both."""
    merged: dict[tuple[str, ...], Option] = {spec.flags: Option(spec, (Target(owner, spec.field),)) for spec in own}
    for plugin in plugins:
        whose = f"{plugin.category}:{plugin.name}"
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
