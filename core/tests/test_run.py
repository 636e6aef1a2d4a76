"""The parent process: messages, workers that die, snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiperf.errors import AiperfError
from aiperf.processes import control
from aiperf.run.children import Child, Mailbox
from aiperf.run.live_parts import LiveParts
from aiperf.run.snapshots import snapshot_of
from aiperf.run.start import Interruption, Outcome, Signals
from aiperf.sdk.engine import Shard
from aiperf.sdk.plan import PhasePlan, Secrets
from aiperf.sdk.reducer import Live

PHASE = PhasePlan("profiling", "profiling", 0, "burst", request_count=10, turns=10)


class Process(Shard):
    """A process that ends when *code* is set."""

    code: int | None = None

    def poll(self) -> int | None:
        return self.code


class Family:
    """Children without processes of the system; *released*: workers whose limits were given back."""

    replaceable = True

    def __init__(self) -> None:
        self.workers = [Child("worker", index, Process()) for index in range(2)]
        self.reducers = [Child("reducer", 0, Process())]
        self.released: list[int] = []
        self.of = {"worker": self.workers, "reducer": self.reducers}

    @property
    def all(self) -> list[Child]:
        return [*self.workers, *self.reducers]

    def losses(self, outcome: Outcome, parts: LiveParts) -> None:
        """It has no sites."""

    def release(self, child: Child, phase: PhasePlan) -> None:
        self.released.append(child.index)

    def restart(self, child: Child) -> None:
        self.of[child.role][child.index] = Child(child.role, child.index, Process())


class Board:
    """A control channel with waiting messages, and a list of those sent."""

    def __init__(self) -> None:
        self.waiting: list[control.Message] = []
        self.sent: list[tuple[str, control.Message]] = []

    def receive(self, wait_ms: int) -> control.Message | None:
        return self.waiting.pop(0) if self.waiting else None

    def send(self, identity: str, message: control.Message) -> None:
        self.sent.append((identity, message))


class Bench:
    def __init__(self) -> None:
        self.board, self.family, self.signals = Board(), Family(), Signals()
        self.outcome = Outcome(self.signals)
        family: Any = self.family
        board: Any = self.board
        self.mailbox = Mailbox(board, family, self.outcome, Path("results"))

    def receive(self, *messages: control.Message) -> None:
        self.board.waiting += messages
        while self.mailbox.receive(0):
            pass

    def die(self, role: str, code: int = -9) -> None:
        process = self.family.of[role][0].process
        assert isinstance(process, Process)
        process.code = code


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_child_gets_the_plan_once_whenever_it_comes_up(bench: Bench) -> None:
    prepare = control.Prepare("journal")
    plans = {"worker": control.Load(Secrets(path="w")), "reducer": control.Load(Secrets(path="r"))}
    bench.mailbox.announce({"worker": prepare, "reducer": prepare})
    bench.receive(control.Hello("worker", 0))
    assert bench.board.sent == [("worker-0", prepare)]
    bench.mailbox.announce(plans)
    bench.receive(control.Hello("reducer", 0))
    assert bench.board.sent[1:] == [("worker-0", plans["worker"]), ("reducer-0", prepare), ("reducer-0", plans["reducer"])]


def test_a_first_reducer_that_begins_gets_what_the_others_have_told(bench: Bench) -> None:
    other = Child("reducer", 1, Process())
    bench.family.reducers.append(other)
    bench.receive(control.LiveFigures(1, Live(2, (), b"two")))
    assert bench.board.sent == [], "the first one is not ready"
    bench.family.reducers[0].ready = True
    bench.receive(control.LiveFigures(1, Live(3, (), b"three")), control.LiveFigures(0, Live(4, (), b"own")))
    assert bench.board.sent == [("reducer-0", control.TakeParts([b"three"]))]
    bench.board.sent.clear()
    bench.receive(control.Ready("reducer", 1), control.Ready("reducer", 0))
    assert bench.board.sent == [("reducer-0", control.TakeParts([b"three", b"own"]))]


def test_parts_of_lost_reducers_stay_beside_those_of_the_next_ones() -> None:
    parts = LiveParts()
    parts.take(1, b"before")
    parts.take(0, b"first")
    parts.lose({1, 5})
    parts.take(1, b"behind")
    assert parts.all() == [b"before", b"first", b"behind"]


def test_a_ready_replacement_gets_what_it_missed(bench: Bench) -> None:
    bench.receive(control.Ready("worker", 1))
    assert bench.board.sent == []
    begin = control.Begin(0, 1, resumed=True)
    bench.mailbox.catch_up = lambda child: [begin] if child.role == "worker" else []
    bench.receive(control.Ready("worker", 0), control.Ready("reducer", 0))
    assert bench.board.sent == [("worker-0", begin)]


def test_a_notice_is_in_the_report_once(bench: Bench) -> None:
    bench.receive(control.Notice("slow"), control.Notice("slow"))
    assert bench.outcome.warnings == ["slow"]
    assert bench.outcome.incomplete is None


def test_a_trouble_makes_the_run_incomplete(bench: Bench) -> None:
    bench.receive(control.Trouble("the disk is full"))
    assert bench.outcome.incomplete == "the disk is full"


def test_a_message_that_no_child_sends_is_ignored(bench: Bench) -> None:
    bench.receive(control.Exit())


def test_a_dead_worker_is_replaced_three_times(bench: Bench) -> None:
    for _ in range(4):
        bench.die("worker")
        bench.mailbox.watch_workers(PHASE)
    assert bench.family.released == [0, 0, 0, 0]
    assert (bench.outcome.replaced, bench.outcome.lost, bench.mailbox.ended) == (3, {0}, {0})
    assert bench.outcome.incomplete is not None
    assert bench.outcome.incomplete.startswith("worker 0 was killed by SIGKILL")


def test_a_worker_that_dies_after_its_last_message_is_not_replaced(bench: Bench) -> None:
    bench.die("worker")
    bench.board.waiting.append(control.PhaseEnded(0, 0, 7, 9))
    bench.mailbox.watch_workers(PHASE)
    assert (bench.outcome.replaced, bench.outcome.times["last_answer_ns"], bench.mailbox.phase_end_ns) == (0, 7, 9)


def test_after_a_signal_no_worker_is_replaced(bench: Bench) -> None:
    bench.signals.count = 1
    bench.die("worker")
    bench.mailbox.watch_workers(PHASE)
    assert bench.outcome.lost == {0}


def test_a_fourth_dead_reducer_ends_the_run(bench: Bench) -> None:
    for _ in range(3):
        bench.die("reducer", 1)
        bench.mailbox.watch_reducers()
    bench.die("reducer", 1)
    with pytest.raises(AiperfError, match="reducer-0 exited with 1 again and again"):
        bench.mailbox.watch_reducers()


def test_a_snapshot_sums_the_workers_of_its_phase() -> None:
    counters = [control.Counters(0, 0, 5, 3, 1, 1), control.Counters(1, 0, 2, 1, 0, 1), control.Counters(2, 1, 9, 9, 0, 0)]
    snapshot = snapshot_of(PHASE, 2.0, counters)
    assert (snapshot.sent, snapshot.completed, snapshot.errors, snapshot.in_flight) == (7, 4, 1, 2)
    assert (snapshot.share, snapshot.eta_s) == (0.5, 2.0)


def test_a_signal_before_load_interrupts_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    signals = Signals()
    signals.check()
    signals.count = 1
    with pytest.raises(Interruption):
        signals.check()
    assert capsys.readouterr().err == "aiperf: the load had not begun: there are no results\n"
