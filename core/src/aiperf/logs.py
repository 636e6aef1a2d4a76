"""Logging: short lines to standard error, full lines to ``logs/aiperf.log`` in the artifact directory."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO, cast

from aiperf.redaction import harmless, scrubbed
from aiperf.terminal import fitted

progress = logging.getLogger("aiperf.progress")
"""For the console alone: a run that is refused leaves no log because it took a second."""
early = logging.getLogger("aiperf.start")
"""Of what is wrong before the run begins."""
_MOST_SENTENCES = 20
_LEVELS = {
    "trace": 5, "debug": logging.DEBUG, "info": logging.INFO, "notice": logging.INFO, "success": logging.INFO,
    "warning": logging.WARNING, "error": logging.ERROR, "critical": logging.CRITICAL,
}  # fmt: skip
logging.addLevelName(_LEVELS["trace"], "TRACE")


def level_of(log_level: str, *, verbose: bool, extra_verbose: bool) -> int:
    """The level of ``--log-level``, ``-v`` and ``-vv``; the lowest wins."""
    return _LEVELS["trace" if extra_verbose else "debug" if verbose else log_level]


class _Console(logging.Handler):
    """Passes each line to *write*: a live display prints it beside its drawing.  Warnings in *said* are left out, and join it;
    None leaves out none."""

    def __init__(self, write: Callable[[str], None], said: set[str] | None = None) -> None:
        super().__init__()
        self.write, self._said = write, said

    def emit(self, record: logging.LogRecord) -> None:
        if self._said is not None and record.levelno == logging.WARNING:
            if record.getMessage() in self._said:
                return
            self._said.add(record.getMessage())
        try:
            self.write(harmless(self.format(record)))
        except Exception:  # noqa: BLE001  # as in the handlers of the standard library
            self.handleError(record)


class _Held(logging.Handler):
    """Keeps warnings that come before there is a file for them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


class _Caller(logging.Handler):
    """Passes records on to *logger*, of the calling program; drops them where that has no handler, and would print them."""

    def __init__(self, logger: logging.Logger, level: int) -> None:
        super().__init__(level)
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        if self._logger.hasHandlers():
            self._logger.handle(record)


class _File(logging.FileHandler):
    """A file on a disk that may be full, in a directory that may be gone: then its lines are lost."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # the standard library opens a closed file again, outside of its own handling
            super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # the name of the standard library
        pass


def print_line(line: str) -> None:
    """Print a line of the log to standard error, on a terminal no wider than that."""
    print(fitted(line, sys.stderr), file=sys.stderr, flush=True)


def once(write: Callable[[str], None], said: set[str]) -> Callable[[str], None]:
    """*write* for lines of another process, without the warnings in *said*, which the others join."""

    def tell(line: str) -> None:
        warning = line.partition(" WARNING ")[2]
        if not warning or warning not in said:
            said.update([warning] if warning else [])
            write(line)

    return tell


def to_console(
    level: int, write: Callable[[str], None] = print_line, *, quiet: bool = False, said: set[str] | None = None
) -> None:
    """Write short lines to *write*, by default to standard error.  *quiet*: errors alone; *level* is the file's, which
    gets the warnings that came before it (:func:`file_held`).  *said*: warnings of several runs, each printed once."""
    root = logging.getLogger("aiperf")
    root.setLevel(min(level, logging.INFO))
    root.propagate = False
    held = [handler for handler in root.handlers if isinstance(handler, _Held)] or [_Held()]
    for handler in list(root.handlers):
        root.removeHandler(handler)
    for handler in held if quiet else ():
        root.addHandler(handler)
    console = _Console(write, said)
    console.setLevel(max(level, logging.ERROR) if quiet else level)
    console.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(levelname)-7s %(message)s", "%H:%M:%S"))
    root.addHandler(console)


def pass_lines(write: Callable[[str], None]) -> None:
    """In a forked process: give the console's lines to *write*, for the process that has the terminal."""
    for handler in logging.getLogger("aiperf").handlers:
        if isinstance(handler, _Console):
            handler.write = write


def forget() -> None:
    """In a forked process with another task: log as a new interpreter does."""
    for logger in (logging.getLogger(), logging.getLogger("aiperf")):
        logger.handlers.clear()
    logging.getLogger("aiperf").propagate = True
    logging.getLogger("aiperf").setLevel(logging.NOTSET)
    logging.getLogger().setLevel(logging.WARNING)


def pass_records(send: Callable[[str, int, str], object]) -> None:
    """In a forked process that outlives its run: give logger, level and text of each record to *send*, and to nobody else."""
    root = logging.getLogger("aiperf")
    for handler in list(root.handlers):
        root.removeHandler(handler)
        if isinstance(handler, _File):
            handler.close()
    root.propagate = False
    root.addHandler(_Passed(send))


@contextlib.contextmanager
def unprinted() -> Iterator[None]:
    """Keep the standard library from printing warnings of a program that has set up no logging."""
    logger, handler = logging.getLogger("aiperf"), logging.NullHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextlib.contextmanager
def lent(level: int) -> Iterator[None]:
    """For a run inside another program, whose logging hears what it asked for, and is as before after the block.

    *level*: of the run's own log file.
    """
    logger = logging.getLogger("aiperf")
    own, heard, propagate = list(logger.handlers), logger.level, logger.propagate
    if propagate and logger.parent is not None:
        logger.addHandler(_Caller(logger.parent, logger.getEffectiveLevel()))
    logger.propagate = False
    logger.setLevel(min(level, logging.INFO))
    try:
        yield
    finally:
        for handler in set(logger.handlers) - set(own):
            handler.close()
        logger.handlers[:], logger.propagate = own, propagate
        logger.setLevel(heard)


