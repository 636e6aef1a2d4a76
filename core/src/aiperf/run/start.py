"""What a run has before its first phase: signals, its outcome so far, directories, the control channel."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic_ns
from types import FrameType

from aiperf import logs
from aiperf.errors import AiperfError, ConfigError
from aiperf.processes import local, open_files
from aiperf.processes.control import Switchboard
from aiperf.redaction import scrubbed
from aiperf.registry.patience import calls
from aiperf.rundir import temporary
from aiperf.rundir.journal import RunClock, hold, save_run
from aiperf.rundir.previous_results import PreviousResults, journal_of
from aiperf.sdk.live import EndKind
from aiperf.sdk.plan import OutputPlan, Plan

log = logging.getLogger(__name__)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Interruption(Exception):  # noqa: N818  # the user's wish, not an error
    """The user ended the run while there was nothing to drain."""


class Signals:
    """Counts SIGINT, SIGTERM and SIGHUP.  *code* is the exit code that the first one asks for, 0 before it; *first_ns* its
    monotonic instant.

    SIGHUP stays ignored where it was at the start, as nohup leaves it.  say: prints what a signal means, beside what is drawn.
    without_load: what a signal before the load means.  asked: why the run ends, where a view or the calling program
    asked for it, and no signal.  loaded: the load is over, and a stop has nothing to stop.
    """

    def __init__(self) -> None:
        self.count = self.code = self.first_ns = 0
        self.say: Callable[[str], None] = logs.print_line
        self.without_load = "there are no results"
        self.asked: str | None = None
        self.loaded = False
        self._asks: deque[tuple[EndKind, str, str]] = deque(maxlen=100)

    def ask(self, kind: EndKind, who: str, reason: str = "") -> None:
        """Ask the run to end, as the first or the second Ctrl-C does; from any thread.  *who* has a *reason*, "" for none."""
        self._asks.append((kind, who, reason))

    def heed(self) -> None:
        """Do what was asked; in the main thread, often."""
        while self._asks:
            kind, who, reason = self._asks.popleft()
            wanted = 2 if kind is EndKind.CANCEL else 1
            if self.count < wanted and not (wanted == 1 and self.loaded):
                verb = "cancelled" if wanted == 2 else "stopped"
                sentence = f"{who} {verb} the run{f': {reason}' if reason else ''}"
                self.asked = self.asked or (sentence if not self.count else None)
                self.count, self.code = wanted, self.code or 128 + signal.SIGINT
                self.first_ns = self.first_ns or monotonic_ns()
                self.say(f"aiperf: {sentence}")

    @contextlib.contextmanager
    def caught(self) -> Iterator[Signals]:
        nohup = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        numbers = [number for number in local.ENDING if not (nohup and number == signal.SIGHUP)]
        handlers = {number: signal.signal(number, self._note) for number in numbers}
        try:
            yield self
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def check(self) -> None:
        """Raises Interruption after a signal before the load, and says what that means for the results."""
        if self.count:
            self.say(f"aiperf: the load had not begun: {self.without_load}")
            raise Interruption

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1 and calls.running is not None:
            self.count -= 1  # it is about the plugin, unless that has just begun
            calls.leave()
            self.count += 1
        self.code, self.first_ns = self.code or 128 + number, self.first_ns or monotonic_ns()
        if number == signal.SIGHUP:
            _leave_lost_terminal()
        if self.count == 1:
            # On a terminal "^C" stands where the cursor was.
            self.say("\naiperf: stopping; results so far will be written. Press Ctrl-C again to drop them.")


def _leave_lost_terminal() -> None:
    """Drop what is still printed where the terminal is gone, or who reads: each write to it would fail.

    Nothing is written to find out: a pipe that nobody reads at the moment may be full.
    """
    for descriptor in (1, 2):
        states = select.poll()
        states.register(descriptor, 0)
        if states.poll(0):  # hung up, or in error
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


class Outcome:
    """Signals, warnings, the reason why a run is incomplete, its lost workers, and the instants of its stages.

    console: whether results and remarks are printed.
    incomplete: a sentence, None while nothing cut the run short.  lost: indices of workers that died without a replacement.
    replaced: how many workers had one.  died: indices of both.  cut: a signal ended the load before its last arrival had ended.
    plugin_failed: a companion, or a hook of this process, failed or was left behind, and what it writes is missing.
    times: monotonic ns by stage, the content of ``run-times.json``.
    """

    def __init__(self, signals: Signals, *, console: bool = True, secret_texts: Sequence[str] = ()) -> None:
        self.signals, self.console, self.secret_texts = signals, console, secret_texts
        self.warnings: list[str] = []
        self.incomplete: str | None = None
        self.cut = False
        self.lost: set[int] = set()
        self.replaced = 0
        self.plugin_failed = False
        self.died: set[int] = set()
        self.times: dict[str, int] = {}
        self.stamp("begun_ns")

    def stamp(self, stage: str) -> None:
        self.times[stage] = monotonic_ns()

    def warn(self, sentence: str, *, report: bool = True) -> None:
        """Log the sentence and, with *report*, put it into the report, without secrets."""
        sentence = scrubbed(sentence, self.secret_texts)
        log.warning("%s", sentence)
        if report:
            self.warnings.append(sentence)

    def blame(self, sentence: str) -> None:
        """Warn of a plugin that failed: the exit code is 1, as for an exporter."""
        self.plugin_failed = True
        self.warn(sentence)


def check_open_files(plan: Plan) -> None:
    """Allow as many open files as the system lets this user have; each site checks its own workers.

    Raises:
        ConfigError: That is too few for a run, or for the connections of a worker in a closed loop.
    """
    open_files.raise_limit()
    if not plan.run.sites:
        open_files.check(plan, plan.run.workers)


class Directories:
    """Paths of the run, once the journal is there and locked, and results of an earlier run are set aside.

    Raises:
        BadJournal: Another run or report uses the directory.
        ConfigError: The directory can't be written.
    """

    def __init__(self, output: OutputPlan) -> None:
        artifacts = Path(output.artifacts)
        self.artifacts, self.journal = artifacts, Path(output.journal)
        self.log_file = artifacts / "logs" / "aiperf.log"
        self._begun = own = False
        try:
            self._previous = PreviousResults(artifacts, output)
            try:
                journal_of(artifacts).mkdir(0o700, parents=True)
                own = True
                self._lock = hold(self.journal)
                logs.to_file(self.log_file)
            except (OSError, AiperfError):
                if own or not self.journal.exists():  # else another run made it first, and it is that run's
                    self._previous.restore()
                raise
        except OSError as error:
            hint = "choose another directory with --artifact-dir"
            raise ConfigError(f"{artifacts} can't be written: {error.strerror or error}", hint) from error

    def begin(self, source: str | None) -> None:
        """The first phase is about to begin: remove the earlier results, but not *source*, a file that the run reads."""
        self._previous.replace(None if source is None else Path(source))
        self._begun = True

    def check(self) -> None:
        """
        Raises:
            AiperfError: Somebody removed or moved the directory.
        """
        with contextlib.suppress(OSError):
            if os.path.samestat((self.journal / "lock").stat(), os.fstat(self._lock.fileno())):
                return
        hint = "if it was moved, what was observed is there: aiperf report DIRECTORY"
        raise AiperfError(f"{self.artifacts} was removed or moved during the run", hint)

    @contextlib.contextmanager
    def restored_unless_begun(self) -> Iterator[None]:
        """Leave the directory as it was where the run ends before its first phase.  After an error it is let go."""
        try:
            yield
        except BaseException:
            if not self._begun:
                self._previous.restore()
            self.close()
            raise

    def close(self) -> None:
        """Let other runs and reports use the directory.  May be called again."""
        self._previous.close()
        self._lock.close()


def save_first(directories: Directories, plan: Plan, clock: RunClock) -> None:
    """Write ``run.json`` for the first time.

    Raises:
        ConfigError: It can't be written.
    """
    try:
        save_run(directories.journal, plan, clock)
    except UnicodeEncodeError as error:
        message = f"{error.object!r} is not UTF-8, in which the plan of a run is written"
        raise ConfigError(message, "rename it, or work in another directory") from error
    except OSError as error:
        hint = "choose another directory with --artifact-dir"
        raise ConfigError(f"{directories.journal} can't be written: {error.strerror or error}", hint) from error


def without_room(error: OSError, output: OutputPlan) -> Exception:
    """What *error* is called where a disk, a quota or a limit has no more room: it names the file, or the directory."""
    if error.errno not in _NO_ROOM:
        return error
    again = f"make room; what was observed is in the journal: aiperf report {output.artifacts}"
    return AiperfError(f"{error.filename or output.artifacts} can't be written: {error.strerror}", again)


@contextlib.contextmanager
def switchboard(host: str | None, sockets: Path | None) -> Iterator[Switchboard]:
    """The parent's end, open for the block: on a TCP port of *host*, else on a socket in a private directory below *sockets*.

    sockets: None is the system's directory for temporary files.

    Raises:
        ConfigError: The address can't be used.
    """
    with contextlib.ExitStack() as stack:
        if host is not None:
            address = f"tcp://{host}:*"
        else:
            if sockets is not None:
                sockets.mkdir(parents=True, exist_ok=True)
            base = sockets or temporary.socket_base()
            temporary.sweep(base)
            # Whoever can write to the socket can steer the run.
            address = f"ipc://{stack.enter_context(temporary.private_directory(base))}/control"
        try:
            board = stack.enter_context(contextlib.closing(Switchboard(address)))
        except OSError as error:
            hint = "check --zmq-host or --zmq-ipc-path"
            raise ConfigError(f"control messages can't use {address}: {error.strerror or error}", hint) from error
        yield board


def told(lines: Sequence[str], code: int) -> AiperfError:
    """The error of another process: its lines, and its exit code."""
    message, *hints = lines
    error = AiperfError(message, *(hint.strip() for hint in hints))
    error.exit_code = code
    return error
