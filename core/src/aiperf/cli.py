"""The face: a command line in, an exit code out.  Built by functions that take a registry, so that a test brings its own."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiperf import argv, helptext
from aiperf.argv import CONFIG, DISABLED, FIRST, PINS, Option, Scan
from aiperf.command import Others
from aiperf.commandline import Face, Values, options_of, text_of
from aiperf.descriptor import Descriptor, canonical
from aiperf.errors import AiperfError, ConfigErrors, UsageError
from aiperf.registry import Registry
from aiperf.registry.precedence import label

if TYPE_CHECKING:
    from aiperf.configfile import ConfigFile

SUMMARY = "Measure generative-AI inference servers: latency, throughput and goodput under load."

_NOT_HERE = "belongs to the {} endpoint package, which is not installed"
FOREIGN = {
    "--session-concurrency": "use --concurrency",
    "--server-metrics-url": "use --gpu-telemetry URL, not --server-metrics",
    "--server-metrics-urls": "use --gpu-telemetry URL, not --server-metrics",
    "--max-threads": "use --workers-max",
    "--backend": _NOT_HERE.format("kserve"),
    "--grpc-method": _NOT_HERE.format("dynamic_grpc"),
    "--output-tokens-mean-deterministic": _NOT_HERE.format("kserve or tensorrtllm_engine"),
    "--checkpoint-dir": "the journal does it: aiperf report DIR after a crash",
    "--enable-checkpointing": "the journal does it: aiperf report DIR after a crash",
    "--generate-plots": "run aiperf plot afterwards",
    "--measurement-interval": "not applicable here; use --request-count or --benchmark-duration",
    "-p": "not applicable here; use --request-count or --benchmark-duration",
    "--stability-percentage": "not applicable here; use --request-count or --benchmark-duration",
    "-s": "not applicable here; use --request-count or --benchmark-duration",
}
"""Options of genai-perf that have no equivalent of that name, and what to do instead."""

_CHOSEN_BY_NAME = {
    "endpoint_type": "endpoints",
    "transport": "transports",
    "arrival_pattern": "arrivals",
    "warmup_arrival_pattern": "arrivals",
    "ramp": "ramps",
    "sampling": "samplers",
    "url_strategy": "url_strategies",
}
"""Kernel options that take the name of a plugin."""


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
        # Nobody reads our output any more.  What Python still holds must not fail again at exit.
        with contextlib.suppress(OSError, ValueError):  # standard output may be no file at all
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def complain(error: AiperfError) -> None:
    """Print an error, or all of a command's, each with ``error:`` before it and its hints below."""
    for one in error.errors if isinstance(error, ConfigErrors) else [error]:
        first, *rest = one.lines()
        print("\n".join([f"error: {first}", *rest]), file=sys.stderr)


def warn(sentence: str) -> None:
    print(f"warning: {sentence}", file=sys.stderr)


def _main(words: list[str], registry: Registry | None) -> int:
    if words[:1] == ["--version"]:
        from aiperf import __version__

        print(__version__)
        return 0
    errors: list[AiperfError] = []
    config = _config(words)
    registry = _chosen(registry or Registry.discover(), words, config, errors)
    if "_AIPERF_COMPLETE" in os.environ:
        from aiperf.application import application, run

        return run(application(_faces(registry, everything=True)), words)
    name = words[0] if words else "--help"
    faces = _faces(registry, only=name)
    if name.startswith("-"):
        return _top(words, faces)
    face = next((face for face in faces if canonical(face.name) == canonical(name)), None)
    if face is None:
        raise _unknown_command(name, registry, faces)
    read = face.scan(words[1:])
    if read.help:
        print(face.help(), end="")
        return 0
    for problem in registry.problems:
        warn(problem)
    if config is not None:
        config.fill(read, face.options)
    errors += read.errors
    if errors and face.check is not None:
        # What could be read is checked too, so that one go shows every mistake.
        try:
            face.check(text_of(read), read)
        except AiperfError as error:
            errors += error.errors if isinstance(error, ConfigErrors) else [error]
    together(_distinct(errors))
    read.shown.insert(0, name)
    from aiperf.application import application, run

    return run(application([face]), [face.name, *read.plain()], read)


