"""The process that builds data sets: a fork, for one plan, or for one plan after the other."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import msgspec
from msgspec import Struct

from aiperf import logs
from aiperf.errors import AiperfError
from aiperf.planning.problems import Settings
from aiperf.processes import local
from aiperf.registry.patience import no_exit
from aiperf.registry.third_party import load
from aiperf.run.start import told
from aiperf.run.steps import Far
from aiperf.rundir.store_form import made
from aiperf.sdk.endpoint import Endpoint
from aiperf.sdk.plan import Plan, Secrets

if TYPE_CHECKING:
    from aiperf.prepare.kept import Kept

log = logging.getLogger(__name__)

_STOP_S = 30.0
"""Time to write inputs.json: a million entries take ten seconds, most of them beside the reduction."""
_TAKE_S = 5.0
"""Longest time until a waiting process has read the next plan."""
_END_S = 2.0
_GO = b"go\n"
_GC_THRESHOLD = 20_000
"""Objects of the builder between two collections: an entry makes some ten, and no cycles."""
_LINES_BYTES = 1 << 16


class _Order(Struct, frozen=True):
    """The next plan, and what stands in no line of a log.  asking: as of :class:`Builder`."""

    plan: Plan
    secret_texts: Sequence[str]
    asking: Secrets | None = None


_decode_order = msgspec.json.Decoder(_Order).decode


def built(builder: Builder, plan: Plan, settings: Settings) -> Plan:
    """The *plan* with its data set.  An error in the input file names the flag that gave it."""
    try:
        return builder.result()
    except AiperfError as error:
        error.message = with_flag(error.message, plan, settings)
        raise


def with_flag(message: str, plan: Plan, settings: Settings) -> str:
    """A message of the builder; one on the input file begins with the flag that gave it."""
    source = plan.data.source
    if source is None or not message.startswith(source):
        return message
    return f"{settings.flag('input_file', '--input-file')}: {message}"


def asking_of(plan: Plan, secrets: Secrets) -> Secrets | None:
    """What the endpoint asks its server with before the data set is made; None where it asks nothing."""
    endpoint: type[Endpoint[Any]] = load(plan.plugins.endpoint)
    return secrets if endpoint.prepare is not Endpoint.prepare else None


def entries_made(plan: Plan) -> Far:
    """How far the making of the data set is."""
    data = plan.data
    known = data.source is None and not data.name  # how many rows a file has is known at its end
    return made(Path(plan.output.journal)), data.entries or None if known else None, "entries"


class Builder:
    """Builds the data set in a forked child, so that this process never holds a tokenizer or numpy.

    *forked*: called in the child.  *say*: prints a line of its log, beside whatever is drawn on the terminal.
    *kept*: the child waits for another plan (:meth:`again`), and keeps its imports, its tokenizer and the data set.  Records of
    its log then go to the loggers of this process.
    *asking*: what the endpoint asks the server with (``Endpoint.prepare``), behind :meth:`go`; None where it asks nothing.
    anew: whether the data set is surely another one than that of the plan before.  waits: for :meth:`go`.
    """

    def __init__(
        self, plan: Plan, forked: Callable[[], None] = lambda: None, say: Callable[[str], None] = logs.print_line, *,
        kept: bool = False, asking: Secrets | None = None,
    ) -> None:  # fmt: skip
        self._artifacts, self._say = Path(plan.output.artifacts), say
        read, write = os.pipe()
        lines, line_end = os.pipe()
        spoken_to = kept or asking is not None
        orders, orders_end = os.pipe() if spoken_to else (-1, -1)
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            for descriptor in (read, lines, *([orders_end] if spoken_to else [])):
                os.close(descriptor)
            os.set_blocking(line_end, False)
            if kept:
                logs.pass_records(partial(_pass_record, line_end))
            else:
                logs.pass_lines(partial(_pass_line, line_end))
            forked()
            _work(_Order(plan, (), asking), write, os.fdopen(orders, "rb") if spoken_to else None, kept=kept)
        for descriptor in (write, line_end, *([orders] if spoken_to else [])):
            os.close(descriptor)
        os.set_blocking(lines, False)
        self._pipe, self._lines, self._begun_line = os.fdopen(read, "rb", buffering=0), os.fdopen(lines, "rb", buffering=0), b""
        self._heard = b""
        self._orders: int | None = orders_end if spoken_to else None
        self._kept, self.waits = kept, asking is not None
        self._of = plan.data, plan.run.seed
        self.anew = True
        self._busy = True
        """Whether it works at a plan."""

    def go(self) -> None:
        """The server may be asked now; only where the build *waits* for that."""
        if self.waits and self._orders is not None:
            _written(self._orders, _GO)
            self.waits = False
            if not self._kept:
                self.let_go()

    def again(
        self, plan: Plan, secret_texts: Sequence[str], say: Callable[[str], None], asking: Secrets | None = None
    ) -> bool:  # fmt: skip
        """Let a kept child build the data set of another plan; False where it has ended or doesn't take it."""
        if self._orders is None or self._busy:
            return False
        self._artifacts, self._say = Path(plan.output.artifacts), say
        before, self._of = self._of, (plan.data, plan.run.seed)
        self.anew = before != self._of
        self._busy, self.waits = True, asking is not None
        if self._ended() or not _written(self._orders, msgspec.json.encode(_Order(plan, secret_texts, asking)) + b"\n"):
            self.close()
            return False
        return True

    def poll(self, wait_s: float = 0.0) -> bool:
        """Whether :meth:`result` has something to return, now or in this time: the child writes when all is done."""
        # What is read already isn't in the pipe: a build that fails soon says so behind its first line.
        ended = b"\n" in self._heard or bool(select.select([self._pipe], [], [], wait_s)[0])
        self._relay()
        return ended

    def result(self) -> Plan:
        """The plan with what the build adds.

        Raises:
            AiperfError: The build failed; message and exit code are the child's.
        """
        outcome = msgspec.json.decode(self._line() or b"{}")
        if not outcome.get("grows"):
            self._over(outcome)
        if "plan" in outcome:
            return msgspec.convert(outcome["plan"], Plan)
        if "lines" in outcome:
            raise told(outcome["lines"], outcome["code"])
        raise AiperfError("the data set could not be built: its process ended without a word")

    def failure(self, named: Callable[[str], str] = str) -> str | None:
        """Why a data set that grew will not be whole; None while it grows, and once it is.  *named* adds a flag."""
        if not self._busy or not self.poll():
            return None
        outcome = msgspec.json.decode(self._line() or b"{}")
        code = self._over(outcome)
        if "plan" in outcome:
            return None
        death = f"its process was killed by signal {-code}" if code < 0 else "its process ended without a word"
        message, *hints = outcome.get("lines") or [death]
        return f"the data set is not whole: {'; '.join((named(message), *(hint.strip() for hint in hints)))}"

    def _line(self) -> bytes:
        """The next line of the child; b"" where it has closed the pipe."""
        while b"\n" not in self._heard and (piece := os.read(self._pipe.fileno(), _LINES_BYTES)):
            self._heard += piece
        line, _, self._heard = self._heard.partition(b"\n")
        return line

    def stop(self) -> None:
        """Tell a build that no request needs any more to end; what it has made stays."""
        if self._busy:
            os.kill(self.pid, signal.SIGTERM)

    def finish(self) -> None:
        """Wait until a stopped build has written the files of what it made, and end it where it does not."""
        if self._busy:
            if not self.poll(_STOP_S):
                log.warning("the files of the data set are not written: its process did not end within %g s", _STOP_S)
            self.failure()
            self.close()

    def close(self) -> None:
        """End the child if it still works.  One that waits for another plan goes on."""
        if self._busy:
            os.kill(self.pid, signal.SIGKILL)
            self._end()

    def end(self) -> None:
        """End the child.  May be called again."""
        self.close()
        if self._pipe.closed:
            return
        self.let_go()
        if not select.select([self._pipe], [], [], _END_S)[0]:
            os.kill(self.pid, signal.SIGKILL)
        self._end()

    def let_go(self) -> None:
        """Close the pipe of plans: a child that waits ends by itself."""
        if self._orders is not None:
            os.close(self._orders)
            self._orders = None

    def _ended(self) -> bool:
        """Whether a child that waits has closed its end of the pipe."""
        return bool(select.select([self._pipe], [], [], 0)[0])

    def _over(self, outcome: Any) -> int:
        """The plan's build is over; the exit code of the child, 0 where it waits for another plan."""
        if self._orders is not None and outcome:
            self._relay()
            self._busy = False
            return 0
        return self._end()

    def _relay(self) -> None:
        """Print what the child has logged."""
        while piece := self._lines.read(_LINES_BYTES):
            *lines, self._begun_line = (self._begun_line + piece).split(b"\n")
            for line in lines:
                logged = msgspec.json.decode(line, type=str | tuple[str, int, str])
                if isinstance(logged, str):
                    self._say(logged)
                else:
                    name, level, text = logged
                    logging.getLogger(name).log(level, "%s", text)

    def _end(self) -> int:
        """Wait for the child; its exit code, or minus the signal that ended it."""
        self._busy = False
        self.let_go()
        self._pipe.close()
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._relay()
        self._lines.close()
        if code < 0:
            for draft in self._artifacts.glob(".*.draft"):
                draft.unlink(missing_ok=True)
        return code