class _Scrubbed(logging.Formatter):
    """The lines of another formatter without *secrets*, tracebacks included."""

    def __init__(self, lines: logging.Formatter, secrets: Sequence[str]) -> None:
        super().__init__()
        self._lines, self._secrets = lines, secrets

    def format(self, record: logging.LogRecord) -> str:
        return scrubbed(self._lines.format(record), self._secrets)


class PluginWarnings(logging.Handler):
    """Keeps what plugins log as warnings, for the report, and writes it to standard error, a child's log; without *secrets*.

    sentences: the first 20, each once, with the logger's name.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.secrets: Sequence[str] = ()
        self.sentences: dict[str, None] = {}

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """In the block warnings are kept."""
        root = logging.getLogger()
        root.addHandler(self)
        try:
            yield
        finally:
            root.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            print_line(harmless(scrubbed(self.format(record), self.secrets)))
            if not record.name.startswith("aiperf.") and len(self.sentences) < _MOST_SENTENCES:
                self.sentences[harmless(scrubbed(f"{record.name}: {record.getMessage()}", self.secrets))] = None
        except Exception:  # noqa: BLE001  # as in the handlers of the standard library
            self.handleError(record)


class _Sent(logging.Handler):
    """Passes level and line of each record to *send*."""

    def __init__(self, send: Callable[[int, str], object]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._send(record.levelno, self.format(record))
        except Exception:  # noqa: BLE001  # as in the handlers of the standard library
            self.handleError(record)


class _Passed(logging.Handler):
    """Passes logger, level and text of each record to *send*."""

    def __init__(self, send: Callable[[str, int, str], object]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._send(record.name, record.levelno, self.format(record))
        except Exception:  # noqa: BLE001  # as in the handlers of the standard library
            self.handleError(record)


@contextlib.contextmanager
def sent(level: int, send: Callable[[int, str], object]) -> Iterator[None]:
    """In the block, pass what plugins of this process log under ``aiperf``, from *level* on, to *send*, with its level."""
    logger, handler = logging.getLogger("aiperf"), _Sent(send)
    logger.setLevel(level)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Outlet:
    """A stream without *secrets* in what is written to it.  *tame*: nor characters that steer a terminal."""

    def __init__(self, stream: TextIO, secrets: Sequence[str], *, tame: bool = False) -> None:
        self.stream, self._secrets, self._tame = stream, secrets, tame

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        shown = scrubbed(text, self._secrets)
        self.stream.write(harmless(shown) if self._tame else shown)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)


def scrub_output(secrets: Sequence[str]) -> None:
    """Remove the exact *secrets* from whatever this process, plugins included, prints or logs from now on."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        setattr(sys, name, _Outlet(stream.stream if isinstance(stream, _Outlet) else stream, secrets, tame=True))


@contextlib.contextmanager
def harmless_output() -> Iterator[None]:
    """What is printed in the block steers no terminal."""
    out, errors = (cast(TextIO, _Outlet(stream, (), tame=True)) for stream in (sys.stdout, sys.stderr))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        yield


@contextlib.contextmanager
def errors_scrubbed(secrets: Sequence[str]) -> Iterator[None]:
    """Remove the exact *secrets* from whatever is written to ``sys.stderr`` in the block."""
    with contextlib.redirect_stderr(cast(TextIO, _Outlet(sys.stderr, secrets))):
        yield


def scrub(secrets: Sequence[str]) -> None:
    """Remove the exact *secrets* from every line that the handlers of a run write from now on."""
    for handler in logging.getLogger("aiperf").handlers if secrets else ():
        if handler.formatter is not None:
            handler.setFormatter(_Scrubbed(handler.formatter, secrets))


def to_file(path: Path) -> logging.Handler:
    """Append full lines to *path*, and create its directory; what writes them.  The file of a run before gets no more."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = _File(path, encoding="utf-8")
    line = "%(asctime)s.%(msecs)03d - %(name)s - %(levelname)s - %(message)s"
    file.setFormatter(logging.Formatter(line, "%Y-%m-%d %H:%M:%S"))
    file.addFilter(lambda record: record.name != progress.name)
    root = logging.getLogger("aiperf")
    for earlier in [handler for handler in root.handlers if isinstance(handler, _File)]:
        root.removeHandler(earlier)
        earlier.close()
    root.addHandler(file)
    return file


@contextlib.contextmanager
def only_to_file(path: Path, level: int, secrets: Sequence[str] = ()) -> Iterator[None]:
    """In the block, full lines without *secrets* go to *path*, and to no other file of a run.  *level*: of that log."""
    root = logging.getLogger("aiperf")
    before = root.level
    root.setLevel(min(level, logging.INFO))
    others = [handler for handler in root.handlers if isinstance(handler, _File)]
    for handler in others:
        root.removeHandler(handler)
    own = to_file(path)
    if own.formatter is not None:
        own.setFormatter(_Scrubbed(own.formatter, secrets))
    try:
        yield
    finally:
        root.removeHandler(own)
        own.close()
        root.setLevel(before)
        for handler in others:
            root.addHandler(handler)


def file_held() -> None:
    """Write what a quiet console has kept to the log's file."""
    root = logging.getLogger("aiperf")
    for held in [handler for handler in root.handlers if isinstance(handler, _Held)]:
        root.removeHandler(held)
        for file in (handler for handler in root.handlers if isinstance(handler, _File)):
            for record in held.records:
                file.handle(record)
