"""Imports of plugins' modules, bounded in time and in what they change.

A signal interrupts the main thread, so that an import that hangs in Python, in a sleep or in a wait fails as any other does.
Where no signal arrives (C code that goes on waiting, another thread), the process ends a little later, with a sentence.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

from aiperf import environment
from aiperf.errors import ConfigError

if TYPE_CHECKING:
    import threading  # a help, which imports no plugin, needs none

_GRACE_S = 5.0
"""How much later than the signal the process ends."""
_LEAVE_S = 2.0
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ImportTimeoutError(Exception):
    """An import took too long; the message says how long."""


class _Alarm(BaseException):
    """Raised in the importing module; no Exception, because a module may catch those and go on."""


class Imports:
    """The imports of a process.  *limit_s*: the longest that one may take; None asks the environment."""

    def __init__(self, limit_s: float | None = None) -> None:
        self._limit_s = limit_s
        self._late: dict[str, str] = {}
        """Sentences by module: a module that took too long is not imported again."""
        self._running: dict[int, tuple[float, str]] = {}
        """When the process is to end, and what it says then."""
        self._lock: threading.Condition | None = None
        self._watch: threading.Thread | None = None

    @contextlib.contextmanager
    def limited(self, module: str, who: object, *, put_back: bool = True) -> Iterator[None]:
        """Import *module* for *who*, a plugin.  *put_back*: undo what it does to the process.

        Raises:
            ImportTimeoutError: It takes longer than the limit, or did so before.
        """
        if module in self._late:
            raise ImportTimeoutError(self._late[module])
        if module in sys.modules:
            yield
            return
        limit_s = self._limit()
        sentence = f"its import did not end within {limit_s:g} s (AIPERF_PLUGIN_IMPORT_TIMEOUT)"
        key = self._watched(time.monotonic() + limit_s + _GRACE_S, f"error: {who} can't be imported: {sentence}\n")
        try:
            from aiperf.logs import early  # not for a help, which imports no plugin
            from aiperf.registry.patience import no_exit

            with _put_back() if put_back else contextlib.nullcontext(), _alarm(limit_s), no_exit(early.warning):
                yield
        except _Alarm:
            self._late[module] = sentence
            raise ImportTimeoutError(sentence) from None
        finally:
            with self._changed:
                del self._running[key]

    @property
    def _changed(self) -> threading.Condition:
        """Held while the table changes; the first import is the main thread's."""
        if self._lock is None:
            import threading

            self._lock = threading.Condition()
        return self._lock

    def _limit(self) -> float:
        if self._limit_s is not None:
            return self._limit_s
        try:
            return environment.import_s()
        except ConfigError:  # told with all that is wrong with a run
            return environment.IMPORT_S

    def _watched(self, until: float, sentence: str) -> int:
        import threading

        with self._changed:
            key = max(self._running, default=0) + 1
            self._running[key] = until, sentence
            if self._watch is None or not self._watch.is_alive():
                self._watch = threading.Thread(target=self._wait, name="aiperf-imports", daemon=True)
                self._watch.start()
        return key

    def rest(self) -> None:
        """End the thread that watches, unless an import is under way: a fork must find no thread, and a program keeps none."""
        if self._lock is None:
            return
        with self._changed:
            watch = None if self._running else self._watch
            self._changed.notify_all()
        if watch is not None:
            watch.join()

    def _wait(self) -> None:
        """End the process when an import is over its time; returns when none is under way."""
        with self._changed:
            while self._running:
                until, sentence = min(self._running.values())
                if (rest := until - time.monotonic()) > 0:
                    self._changed.wait(rest)
                    continue
                with contextlib.suppress(OSError):
                    os.write(2, sentence.encode(errors="replace"))
                os._exit(1)
            self._watch = None


@contextlib.contextmanager
def _put_back() -> Iterator[None]:
    """Undo what an import did to the working directory, the umask and the signals that end a run."""
    directory, umask = _directory(), os.umask(0o077)
    os.umask(umask)
    handlers = {number: signal.getsignal(number) for number in _ENDING}
    try:
        yield
    finally:
        os.umask(umask)
        if directory is not None and _directory() != directory:
            with contextlib.suppress(OSError):
                os.chdir(directory)
        import threading

        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():
                if handler is not None and signal.getsignal(number) != handler:
                    signal.signal(number, handler)


def _directory() -> str | None:
    """None where the working directory is gone."""
    try:
        return os.getcwd()  # noqa: PTH109  called for every import
    except OSError:
        return None


@contextlib.contextmanager
def _alarm(limit_s: float) -> Iterator[None]:
    """Raise _Alarm after *limit_s*, and each second from then on; nothing where another owns the signal."""
    import threading

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGALRM) not in (signal.SIG_DFL, _raise_alarm):
        yield
        return
    before = signal.signal(signal.SIGALRM, _raise_alarm)
    began, (outer_s, interval_s) = time.monotonic(), signal.setitimer(signal.ITIMER_REAL, limit_s, 1.0)
    try:
        yield
    finally:
        rest_s = max(outer_s - (time.monotonic() - began), 0.001) if outer_s else 0.0
        signal.setitimer(signal.ITIMER_REAL, rest_s, interval_s)
        signal.signal(signal.SIGALRM, before)


def _raise_alarm(number: int, frame: FrameType | None) -> None:
    raise _Alarm


def leave(code: int) -> int:
    """*code*, with which the process ends within 2 s, also where a plugin left a thread that doesn't."""
    if "threading" not in sys.modules:
        return code
    import threading

    main = threading.main_thread()
    if any(thread is not main and not thread.daemon for thread in threading.enumerate()):

        def end() -> None:
            time.sleep(_LEAVE_S)
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    stream.flush()
            os._exit(code)

        threading.Thread(target=end, name="aiperf-leave", daemon=True).start()
    return code


IMPORTS = Imports()
"""Those of this process: it has one alarm, and one table of modules."""

__all__ = ["IMPORTS", "ImportTimeoutError", "Imports", "leave"]
