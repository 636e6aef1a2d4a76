"""A subcommand as the command line sees it, and its Typer function with a signature made from option specs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer
from msgspec import Struct, structs
from typer.core import TyperCommand, TyperGroup

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
    that was given, the words and the scan they come from; returns the exit code.  dashes: whether ``--`` means anything.
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

    def empty(self) -> Face:
        """The face without its options: enough for a list of commands."""
        return Face(self.name, self.summary, (), self.call, self.arguments)


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


def application(faces: Sequence[Face], top_help: Callable[[], str]) -> typer.Typer:
    """The Typer application of these commands; its help is ours, plain."""
    names = {"help_option_names": ["-h", "--help"]}
    app = typer.Typer(cls=_group(top_help), rich_markup_mode=None, pretty_exceptions_enable=False, context_settings=names)
    app.callback(invoke_without_command=True)(_top)
    for face in faces:
        app.command(face.name, cls=_command(face), context_settings=names, help=face.summary)(_function(face))
    return app


def run(app: typer.Typer, words: Sequence[str], read: Scan | None = None) -> int:
    """Let Typer read the words and call the command; returns its exit code.  *read*: what the words were made from.

    Raises:
        UsageError: Typer could not read them.
    """
    command = typer.main.get_command(app)
    try:
        code = command.main(list(words), prog_name="aiperf", standalone_mode=False, obj=read)
    except typer.TyperException as error:
        raise UsageError(error.format_message()) from error
    return code if isinstance(code, int) else 0


def _top(version: Annotated[bool, typer.Option("--version", help="Show the version number.")] = False) -> None:
    if version:
        from aiperf import __version__

        typer.echo(__version__)


def _command(face: Face) -> type[TyperCommand]:
    class Plain(TyperCommand):
        def format_help(self, ctx: Any, formatter: Any) -> None:
            formatter.write(face.help())

    return Plain


def _group(text: Callable[[], str]) -> type[TyperGroup]:
    class Plain(TyperGroup):
        def format_help(self, ctx: Any, formatter: Any) -> None:
            formatter.write(text())

    return Plain


def _function(face: Face) -> Callable[..., int]:
    """One function for Typer: a parameter an option, all of them text, so that every error can be told at once."""
    by_parameter = {f"option_{index}": option for index, option in enumerate(face.options)}

    def command(**given: Any) -> int:
        values: Values = {}
        for name, option in by_parameter.items():
            value = given[name]
            if value is None or value == []:
                continue
            for target in option.targets:
                values.setdefault(target.owner, {})[target.field] = _text(option.spec, value)
        return face.call(values, list(given.get("words") or ()), given["context"].obj)

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("context", keyword, annotation=typer.Context)]
    parameters += [
        inspect.Parameter(name, keyword, default=None, annotation=_annotation(face, option))
        for name, option in by_parameter.items()
    ]
    if face.arguments:
        words = Annotated[list[str] | None, typer.Argument(metavar=face.arguments)]
        parameters.append(inspect.Parameter("words", keyword, default=None, annotation=words))
    vars(command)["__signature__"] = inspect.Signature(parameters)
    return command


def _annotation(face: Face, option: Option) -> Any:
    spec = option.spec
    if spec.arity == "none":
        flags = list(spec.flags)
        if spec.negative:
            flags[0] = f"{flags[0]}/{spec.negative}"
        return Annotated[bool | None, typer.Option(*flags, help=spec.help, hidden=spec.hidden)]
    choices = list(spec.choices or face.installed.get(spec.field, ()))

    def complete(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return Annotated[
        list[str] | None,
        typer.Option(
            *spec.flags, help=spec.help, metavar=spec.metavar, hidden=spec.hidden, autocompletion=complete if choices else None
        ),
    ]


def _text(spec: OptionSpec, value: Any) -> str | bool | list[str]:
    if spec.arity == "none":
        return bool(value)
    if spec.arity == "one":
        return str(value[0])
    # An option that may stand alone arrives as one empty value.
    return [] if spec.arity == "maybe" and value == [""] else [str(one) for one in value]
