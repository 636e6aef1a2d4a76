"""The command line: words in, an exit code out.  A test may pass its own registry."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from aiperf import environment
from aiperf.cli import help_text, nested
from aiperf.cli.commandline import (
    CONFIG,
    DISABLED,
    FIRST,
    PINS,
    CommandLine,
    LineCompleter,
    Scan,
    Subcommand,
    did_you_mean,
    options_of,
)
from aiperf.cli.settings import (
    is_study,
    profile_settings,
    raise_all,
    run_plugins,
    single,
    validated,
)
from aiperf.errors import AiperfError, UsageError
from aiperf.registry.guides import INSTALL_SUITE, unknown_command, unknown_option, where_is
from aiperf.registry.registry import Registry
from aiperf.sdk.categories import chosen_by
from aiperf.sdk.command import PluginOptions
from aiperf.sdk.configuration import Option
from aiperf.sdk.descriptor import Descriptor, canonical
from aiperf.terminal import say

if TYPE_CHECKING:
    from aiperf.cli.configuration_file import ConfigurationFile
    from aiperf.planning.problems import Settings
    from aiperf.study.request import StudyRequest

T = TypeVar("T")

PLUGINS = "plugins"
"""The kernel's own command of this name is for installations where no package has one."""
SUMMARY = "Measure generative-AI inference servers: latency, throughput and goodput under load."

def main(words: Sequence[str] | None = None, registry: Registry | None = None) -> int:
    """Run a command line (None: the process's); returns the exit code.  *registry* None discovers what is installed."""
    try:
        code = _main(list(sys.argv[1:] if words is None else words), registry)
        sys.stdout.flush()
        return code
    except AiperfError as error:
        complain(error)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # A calling program's stream: no reader is left, and the text in its buffer must not fail again at exit.
        with contextlib.suppress(OSError, ValueError):  # standard output may be no file at all
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def complain(error: AiperfError) -> None:
    """Print an error, or all of a command's, each with ``error:`` before it and its hints below."""
    for each in single(error):
        first, *hints = each.lines()
        say(f"error: {first}", "       ")
        for hint in hints:
            say(hint, "    ")


def warn(sentence: str) -> None:
    say(f"warning: {sentence}", "         ")


def _main(words: list[str], registry: Registry | None) -> int:
    if words[:1] == ["--version"]:
        from aiperf import __version__

        print(__version__)
        return 0
    for word in words:
        if any("\ud800" <= character <= "\udfff" for character in word):
            raise UsageError(f"{word!r} is not UTF-8", "rename it, or give another name")
    errors: list[AiperfError] = []
    name = words[0] if words else "--help"
    line = CommandLine(words[1:])
    with_file = canonical(name) == "profile" and not line.asks_for_help
    registry, file = opened(registry or Registry.discover(), line, errors, with_file=with_file)
    if (spoken := nested.spoken(registry, words)) is not None:
        name, line = spoken, CommandLine(words[2:])
    if "_AIPERF_COMPLETE" in os.environ or name.partition("=")[0] in ("--install-completion", "--show-completion"):
        return _completed(registry, words)
    commands = _commands(registry, only=name)
    if name.startswith("-"):
        return _top(words, commands)
    command = next((command for command in commands if canonical(command.name) == canonical(name)), None)
    if command is None:
        _refuse_command(name, registry, commands)
    scan = line.resolve(command.options, command=command.name, dashes=command.dashes, extra=command.foreign)
    if scan.help:
        print(command.help(scan.topics, terminal=sys.stdout.isatty()), end="")
        return 0
    if "quiet" not in scan.values().get("", {}):  # else they are for the run's log
        for problem in (*registry.problems, *(registry.losses if command.grouped else ())):
            warn(problem)
    scan.shown.insert(0, name)
    return checked(command, scan, file, errors, command.prepare)()


def _completed(registry: Registry, words: list[str]) -> int:
    """The exit code of the command that answers shells."""
    answering = next((plugin for plugin in registry.all("commands") if plugin.capabilities.get("completes_lines")), None)
    if answering is None:
        raise UsageError("no installed package has shell completion", INSTALL_SUITE)
    command: LineCompleter[Any] = registry.load(answering.category, answering.name)()
    command.registry = registry
    return command.complete(_commands(registry, everything=True), words)