def _written(pipe: int, data: bytes) -> bool:
    """Write to a process that may have ended or stand still; whether all was taken in time."""
    os.set_blocking(pipe, False)
    view = memoryview(data)
    while view:
        if not select.select([], [pipe], [], _TAKE_S)[1]:
            return False
        try:
            view = view[os.write(pipe, view) :]
        except BlockingIOError:
            continue
        except BrokenPipeError:
            return False
    return True


def _pass_line(pipe: int, line: str) -> None:
    """Give a line to the parent, or print it where that was killed or reads nothing."""
    try:
        os.write(pipe, msgspec.json.encode(line) + b"\n")
    except (BrokenPipeError, BlockingIOError):
        logs.print_line(line)


def _pass_record(pipe: int, name: str, level: int, text: str) -> None:
    """Give a record to the parent's loggers, or print it where that was killed or reads nothing."""
    try:
        os.write(pipe, msgspec.json.encode((name, level, text)) + b"\n")
    except (BrokenPipeError, BlockingIOError):
        logs.print_line(text)


def _work(order: _Order, write: int, orders: BinaryIO | None, *, kept: bool) -> NoReturn:
    """The child: writes the plan, or lines and exit code of an error.  It leaves without unwinding the parent's stack.

    *orders*: the word to ask the server comes from there, and further plans where it is *kept*.
    """
    code = 1
    try:
        local.ignore_endings()
        gc.freeze()
        gc.set_threshold(_GC_THRESHOLD)
        pipe, own = os.fdopen(write, "wb"), None
        if kept:
            from aiperf.prepare.kept import Kept

            own = Kept()
        nice, following = os.getpriority(os.PRIO_PROCESS, 0), True
        while following:
            if order.asking is not None and orders is not None and orders.readline() != _GO:
                break  # the run has ended before
            _build(order, pipe, own)
            if kept:
                gc.collect()  # with the memory it closes files
            following = kept and orders is not None and _same_priority(nice) and bool(line := orders.readline())
            if following:
                order = _decode_order(line)
                logs.scrub_output(order.secret_texts)
                logging.getLogger("aiperf").setLevel(min(order.plan.run.log_level, logging.INFO))
        code = 0
    except BaseException:  # noqa: BLE001
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _same_priority(nice: int) -> bool:
    """Take back that a build stood back behind the load; False where the user may not."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    except OSError:
        return False
    return True


def _build(order: _Order, pipe: BinaryIO, kept: Kept | None) -> None:
    from aiperf.prepare.build import build

    parent, stopped = os.getppid(), list[int]()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def tell(outcome: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # the parent was killed
            pipe.write(msgspec.json.encode(outcome) + b"\n")
            pipe.flush()

    def publish(growing: Plan) -> Callable[[], bool]:
        signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
        tell({"plan": growing, "grows": True})
        return lambda: bool(stopped) or os.getppid() != parent

    outcome: dict[str, Any]
    try:
        with no_exit(log.warning):
            outcome = {"plan": build(_asked(order), publish, kept)}
    except AiperfError as error:
        outcome = {"lines": error.lines(), "code": error.exit_code}
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a late word on a build that is over
    tell(outcome)


def _asked(order: _Order) -> Plan:
    """The plan with what its endpoint has learned of the server."""
    if order.asking is None:
        return order.plan
    from aiperf.worker.asking import prepared

    return prepared(order.plan, order.asking)
