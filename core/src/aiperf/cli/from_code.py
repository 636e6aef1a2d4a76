"""Runs from Python: ``aiperf.profile(...)`` instead of ``aiperf profile ...``, and ``aiperf.Run`` for one after the other."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import resource
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

from aiperf import logs
from aiperf.cli import main
from aiperf.cli.commandline import CommandLine, Scan
from aiperf.cli.settings import asks_for_several, is_study, profile_settings
from aiperf.errors import AiperfError, ConfigErrors, UsageError
from aiperf.registry.registry import Registry
from aiperf.run.diverted import divert, undivert
from aiperf.run.fleet import Fleet
from aiperf.run.run import execute
from aiperf.run.start import Interruption, Signals
from aiperf.sdk.configuration import Option, OptionValue
from aiperf.sdk.descriptor import OptionSpec
from aiperf.sdk.live import EndKind

if TYPE_CHECKING:
    from aiperf.planning.problems import Settings
    from aiperf.sdk.summary import Summary

log = logging.getLogger(__name__)

_FLAG = re.compile(r"--([a-z][a-z0-9-]*)")

T = TypeVar("T")
Word: TypeAlias = str | float | Path
Value: TypeAlias = Word | Sequence[Word] | Mapping[str, object] | None


def profile(words: str | Sequence[str] = (), /, *, console: bool = False, **options: Value) -> Summary:
    """Send load to an inference server as ``aiperf profile`` does, and return the results.  Blocks until the run has ended.

    *words*: options as on the command line, as a list or as one line for a shell.
    *options*: the same by name, ``request_count=100`` for ``--request-count 100``.  True and False switch a flag on and off,
    a list repeats an option, a dictionary is its JSON text, None leaves it out.  Several runs are for :func:`sweep`.
    *console*: print the log, a live display and the results as the command does.  Otherwise nothing is printed: log lines go
    to the program's ``logging`` (logger ``aiperf``), a display is shown only where ``ui`` names one, and what exporters print
    is dropped.  Files are written in both cases.

    Failed requests are in the summary and raise nothing.  The first Ctrl-C or SIGTERM ends the load; the summary then says
    ``cancelled``.  A signal before the load, and a second one, end the run, and are then delivered to the program's handler.

    To be called from the main thread, also inside a running event loop, which it blocks.  The data set is built in a forked
    process: no other thread may hold a lock that this needs.

    Raises:
        UsageError, ConfigError: Options are wrong; ConfigErrors has all of several in ``errors``.
        PluginError: A plugin that was asked for can't be used.
        AiperfError: The run can't be started or reported, or this is not the main thread.
    """
    with contextlib.closing(Fleet()) as fleet:
        return _profiled(fleet, words, options, console=console)


class Run:
    """Runs one after the other with the same processes: workers and reducers start with the first plan, and wait for the next
    one when it is over.  Each plan has its own run directory, with the same files, numbers and verdicts as after
    :func:`profile`::

        with aiperf.Run() as run:
            for level in (1, 2, 4, 8):
                summary = run.profile(model="m", url=url, concurrency=level, artifact_dir=f"sweep/{level}")

    Any options may differ between plans.  Connections and hooks are each plan's own; live views, and displays in processes of
    their own, serve all of them.  The data set is made again where its options, its seed or its file differ, and a telemetry
    source is started again where its options do; what a plugin keeps in its module stays.

    A process that died is replaced.  All processes are replaced

    - after a plan that had begun to start and was ended by an error, by a signal before its load or by a second signal;
    - where environment variables, the working directory, the mask of new files (``--private``), the control channel, the
      engine (``--engine``) or options of the engine changed;
    - for a plan with more than two phases, and more than the plan had that they were started for;
    - for each plan with an engine plugin that starts shards on this machine.

    With an engine that has sites, these are kept, too: their commands, and the workers, reducers and files of the data set
    there.  All of them are started anew for a plan with more workers or reducers than the one that they were started for,
    after a plan in which a site was lost, and where one has ended between two plans; if they can't be, the plan ends with an
    error that names the site.

    Close it, best with ``with``: an idle process takes memory, and no processor time.  All end with the program.
    """

    def __init__(self) -> None:
        self._fleet: Fleet | None = Fleet(kept=True)

    def profile(self, words: str | Sequence[str] = (), /, *, console: bool = False, **options: Value) -> Summary:
        """Run a plan.  Arguments, result, signals and errors are those of :func:`profile`; after an error, too, the next plan
        may follow.

        Raises:
            AiperfError: The Run is closed, or as of :func:`profile`.
        """
        if self._fleet is None:
            raise AiperfError("this aiperf.Run is closed, and runs nothing more", "make another one: aiperf.Run()")
        return _profiled(self._fleet, words, options, console=console)

    def stop(self, reason: str = "") -> bool:
        """End the load of the plan under way as the first Ctrl-C does; its summary says ``cancelled``, and why.

        From any thread.  *reason*: a clause for ``incomplete_reason``.  False where no plan is under way.
        """
        return self._ask(EndKind.STOP, reason)

    def cancel(self, reason: str = "") -> bool:
        """End the plan under way as the second Ctrl-C does: what is in flight is aborted, its results are dropped, and
        :meth:`profile` raises AiperfError; ``aiperf report`` makes them from the journal.  From any thread, as :meth:`stop`."""
        return self._ask(EndKind.CANCEL, reason)

    def _ask(self, kind: EndKind, reason: str) -> bool:
        fleet = self._fleet
        signals = None if fleet is None else fleet.watchers.signals
        if signals is not None:
            signals.ask(kind, "the program", reason)
        return signals is not None

    def close(self) -> None:
        """End the processes.  May be called again."""
        fleet, self._fleet = self._fleet, None
        if fleet is not None:
            fleet.close()
            undivert()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _profiled(fleet: Fleet, words: str | Sequence[str], options: Mapping[str, Value], *, console: bool) -> Summary:
    refuse_other_threads("aiperf.profile")
    undivert()
    try:
        with told_by_keyword(options):
            return _executed(fleet, shlex.split(words) if isinstance(words, str) else list(words), options, console=console)
    finally:
        divert(fleet.watchers.screen)  # what the program prints until its next plan


def _executed(fleet: Fleet, words: Sequence[str], options: Mapping[str, Value], *, console: bool) -> Summary:
    with contextlib.nullcontext() if console else logs.unprinted():
        settings, registry = _settings(words, options, console=console)
    if settings.kernel.dry_run:
        raise UsageError("--dry-run is for the command line: it has no results", "see: aiperf profile --dry-run")
    with unchanged(settings) as signals, contextlib.suppress(Interruption):
        warn_of_registry(registry)
        try:
            return execute(settings, registry, signals, fleet, console=console).summary
        finally:
            fleet.watchers.signals = None
    if signals.asked is not None:
        raise AiperfError(f"{signals.asked}, before its results")
    number = signals.code - 128
    signal.raise_signal(number)
    raise AiperfError(f"{signal.Signals(number).name} ended the run before its results")


def refuse_other_threads(name: str) -> None:
    """
    Raises:
        AiperfError: This is not the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        raise AiperfError(f"{name} works in the main thread only: it handles signals", "elsewhere run aiperf profile")


