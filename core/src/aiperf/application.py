"""The Typer application: one function a command, its signature made from option specs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from aiperf.argv import Option, Scan
from aiperf.commandline import Face, Values
from aiperf.descriptor import OptionSpec
from aiperf.errors import UsageError


def application(faces: Sequence[Face]) -> typer.Typer:
    """The Typer application of these commands.  Help isn't asked of it: ours is plain, and costs no import of Typer."""
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_top)  # with it, one command alone still goes by its name
    for face in faces:
        app.command(face.name, help=face.summary, add_help_option=False)(_function(face))
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
    except SystemExit as ended:  # completion ends like this, and Typer when nobody reads standard output
        code = ended.code
    return code if isinstance(code, int) else 0


def _top() -> None:
    """Nothing of its own."""


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
