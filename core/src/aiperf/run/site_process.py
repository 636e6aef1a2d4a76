"""A site of a run: the process that starts the workers and reducers of this machine, and speaks to the run for them.

    python -P -m aiperf.run.site_process

The keys of the run come on standard input, in one line; when that is closed behind it, the run is gone, or needs this site no
more.  The shards of the site are ordinary ones, with indices of their own: they share memory, and keep a journal in a directory
that ends with this process.  A site that hears nothing of the run for 30 s lets its requests end, and ends.

Where a run has several plans, each has a :class:`SiteProcess` and a journal of its own, so that it finds nothing of the one
before; :class:`aiperf.run.site_home.SiteHome` has what is kept.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from pathlib import Path
from time import monotonic_ns, time_ns

import msgspec
import zmq
from msgspec.structs import replace

from aiperf import __version__
from aiperf.errors import AiperfError
from aiperf.processes import control, local, open_files
from aiperf.processes.usage import UsageReader
from aiperf.run import site_notes
from aiperf.run.site_home import SiteHome
from aiperf.run.site_notes import SiteNotes
from aiperf.run.site_stocks import LOOK_S, Stocks
from aiperf.rundir import temporary
from aiperf.rundir.journal import RunClock, RunEnd, columns_path, save_run
from aiperf.rundir.links import link
from aiperf.sdk.engine import Shard
from aiperf.sdk.plan import ExportLevel, Plan
from aiperf.sites import messages
from aiperf.sites.channel import SiteLine
from aiperf.sites.fence import held
from aiperf.sites.files import DOWN_BYTES, FileCopy, sent_file, tls_files, tokenizer_file
from aiperf.sites.fitness import crowded, unfit
from aiperf.sites.going_on import Standing
from aiperf.sites.silence import SILENCE_S
from aiperf.sites.site_files import SiteFiles
from aiperf.worker.clock import NS_PER_S
from aiperf.worker.shared import Shared

_TICK_S = 0.2
_USAGE_S = 1.0
_DRAIN_S = 5.0
"""Longest time for requests in flight once the run is gone."""


class SiteProcess:
    """The site in one plan, with a journal of its own.

    Raises:
        OSError: There is no room for one.
    """

    # Larger than 250 lines: it answers all that the run says, and all that its shards say.
    # More than 20 attributes: for its shards it stands for the run, with processes, files, numbers and what it has told.

    def __init__(self, line: SiteLine, board: control.Switchboard, home: SiteHome) -> None:
        self._line, self._board, self._home = line, board, home
        self._directory = home.journal()
        self._sent_files: list[messages.SentFile] = []
        self._children: dict[tuple[str, int], local.LocalProcess] = {}
        self._told: set[Shard] = set()
        self._plan: Plan | None = None
        self._clock = RunClock(0, 0)
        self._order: messages.Order | None = None
        self._shared: Shared | None = None
        self._stocks: Stocks | None = None
        self._begun: dict[int, tuple[int, int]] = {}
        self._passed: dict[int, int] = {}
        self._copy: FileCopy | None = None
        self._supply: messages.Supply | None = None
        self._phase: int | None = None
        self._loaded: set[int] = set()
        self._died: set[int] = set()
        self._ticked_s = 0.0
        self._columns: messages.Columns | None = None
        self._files, self._finishing = SiteFiles(self._directory), False
        self._notes: SiteNotes | None = None  # None where other sites need none
        self._usage, self._usage_s = UsageReader(), 0.0
        self.over = self._rests = False

    def run(self) -> bool:
        """Serve until the plan is over, and wait for the next one; whether there is one."""
        poller = zmq.Poller()
        poller.register(0, zmq.POLLIN)
        self._line.wake(poller)
        self._board.wake(poller)
        self._line.send(messages.SiteUp(__version__))
        while not self.over:
            ready = dict(poller.poll(round(self._rest_s * 1000)))
            if 0 in ready and not os.read(0, 4096):
                return False
            while not self.over and (message := self._line.receive()) is not None:
                self._handle(message)
            while (said := self._board.receive(0)) is not None:
                self._pass_on(said)
            if self._stocks is not None:
                self._stocks.look()
            self._tell_notes()
            self._tick()
        return self._rests and self._home.rest(self._directory, self._sent_files)

    @property
    def _rest_s(self) -> float:
        """Longest time to the next look at what workers draw and tell."""
        if self._notes is not None and self._loaded:
            return site_notes.LOOK_S
        return LOOK_S if self._stocks is not None and self._stocks.active else _TICK_S

    def _tick(self) -> None:
        now_s = time.monotonic()
        if now_s - self._ticked_s < _TICK_S:
            return
        self._ticked_s = now_s
        for (role, index), process in list(self._children.items()):
            if process not in self._told and (code := process.poll()) is not None:
                while (said := self._board.receive(0)) is not None:  # its last messages
                    self._pass_on(said)
                self._told.add(process)
                self._line.send(messages.ChildEnded(role, index, code))
        self._tell_columns()
        if now_s - self._usage_s >= _USAGE_S:
            self._usage_s = now_s
            self._tell_usage(now_s)
        self._ask_for_files()
        self._line.tend()
        if now_s - self._line.heard_s > SILENCE_S:
            print(f"site: nothing was heard of the run for {SILENCE_S:g} s", file=sys.stderr)
            self.over = True

    def _handle(self, message: messages.SiteMessage) -> None:
        match message:
            case messages.Trip(sent_ns):
                self._line.send(messages.TripBack(sent_ns, monotonic_ns(), time_ns()))
            case messages.Order():
                self._begin(message)
            case messages.Supply():
                self._supply, self._copy = message, FileCopy(self._directory, DOWN_BYTES)
                self._sent_files = message.files
                for file in self._home.files.give(self._directory, message.files):
                    self._copy.grow(file.name, file.size)
                self._ask_for_files()
            case messages.FilePiece() if self._copy is not None:
                self._copy.take(message)
                self._ask_for_files()
            case messages.FileWanted():
                with contextlib.suppress(FileNotFoundError):
                    self._line.send(self._files.part(message))
            case messages.Notes(told) if self._shared is not None:
                self._shared.take_notes(told)
            case messages.Block() | messages.GiveBack() if self._stocks is not None:
                self._stocks.handle(message)
            case messages.ToChild(role, index, body):
                self._deliver(role, index, control.decode(body))
            case messages.GoOn(worker, phase, place):
                assert self._shared is not None, "the worker is ready"
                self._shared.go_on(worker, phase, place.arrivals, place.sessions)
                self._passed[worker] = place.arrivals
            case messages.StartChild(role, index):
                self._start_again(role, index)
            case messages.KillChild(role, index):
                self._children[role, index].kill()
            case messages.SiteEnd() | messages.PlanOver():
                self.over, self._rests = True, isinstance(message, messages.PlanOver)

    def _begin(self, order: messages.Order) -> None:
        """Start the processes, which import while the data set is made."""
        if (why := unfit(order.plan)) is not None:
            self._line.send(messages.Unfit(why))
            return
        open_files.check(order.plan, max(1, len(order.workers)))
        if (note := crowded(len(order.workers), len(order.reducers))) is not None:
            self._line.send(messages.FromChild(control.encode(control.Notice(note))))
        self._order, self._clock = order, order.clock
        # Whether a tokenizer comes is not known yet, and none that may come is looked for meanwhile.
        self._plan = here(order.plan, self._directory).replacing(tokenizer_directory=_tokenizer_place(self._directory))
        self._files.wanted = order.plan.output.export_level == ExportLevel.RAW
        save_run(self._directory, self._plan, self._clock)
        phases, kept = max(order.phases, len(order.plan.load.phases)), order.phases > 0  # the next plan may need more
        claims = order.plan.run.deals_numbers or kept
        self._shared = self._home.share(phases, several=claims or len(order.workers) > 1, claims=claims)
        for reducer, number in order.columns.items():  # a reducer goes on in the last file that is there
            columns_path(self._directory, reducer, number).touch(0o600)
        for role, indices in (("worker", order.workers), ("reducer", order.reducers)):
            for index in indices:
                self._start(role, index)

    def _start(self, role: str, index: int) -> None:
        if (process := self._home.waiting(role, index)) is not None:
            self._children[role, index] = process
            self._pass_on(control.Hello(role, index))  # it said so in the first plan
        else:
            self._children[role, index] = self._home.start(role, index)

    def _start_again(self, role: str, index: int) -> None:
        assert self._plan is not None and self._shared is not None, "a process has died"
        if role == "worker":
            self._died.add(index)
            if self._phase is not None:
                self._shared.release(index, self._plan.load.phases[self._phase])
        self._start(role, index)

    def _ask_for_files(self) -> None:
        if self._copy is None or self._supply is None:
            return
        for wanted in self._copy.wanted():
            self._line.send(wanted)
        if not self._copy.missing_bytes:
            supply, self._supply, self._copy = self._supply, None, None
            self._take_supply(supply)

    def _take_supply(self, supply: messages.Supply) -> None:
        """All files are here: the plan is whole."""
        wrong = [file.name for file in supply.files if sent_file(self._directory / file.name) != file]
        if wrong:
            self._line.send(messages.Unfit(f"{', '.join(wrong)} did not come as sent"))
            return
        assert self._shared is not None and self._order is not None, "the site has its order"
        self._plan = here(supply.plan, self._directory)
        if self._plan.data.tokenizer_directory is not None:
            place = Path(self._plan.data.tokenizer_directory)
            place.mkdir(mode=0o700)
            for name in supply.plan.data.tokenizer_files:
                link(self._directory / tokenizer_file(name), place / name)
        save_run(self._directory, self._plan, self._clock)
        self._shared.begin(self._plan, self._order.workers[0])
        phases = self._plan.load.phases
        if self._plan.run.deals_numbers:
            lanes = {phase.index for phase in phases if self._plan.plugins.fact("drivers", phase.driver, "lanes")}
            claims = [self._shared.claims(phase) for phase in phases]
            self._stocks = Stocks(phases, claims, self._line.send, lanes, len(self._plan.run.sites))
            self._notes = SiteNotes(self._shared, self._order.workers, self._line.send) if lanes else None
        for worker, number in self._order.requests.items():
            self._shared.number_from(worker, number)
        self._line.send(messages.Supplied())

    def _deliver(self, role: str, index: int, message: control.Message) -> None:
        match message:
            case control.Prepare():
                message = control.Prepare(str(self._directory))
            case control.Begin(phase):
                self._phase = phase
                self._loaded.add(index)
                if self._begun.get(index, (None, 0))[0] != phase:  # else in the place of one that died here
                    self._begun[index] = phase, self._requests().get(index, 0) - self._passed.pop(index, 0)
            case control.Finish():
                self._finishing = True
                if not self._files.whole or not self._end_is_saved():
                    self._leave_to_run(index)
                    return
        self._board.send(f"{role}-{index}", message)

    def _end_is_saved(self) -> bool:
        """Write down what the reducers of the site must know of its end; False where the disk has no room for it."""
        assert self._plan is not None, "there was a load"
        with contextlib.suppress(OSError):
            end = RunEnd(requests=self._requests(), died=tuple(sorted(self._died)))
            save_run(self._directory, self._plan, self._clock, end)
            return True
        return False

    def _leave_to_run(self, reducer: int) -> None:
        """The disk has no room for what the reducer has to do yet: the run fetches segments, and its own machine does it."""
        process = self._children["reducer", reducer]
        self._told.add(process)  # nobody starts another one in its place
        process.kill()
        self._files.wanted = True
        self._tell_columns()
        self._line.send(messages.FromChild(control.encode(control.Reduced(reducer))))

    def _requests(self) -> dict[int, int]:
        if self._shared is None or self._order is None:
            return {}
        counted = self._shared.requests()
        return {index: counted.get(index, 0) for index in self._order.workers}

    def _pass_on(self, message: control.Message) -> None:
        if isinstance(message, control.Unwritten):
            self._files.take(message)
            return
        if isinstance(message, control.Trouble) and self._finishing:
            message = control.Notice(message.message)  # of a reducer, whose work the run's machine can do
        elif isinstance(message, control.Reduced):
            if message.trouble is not None:
                self._leave_to_run(message.index)
                return
            self._tell_columns()  # whole by now, and told before
        elif isinstance(message, control.PhaseEnded):
            self._tell_notes()  # those of this phase are there when the next one begins
            self._loaded.discard(message.index)
        elif isinstance(message, control.Released):
            self._home.released(message)
        self._line.send(messages.FromChild(control.encode(message)))

    def _tell_notes(self) -> None:
        if self._notes is not None and self._loaded:
            self._notes.tell()

    def _tell_columns(self) -> None:
        columns = self._files.told(self._requests())
        if columns != self._columns:
            self._columns = columns
            self._line.send(columns)
            self._tell_standings(columns.requests)

    def _tell_standings(self, requests: dict[int, int]) -> None:
        """Sessions are read behind *requests*: see :class:`Standing`."""
        if self._plan is None or self._shared is None or not self._plan.run.restart_lost or not self._begun:
            return
        told = {
            worker: Standing(phase, requests[worker] - before, self._shared.sessions(worker, phase))
            for worker, (phase, before) in self._begun.items()
        }
        self._line.send(messages.Standings(told))

    def _tell_usage(self, now_s: float) -> None:
        workers = {index: each for (role, index), each in self._children.items() if role == "worker"}
        if workers:
            usage = {index: self._usage.read(each.pid, now_s) for index, each in workers.items()}
            self._line.send(messages.Usage(usage))

    def end(self) -> None:
        """Let requests in flight end, where the run is gone."""
        running = {index for index in self._loaded if self._children["worker", index].poll() is None}
        for index in running:
            self._board.send(f"worker-{index}", control.Stop(round(_DRAIN_S * NS_PER_S)))
        until_s = time.monotonic() + _DRAIN_S
        while running and time.monotonic() < until_s:
            said = self._board.receive(100)
            if isinstance(said, control.PhaseEnded):
                running.discard(said.index)


def here(plan: Plan, directory: Path) -> Plan:
    """The plan with the paths of this machine: its files are in *directory*."""

    def moved(path: str | None) -> str | None:
        return None if path is None else str(directory / Path(path).name)

    phases = tuple(
        replace(
            phase, due_file=moved(phase.due_file), sessions_file=moved(phase.sessions_file),
            limits_file=moved(phase.limits_file), prefill_limits_file=moved(phase.prefill_limits_file),
        )
        for phase in plan.load.phases
    )  # fmt: skip
    return plan.replacing(
        journal=str(directory), artifacts=str(directory), phases=phases,
        tls=replace(plan.target.tls, **{field: str(directory / name) for field, name in tls_files(plan.target.tls).items()}),
        tokenizer_directory=_tokenizer_place(directory) if plan.data.tokenizer_files else None,
    )  # fmt: skip


def _tokenizer_place(directory: Path) -> str:
    """The directory for the files of the tokenizer that is sent, within that of the site."""
    return str(directory / "tokenizer")


def main() -> None:
    local.ignore_endings()
    keys = msgspec.json.decode(_first_line(), type=messages.SiteKeys)
    fence: socket.socket | None = None
    with contextlib.ExitStack() as stack:
        try:
            open_files.raise_limit()
            if keys.place and (fence := held(keys.place)) is not None:
                stack.enter_context(fence)
            base = temporary.socket_base()
            temporary.sweep(base)
            directory = stack.enter_context(temporary.private_directory(base, "site"))
        except (AiperfError, OSError) as error:
            sys.exit(_sentence(error))
        line, board = SiteLine(keys), control.Switchboard(f"ipc://{directory}/control")
        home = SiteHome(line, board, directory, [] if fence is None else [fence.fileno()])
        site: SiteProcess | None = None
        try:
            while site is None or site.run():
                site = SiteProcess(line, board, home)
        except (AiperfError, OSError) as error:
            line.send(messages.Unfit(_sentence(error, home.place)))
        finally:
            if site is not None:
                site.end()
            home.end()
            board.close()
            line.close()


def _sentence(error: AiperfError | OSError, place: Path | None = None) -> str:
    """What went wrong; *place*: where, if the system's error names none."""
    if isinstance(error, OSError):
        where = error.filename or place
        return f"{error.strerror or error}: {where}" if where else str(error.strerror or error)
    return f"{error.message} ({'; '.join(error.hints)})" if error.hints else error.message


def _first_line() -> bytes:
    """Read byte by byte: what is behind the line stays in the pipe."""
    line = b""
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line


if __name__ == "__main__":
    main()