def together(errors: Sequence[AiperfError]) -> None:
    """Raise what there is to raise: one error as itself, several as one report."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ConfigErrors(errors)


def _top(words: list[str], faces: list[Face]) -> int:
    """``aiperf`` with no command: help, the version, completion."""
    flag = words[0].partition("=")[0] if words else "--help"
    if flag in ("--help", "-h"):
        print(helptext.top(SUMMARY, {face.name: face.summary for face in faces}), end="")
        return 0
    if flag in ("--install-completion", "--show-completion"):
        from aiperf.application import application, run

        return run(application([]), words)
    names = ", ".join(face.name for face in faces)
    raise UsageError(f"unknown option {flag}", f"options follow a command: {names}", "for example: aiperf profile --help")


def _unknown_command(name: str, registry: Registry, faces: list[Face]) -> AiperfError:
    found = registry.find("commands", name)
    if found is not None:
        try:
            registry.ref("commands", name)
        except AiperfError as error:
            return error
    names = [face.name for face in faces]
    close = get_close_matches(name, names, 1, 0.6)
    hints = [f"commands: {', '.join(names)}", *([f"did you mean {close[0]}?"] if close else [])]
    return UsageError(f"there is no command {name!r}", *hints)


def _config(words: list[str]) -> ConfigFile | None:
    """The configuration file that a run is given."""
    if not words or canonical(words[0]) != "profile" or not any(word.startswith(CONFIG.flags) for word in words):
        return None
    from aiperf.configfile import ConfigFile

    read = argv.scan(words[1:], options_of([CONFIG]))
    return ConfigFile(Path(read.given[0].values[0])) if read.given and not read.help else None


def _chosen(registry: Registry, words: list[str], config: ConfigFile | None, errors: list[AiperfError]) -> Registry:
    """The registry with the pins and switches of the command line, which count before anything is looked up by name."""
    read = argv.scan(words, options_of([PINS, DISABLED]))
    given = config.plugins() if config is not None else {}
    given |= {one.option.spec.field: one.values for one in read.given}
    try:
        return registry.choosing(pins=_pins(given.get("pins", ())), disabled=given.get("disabled", ())) if given else registry
    except UsageError as error:
        errors.append(error)
        return registry


def _pins(values: Iterable[str]) -> dict[str, str]:
    pins = {}
    for value in values:
        key, equals, distribution = value.partition("=")
        if not equals or not distribution:
            raise UsageError(f"--plugin: {value!r} is not CATEGORY:NAME=DISTRIBUTION", "for example: endpoints:chat=acme-chat")
        pins[key] = distribution
    return pins


def _faces(registry: Registry, *, only: str = "", everything: bool = False) -> list[Face]:
    """Every subcommand; those that aren't asked for come without options, which cost time."""
    from aiperf.inspection import plugins_face

    profile = _profile_face(registry, whole=everything or canonical(only) == "profile")
    faces = [profile, plugins_face(registry, (PINS, DISABLED))]
    plugins = [one for one in registry.all("commands") if one.name not in ("profile", "plugins")]
    return faces + [_plugin_face(registry, one, whole=everything or canonical(only) == canonical(one.name)) for one in plugins]


def _plugin_face(registry: Registry, one: Descriptor, *, whole: bool) -> Face:
    def call(values: Values, words: list[str], read: Scan) -> int:
        from aiperf import logs

        logs.to_console(logs.level_of("info", verbose=False, extra_verbose=False))
        options = _command_options(registry, one, values, read)
        found = registry.load("commands", one.name)
        command = found() if isinstance(found, type) else found
        if categories:
            models = _plugin_models(registry, others, values, read)
            together(_conflicts(models, values, read))
            command.others = Others(registry, models, {owner: tuple(fields) for owner, fields in values.items()})
        code: int = command.run(options, words)
        return code

    def check(values: Values, read: Scan) -> object:
        return _command_options(registry, one, values, read), _plugin_models(registry, others, values, read)

    arguments = str(one.capabilities.get("arguments", ""))
    name = one.name.replace("_", "-")
    categories = one.capabilities.get("options_of", ()) if whole else ()
    others = [each for category in categories for each in registry.all(category)]
    return Face(name, one.summary, options_of((), [one, *others]), call, arguments, check=check)


def _command_options(registry: Registry, one: Descriptor, values: Values, read: Scan) -> Any:
    model = registry.load_options_model(one)
    if model is None:
        return None
    from aiperf.optionspec import validate

    owner = f"{one.category}:{one.name}"
    made, errors = validate(model, one.options, values.get(owner, {}), _typed(read, owner))
    together(errors)
    return made