def warn_of_registry(registry: Registry) -> None:
    for problem in (*registry.problems, *registry.losses):
        log.warning("%s", problem)
    main.warn_of_broken(registry, partial(log.warning, "%s"))


@contextlib.contextmanager
def told_by_keyword(options: Mapping[str, Value]) -> Iterator[None]:
    """Errors name *options* as the program wrote them, and their text has the hints, too: nobody prints these here."""
    try:
        yield
    except AiperfError as error:
        flags = {f"--{name.replace('_', '-')}": name for name in options}
        typed = re.compile(rf"(?:{'|'.join(map(re.escape, flags)) or '(?!)'})(?![\w-])")

        def renamed(text: str) -> str:
            return typed.sub(lambda flag: flags[flag[0]], text)

        for each in error.errors if isinstance(error, ConfigErrors) else (error,):
            if unknown := flags.get(each.message.removeprefix("unknown option ")):
                each.message = f"unknown keyword {unknown}"
                each.hints = tuple(map(_near_keyword, each.hints))
            each.message, each.hints = renamed(each.message), tuple(map(renamed, each.hints))
            each.args = ("\n".join(each.lines()),)
        raise


def _near_keyword(hint: str) -> str:
    if not hint.startswith("did you mean"):
        return hint
    return _FLAG.sub(lambda flag: flag[1].replace("-", "_"), hint)


def _settings(words: Sequence[str], options: Mapping[str, Value], *, console: bool) -> tuple[Settings, Registry]:
    """The settings of one run.

    Raises:
        UsageError: Several runs are asked for; and as :func:`profile`.
    """

    def settings(registry: Registry, scan: Scan, known: Sequence[Option]) -> Settings:
        if is_study(scan):
            what = next((value.typed for value in scan.given if asks_for_several(value)), "--config")
            raise UsageError(f"{what} asks for several runs, and this makes one", "call aiperf.sweep, which makes them all")
        return profile_settings(registry, scan)

    return checked_line(words, options, console=console, make=settings)


def checked_line(
    words: Sequence[str], options: Mapping[str, Value], *, console: bool,
    make: Callable[[Registry, Scan, Sequence[Option]], T],
) -> tuple[T, Registry]:  # fmt: skip
    """What *make* makes of the line, and the registry with its pins and switches.

    Raises:
        UsageError, ConfigErrors: All faults of the line.
    """
    errors: list[AiperfError] = []
    line = CommandLine([*words, *_words(options, {})])
    registry, file = main.opened(Registry.discover(), line, errors, with_file=True)
    command = main.profile_command(registry, whole=True)
    known = {flag: option.spec for option in command.options for flag in option.spec.flags}
    line = CommandLine([*words, *_words(options, known)])
    scan = line.resolve(command.options, dashes=False, extra=command.foreign)
    if scan.help:
        raise UsageError("--help is for the command line", "see: aiperf profile --help")
    scan.shown.insert(0, command.name)

    def validate(_: object) -> T:
        if not console:
            display = next(option for option in command.options if "--ui" in option.spec.flags)
            scan.add([OptionValue(display, "--ui", ["none"])])  # unless one is given
        return make(registry, scan, command.options)

    return main.checked(command, scan, file, errors, validate), registry


def _words(options: Mapping[str, Value], known: Mapping[str, OptionSpec]) -> Iterator[str]:
    """The options as words.  *known*: what is known of them, by flag."""
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        spec = known.get(flag)
        if value is True:
            yield flag
        elif value is False:
            negative = flag if spec is None else spec.negative
            yield from [negative] if negative else []
        elif spec is not None and spec.cells and not isinstance(value, str | int | float | Path | Mapping | None):
            yield f"{flag}={','.join(map(str, value))}"
        elif isinstance(value, Mapping):
            yield f"{flag}={json.dumps(value)}"
        elif value is not None:
            items = [value] if isinstance(value, (str, int, float, Path)) else value
            yield from (f"{flag}={item}" for item in items)


@contextlib.contextmanager
def unchanged(settings: Settings) -> Iterator[Signals]:
    """For a run: its signals.  The program's handlers, logging and limit of open files are as before after the block."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        with logs.lent(settings.log_level), Signals().caught() as signals:
            yield signals
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


__all__ = ["Run", "profile"]