def opened(
    registry: Registry, line: CommandLine, errors: list[AiperfError], *, with_file: bool
) -> tuple[Registry, ConfigurationFile | None]:
    """The registry with the line's pins and switches, and the configuration file that the line names, with those of it."""
    chosen = {spec.field: values for spec in (PINS, DISABLED) if (values := line.early(spec))}
    registry = _chosen(registry, chosen, errors)
    paths = line.early(CONFIG) if with_file else []
    if paths and not paths[0]:
        errors.append(UsageError("--config: the path is empty", "is the variable it comes from set?"))
        paths = []
    try:
        file = None
        if paths:
            from aiperf.cli.configuration_file import ConfigurationFile

            file = ConfigurationFile(registry, Path(paths[0]))
        return (registry if file is None else _chosen(registry, {**file.plugins(), **chosen}, errors)), file
    except AiperfError as error:
        errors += single(error)
        return registry, None


def checked(
    command: Subcommand, scan: Scan, file: ConfigurationFile | None, errors: list[AiperfError], validate: Callable[[Scan], T]
) -> T:
    """What *validate* makes of the scan with the file's values.

    Raises:
        AiperfError: All errors together: those given, the scan's, the file's, and those of *validate*.
    """
    if file is not None:
        scan.configuration, scan.typed_alone = file.plugin, tuple(scan.given)
        sweep = file.sweep(command.options) if canonical(command.name) == "profile" else None
        if sweep is None and not any(value.option.spec.field == "variants" for value in scan.given):
            scan.add(file.values(command.options))
        else:  # the file is read for each cell, with the cell's values
            scan.sweep, scan.file = sweep, file.values
    scan.errors[:0] = errors
    errors = [*scan.errors, *command.miscounted(scan)]
    try:
        valid = validate(scan)
    except AiperfError as error:
        errors += single(error)
    raise_all(errors)
    return valid


def _top(words: list[str], commands: list[Subcommand]) -> int:
    """``aiperf`` with no command: its help."""
    flag = words[0].partition("=")[0] if words else "--help"
    if flag in ("--help", "-h"):
        print(help_text.top(SUMMARY, {one.name: nested.listed(one) for one in commands if " " not in one.name}), end="")
        return 0
    if near := did_you_mean(flag, ["--help", "--version"], 1, 0.7) if flag != "-V" else ["did you mean --version?"]:
        raise UsageError(f"unknown option {flag}", *near)
    names = ", ".join(command.name for command in commands if " " not in command.name)
    raise UsageError(f"unknown option {flag}", f"options follow a command: {names}", "for example: aiperf profile --help")


def _refuse_command(name: str, registry: Registry, commands: list[Subcommand]) -> NoReturn:
    if registry.find("commands", name) is not None:
        registry.ref("commands", name)  # raises the reason why the plugin can't be used
    names = [command.name for command in commands if " " not in command.name]
    if answer := unknown_command(name, registry):
        raise UsageError(f"there is no command {name!r}", answer)
    hints = where_is("commands", name, registry, did_you_mean(name, names, 1, 0.6))
    raise UsageError(f"there is no command {name!r}", f"commands: {', '.join(names)}", *hints)


def _chosen(registry: Registry, words: Mapping[str, Sequence[str]], errors: list[AiperfError]) -> Registry:
    """The registry with these pins and switches, which precede every look-up by name."""
    try:
        pins = _pins(words.get("pins", ()))
        return registry.choosing(pins=pins, disabled=words.get("disabled", ())) if words else registry
    except UsageError as error:
        errors.append(error)
        return registry


def _pins(values: Iterable[str]) -> dict[str, str]:
    for value in values:
        if not value.partition("=")[2]:
            raise UsageError(f"--plugin: {value!r} is not CATEGORY:NAME=DISTRIBUTION", "for example: endpoints:chat=acme-chat")
    return {key: distribution for key, _, distribution in (value.partition("=") for value in values)}


def _commands(registry: Registry, *, only: str = "", everything: bool = False) -> list[Subcommand]:
    """Every subcommand.  Reading options costs time: unless *everything*, only the command named *only* has them."""
    commands = [profile_command(registry, whole=everything or canonical(only) == "profile")]
    plugins = [plugin for plugin in registry.all("commands") if plugin.name != "profile"]
    if registry.find("commands", PLUGINS) is None:
        from aiperf.cli.plugins import plugins_command

        commands.append(plugins_command(registry, PLUGINS, (PINS, DISABLED)))
    return nested.joined(commands + [
        _plugin_command(registry, plugin, name, whole=everything or canonical(only) == canonical(name))
        for plugin, name in zip(plugins, map(nested.name_of, plugins), strict=True)
    ])  # fmt: skip


