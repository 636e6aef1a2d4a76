"""Calls of plugins that never return, or that would end the process: left behind, with a sentence.

The code of a plugin runs in the main thread, which a signal's handler interrupts: an exception raised there ends a wait for a
lock, a socket or a clock as well as an endless loop.  A plugin of a stranger is left behind once it has neither returned nor
read nor written a byte for a while (``AIPERF_PLUGIN_TIMEOUT``); every plugin at the second Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from aiperf.logs import harmless_output
from aiperf.sdk.descriptor import PluginRef

_SIGNAL = getattr(signal, "SIGRTMAX", signal.SIGUSR2)
_LOOK_S = 0.5
_LONG_S = 0.5
"""A call that has not lasted so long is no reason why somebody presses Ctrl-C again."""
_IGNORED = 3
"""A plugin that has caught as many exceptions of ours ends the process."""
_UNENDED = 70
"""EX_SOFTWARE of sysexits.h."""


class LeftBehind(SystemExit):  # what became of the call
    """Raised in the code of a plugin; no ``except Exception`` of it stops this."""


class _Call:
    """A block of a plugin's code; a class, because a generator takes twice the time, and a batch has 80 such blocks."""

    __slots__ = ("_before", "_calls", "_output", "_who")

    def __init__(self, calls: Calls, who: object) -> None:
        self._calls, self._who = calls, who

    def __enter__(self) -> None:
        self._before = self._calls.begin(self._who)
        self._output = harmless_output() if self._before is not None and is_strange(self._who) else None
        if self._output is not None:
            self._output.__enter__()

    def __exit__(self, *error: Any) -> None:
        try:
            if self._output is not None:
                self._output.__exit__(*error)
        finally:
            self._calls.back(self._before)


class Calls:
    """The call of a plugin that is under way in the main thread.

    left: keys of the plugins that were left behind; they are not called again.
    """

    def __init__(self) -> None:
        self.left: set[str] = set()
        self._who: object = None
        self._began_s = self._moved_s = 0.0
        self._number = self._ignored = 0
        self._state: tuple[int, ...] = ()

    def of(self, who: object) -> _Call:
        """The block is code of *who*, usually a :class:`PluginRef`; what a stranger prints there steers no terminal."""
        return _Call(self, who)

    def begin(self, who: object) -> tuple[object, float] | None:
        """Code of *who* begins; what :meth:`back` gets at its end, None outside the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return None
        before = self._who, self._began_s
        self._enter(who, time.monotonic())
        return before

    def back(self, before: tuple[object, float] | None) -> None:
        """The code that ran *before* goes on."""
        if before is not None:
            self._enter(*before)

    @property
    def running(self) -> object:
        """The plugin whose code runs; None where none does."""
        return self._who

    def _enter(self, who: object, began_s: float) -> None:
        self._number += 1
        self._who, self._began_s, self._ignored = who, began_s, 0

    def leave(self) -> None:
        """The user presses Ctrl-C again.

        Raises:
            LeftBehind: That is about the plugin whose code runs, because it has run for a while.
        """
        if self._who is not None and time.monotonic() - self._began_s > _LONG_S:
            self._leave("it had not returned at the second Ctrl-C, and was left behind")

    def _leave(self, why: str) -> NoReturn:
        who, self._ignored = self._who, self._ignored + 1
        if isinstance(who, PluginRef):
            self.left.add(who.key)
        if self._ignored > _IGNORED:
            sentence = f"aiperf: {who} can't be left behind: it goes on whatever is raised; aiperf report makes what is missing"
            print(sentence, file=sys.__stderr__, flush=True)
            os._exit(_UNENDED)
        raise LeftBehind(why)

    @contextlib.contextmanager
    def watched(self, limit_s: float) -> Iterator[None]:
        """Leave a stranger's plugin behind that has hung for *limit_s*.  Only in the main thread, where signals arrive."""
        over, main, task = threading.Event(), threading.main_thread(), f"/proc/self/task/{threading.get_native_id()}"
        if threading.current_thread() is not main:
            yield
            return

        def look() -> None:
            number = 0
            while not over.wait(_LOOK_S):
                now_s, state = time.monotonic(), _state(task)
                if number != self._number or state[:2] != self._state[:2]:
                    number, self._moved_s, self._state = self._number, now_s, state
                waited_s = sum(state[2:]) / 1e9 - sum(self._state[2:]) / 1e9  # for a core
                if now_s - self._moved_s - waited_s > limit_s and self._who is not None and _is_limited(self._who):
                    self._moved_s = now_s - limit_s + 1
                    with contextlib.suppress(ProcessLookupError):
                        signal.pthread_kill(main.ident or 0, _SIGNAL)

        def interrupted(number: int, frame: object) -> None:
            if self._who is not None and _is_limited(self._who):
                self._leave(f"it did nothing for {limit_s:g} s, and was left behind")

        before = signal.signal(_SIGNAL, interrupted)
        watch = threading.Thread(target=look, daemon=True)
        watch.start()
        try:
            yield
        finally:
            over.set()
            watch.join()
            signal.signal(_SIGNAL, before)


calls = Calls()
"""Of this process: a signal has one handler."""


def is_strange(who: object) -> bool:
    """Whether it is a plugin whose package has no name of this project."""
    return isinstance(who, PluginRef) and not who.distribution.startswith("aiperf-")


def _is_limited(who: object) -> bool:
    """Whether it is no plugin of this project: some of these wait for servers, as long as they are told to."""
    return is_strange(who) or (isinstance(who, PluginRef) and not _listed(who.distribution))


@cache
def _listed(distribution: str) -> bool:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import distribution as installed

    from aiperf.foreign import SUITE
    from aiperf.registry.discovery import KERNEL, required

    try:
        suite = installed(SUITE)
    except PackageNotFoundError:
        return True
    return distribution in {KERNEL, SUITE, *required(list(suite.requires or ()))}


def _state(task: str) -> tuple[int, ...]:
    """Bytes that the thread has read and written, and how long it has waited for a core, in ns; nothing where unknown."""
    state = [0, 0, 0]
    with contextlib.suppress(OSError, ValueError, IndexError):
        state[:2] = (int(line.split()[1]) for line in Path(task, "io").read_text().splitlines()[:2])
        state[2] = int(Path(task, "schedstat").read_bytes().split()[1])
    return tuple(state)


@contextlib.contextmanager
def no_exit(report: Callable[[str], object]) -> Iterator[None]:
    """In the block ``os._exit`` is an error in the code of plugins: it would end the run, and nobody would know why.

    A process that was forked from this one may end itself.  Nothing outside the main thread, whose blocks may overlap.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    real, own = os._exit, os.getpid()

    def refused(code: int) -> Any:
        module = str(sys._getframe(1).f_globals.get("__name__", ""))
        # Run by -m, a module of ours is __main__; a program that calls aiperf.profile may end itself, too.
        if os.getpid() != own or module.partition(".")[0] in ("aiperf", "__main__"):
            real(code)
        who = calls.running or module
        message = f"it called os._exit({code}), which would have ended the run"
        if threading.current_thread() is not threading.main_thread():
            report(f"{who} called os._exit({code}) in a thread, which would have ended the run; it is refused")
        raise RuntimeError(f"{message} ({module})")

    setattr(os, "_exit", refused)  # noqa: B010  # the type of a function that never returns
    try:
        yield
    finally:
        setattr(os, "_exit", real)  # noqa: B010