def _plugin_models(registry: Registry, plugins: Iterable[Descriptor], values: Values, read: Scan) -> dict[str, Any]:
    """The option models of these plugins, by ``category:name``; without one that needs an option which nobody gave it.

    Raises:
        UsageError, ConfigErrors: Every value that can't be, said of the flag as typed.
    """
    from aiperf.optionspec import validate

    errors: list[AiperfError] = []
    models: dict[str, Any] = {}
    for one in plugins:
        owner = f"{one.category}:{one.name}"
        try:
            model = registry.load_options_model(one)
        except AiperfError as error:
            if owner in values:
                errors.append(error)
            registry.mark_broken(one, error.message)
            continue
        if model is None:
            continue
        made, wrong = validate(model, one.options, values.get(owner, {}), _typed(read, owner))
        # A plugin that nobody gave an option may need one: that is for whoever chooses it to say.
        errors += wrong if owner in values else []
        if made is not None:
            models[owner] = made
    together(_distinct(errors))
    return models


def _conflicts(models: Mapping[str, Any], values: Values, read: Scan) -> list[AiperfError]:
    """What is wrong among the options that were given, as their plugins say."""
    from aiperf.optionspec import conflicts

    given = [owner for owner in models if owner in values]
    return [error for owner in given for error in conflicts(owner, models[owner], _typed(read, owner))]


def _profile_face(registry: Registry, *, whole: bool) -> Face:
    def call(values: Values, words: list[str], read: Scan) -> int:
        settings = profile_settings(registry, values, read)
        from aiperf.run import profile

        for sentence in _broken(registry):
            warn(sentence)
        return profile(settings, registry)

    options: tuple[Option, ...] = ()
    if whole:
        plugins = [one for category in registry.categories() if category != "commands" for one in registry.all(category)]
        options = options_of((*registry.kernel_options, *FIRST), plugins)
    return Face(
        "profile",
        "Send load to an inference server and report how fast it answers.",
        options,
        call,
        dashes=False,
        installed={field: registry.names(category) for field, category in _CHOSEN_BY_NAME.items()},
        foreign=FOREIGN,
        check=lambda values, read: profile_settings(registry, values, read),
    )


def _broken(registry: Registry) -> Iterator[str]:
    """A sentence on each package of which something can't be used in a run; plugins that have one cause share it."""
    causes: dict[tuple[str, str | None], list[str]] = {}
    for one in registry.broken:
        if one.category != "commands":
            causes.setdefault((label(one), one.broken), []).append(f"{one.category}:{one.name}")
    for (package, cause), names in causes.items():
        yield f"{'plugin' if len(names) == 1 else 'plugins'} {', '.join(names)} of {package} can't be used: {cause}"


def profile_settings(registry: Registry, values: Values, read: Scan) -> Any:
    """The validated :class:`~aiperf.settings.Settings` of what was given.

    Raises:
        UsageError, ConfigErrors: Every value that can't be, said of the flag as typed.
    """
    from aiperf.options import KernelOptions
    from aiperf.optionspec import validate
    from aiperf.settings import Settings

    own = dict(values.get("", {}))
    own.pop("config", None)
    pinned, disabled = own.pop("pins", ()), own.pop("disabled", ())
    kernel, errors = validate(KernelOptions, registry.kernel_options, own, _typed(read, ""))
    pins: dict[str, str] = {}
    try:
        pins = _pins(pinned if isinstance(pinned, list | tuple) else ())
    except UsageError as error:
        errors.append(error)
    plugins: dict[str, Any] = {}
    installed = [one for category in registry.categories() if category != "commands" for one in registry.all(category)]
    try:
        plugins = _plugin_models(registry, installed, values, read)
    except AiperfError as error:
        errors += error.errors if isinstance(error, ConfigErrors) else [error]
    together(_distinct(errors))
    return Settings(
        kernel=kernel,
        plugins=plugins,
        typed=read.typed(),
        command=argv.quoted(["aiperf", *read.shown]),
        pins=pins,
        disabled=tuple(disabled) if isinstance(disabled, list | tuple) else (),
    )


def _typed(read: Scan, owner: str) -> dict[str, str]:
    """The flags as typed, by field of one owner."""
    return {
        target.field: one.typed for one in read.given for target in one.option.targets if target.owner == owner
    }


def _distinct(errors: Sequence[AiperfError]) -> list[AiperfError]:
    """Without repetitions: an option that two packages share is wrong for both."""
    return list({tuple(error.lines()): error for error in errors}.values())
