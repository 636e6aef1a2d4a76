"""Shell completion: a Typer application with the options of every command.  Typer neither runs commands nor prints help."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from aiperf import UsageError
from aiperf.parts.tools import LineCompleter, Subcommand
from aiperf.sdk.configuration import Option

from aiperf_command_completion.words import Words

SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")


class Completion(LineCompleter[None]):
    """``aiperf completion [SHELL]``, by default of the current shell."""

    arguments = "[SHELL]"

    def run(self, options: Any, words: Sequence[str]) -> int:
        if not words:
            return self.complete([], ["--show-completion"])
        _check(words[0])
        os.environ["_AIPERF_COMPLETE"] = f"source_{words[0]}"
        return self.complete([], [])

    def complete(self, commands: Sequence[Subcommand], words: Sequence[str]) -> int:
        """Answer a shell, or ``--install-completion`` and ``--show-completion``; returns the exit code.

        Raises:
            UsageError: Typer can't read the words, or there is no such shell.
        """
        flag, *more = [part for word in words[:1] for part in word.split("=", 1)] + list(words[1:]) or [""]
        if more and flag in ("--install-completion", "--show-completion"):
            return _of_shell(flag, more)
        app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
        app.callback(invoke_without_command=True)(_top)  # without a callback Typer drops the name of a single command
        groups = {command.name: _group(app, command) for command in commands if command.words}
        for command in commands:
            if command.words:
                continue
            first, _, word = command.name.partition(" ")
            function = _function(command, Words(self.registry, command.name))
            (groups[first] if word else app).command(word or first, help=command.summary, add_help_option=False)(function)
        try:
            code = typer.main.get_command(app).main(list(words), prog_name="aiperf", standalone_mode=False)
        except typer.TyperException as error:
            raise UsageError(error.format_message()) from error
        except SystemExit as ended:  # completion ends like this
            code = ended.code
        return code if isinstance(code, int) else 0


def _check(shell: str) -> None:
    if shell not in SHELLS:
        raise UsageError(f"there is no completion for {shell!r}", f"shells: {', '.join(SHELLS)}")


def _of_shell(flag: str, words: Sequence[str]) -> int:
    """``--install-completion`` or ``--show-completion`` with a shell, ``--shell`` before it or not, and ``--output FILE``.

    Typer's own flags ask which shell is the present one.
    """
    from typer._completion_shared import _get_shell_name, get_completion_script, install

    named, output = _shell_and_output(flag, words)
    shell = named or _get_shell_name() or ""
    if not shell:
        raise UsageError("which shell this terminal has can't be told", f"name it: {flag} --shell bash")
    _check(shell)
    if flag == "--show-completion":
        return Completion().run(None, [shell])
    if output:
        script = get_completion_script(prog_name="aiperf", complete_var="_AIPERF_COMPLETE", shell=shell)
        try:
            Path(output).write_text(f"{script}\n")
        except OSError as error:
            raise UsageError(f"--output {output} can't be written: {error.strerror}", "name another file") from error
        print(f"the completion script of {shell} is in {output}: have the shell read it when it starts")
        return 0
    shell, path = install(shell=shell, prog_name="aiperf")
    print(f"{shell} completion is installed in {path}; a new terminal has it")
    return 0


def _shell_and_output(flag: str, words: Sequence[str]) -> tuple[str, str]:
    """The shell and the file among *words*, "" where there is none."""
    found = {"--shell": "", "--output": ""}
    names = {"--shell": "--shell", "--output": "--output", "-o": "--output"}
    rest = [part for word in words for part in (word.split("=", 1) if word.partition("=")[0] in names else [word])]
    more = "" if flag == "--show-completion" else ", and --output FILE"
    while rest:
        word = rest.pop(0)
        name = names.get(word, "" if word.startswith("-") else "--shell")
        if not name or found[name] or (name == "--output" and flag == "--show-completion"):
            raise UsageError(f"left over: {word!r}; {flag} takes one shell{more}")
        if word in names and not rest:
            raise UsageError(f"{word} needs a value", f"shells: {', '.join(SHELLS)}" if name == "--shell" else "name a file")
        found[name] = rest.pop(0) if word in names else word
    return found["--shell"], found["--output"]


def _group(app: typer.Typer, command: Subcommand) -> typer.Typer:
    """A command with words, as an application below *app*."""
    group = typer.Typer(rich_markup_mode=None)
    group.callback(invoke_without_command=True)(_function(command, None))
    app.add_typer(group, name=command.name, help=command.summary, add_help_option=False)
    return group


def _top() -> None:
    """The application without a command."""


def _function(command: Subcommand, words: Words | None) -> Callable[..., None]:
    """A function whose signature has a parameter for each option, and one for the words."""

    def function(**_: object) -> None:
        """Completion calls no command."""

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(f"option_{index}", keyword, default=None, annotation=_annotation(command, option))
        for index, option in enumerate(command.options)
    ]
    if words:
        argument = Annotated[list[str] | None, typer.Argument(autocompletion=words.matching)]
        parameters.append(inspect.Parameter("words", keyword, default=None, annotation=argument))
    vars(function)["__signature__"] = inspect.Signature(parameters)
    return function


def _annotation(command: Subcommand, option: Option) -> Any:
    spec = option.spec
    if spec.arity == "none":
        flags = list(spec.flags)
        if spec.negative:
            flags[0] = f"{flags[0]}/{spec.negative}"
        return Annotated[bool | None, typer.Option(*flags, help=spec.help, hidden=spec.hidden)]
    choices = list(spec.choices or command.installed.get(spec.field, ()))

    def matching(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return Annotated[
        list[str] | None,
        typer.Option(
            *spec.flags, help=spec.help, metavar=spec.metavar, hidden=spec.hidden, autocompletion=matching if choices else None
        ),
    ]