def _plugin_command(registry: Registry, plugin: Descriptor, name: str, *, whole: bool) -> Subcommand:
    categories = plugin.capabilities.get("options_of", ()) if whole else ()
    owners = [plugin, *(owner for category in categories for owner in registry.all(category))]

    def prepare(scan: Scan) -> Callable[[], int]:
        errors: list[AiperfError] = []
        options = validated(registry, owners, scan, errors, own=plugin.key)
        raise_all(errors)
        own = options.pop(plugin.key, None)
        given = {key: tuple(values) for key, values in scan.values().items()}
        return partial(call, own, scan.words, PluginOptions(registry, options, given))

    def call(own: Any, words: list[str], plugin_options: PluginOptions) -> int:
        from aiperf import logs

        logs.to_console(logs.level_of("info", verbose=False, extra_verbose=False))
        loaded = registry.load("commands", plugin.name)
        command = loaded() if isinstance(loaded, type) else loaded
        command.registry = registry
        if categories:
            command.plugin_options = plugin_options
        code: int = command.run(own, words)
        return code

    arguments, more = (str(plugin.capabilities.get(key, "")) for key in ("arguments", "help"))
    return Subcommand(name, plugin.summary, options_of((), owners), prepare, arguments, more)


def profile_command(registry: Registry, *, whole: bool) -> Subcommand:
    def prepare(scan: Scan) -> Callable[[], int]:
        if is_study(scan):
            from aiperf.cli import studies  # what several runs need, a run by itself doesn't import

            return partial(call_study, studies.requested(registry, scan, options))
        return partial(call, profile_settings(registry, scan))

    def call_study(request: StudyRequest) -> int:
        from aiperf.cli import studies

        warn_of_all(request.base, registry)
        return studies.call(request)

    def call(settings: Settings) -> int:
        if settings.kernel.dry_run:
            from aiperf.run.dry_run import dry_run as profile
        else:
            from aiperf.run.run import profile
        warn_of_all(settings, registry)
        return profile(settings, registry)

    options: tuple[Option, ...] = ()
    if whole:
        options = options_of((*registry.kernel_options, *FIRST), run_plugins(registry))
    categories = {spec.field: chosen_by(spec.flags) for spec in registry.kernel_options}
    return Subcommand(
        "profile", "Send load to an inference server and report how fast it answers.",
        options, prepare, dashes=False,
        installed={field: registry.names(category) for field, category in categories.items() if category},
        foreign=lambda flag: unknown_option(flag, registry), grouped=True,
        more=f"--model is required. For example: {help_text.EXAMPLE}",
    )  # fmt: skip


def _logged(settings: Settings, registry: Registry) -> Callable[[str], None]:
    """For a quiet run: gives warnings to its log alone, those of the registry first."""
    from aiperf import logs

    logs.to_console(settings.log_level, quiet=True)
    for problem in (*registry.problems, *registry.losses):
        logs.early.warning("%s", problem)
    return partial(logs.early.warning, "%s")


def warn_of_all(settings: Settings, registry: Registry) -> None:
    """Warn of packages that can't be used, and of variables that nobody reads."""
    say = _logged(settings, registry) if settings.kernel.quiet else warn
    warn_of_broken(registry, say)
    plugins = (plugin for category in registry.categories() for plugin in registry.all(category))
    for sentence in environment.unread(name for plugin in plugins for name in plugin.docs.variables):
        say(sentence)


def warn_of_broken(registry: Registry, say: Callable[[str], object]) -> None:
    """Warn of each package with plugins that a run can't use; the plugins with one cause share a sentence."""
    causes: dict[tuple[str, str | None], list[str]] = {}
    for plugin in registry.broken:
        if plugin.category != "commands":
            causes.setdefault((plugin.package, plugin.broken), []).append(plugin.key)
    for (package, cause), names in causes.items():
        say(f"{'plugin' if len(names) == 1 else 'plugins'} {', '.join(names)} of {package} can't be used: {cause}")
