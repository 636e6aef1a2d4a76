"""Where shards are: the local engine keeps the contract, and one that fails is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiperf.errors import AiperfError, PluginError
from aiperf.processes.local import Local
from aiperf.run.children import Children
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.engine import Shard, ShardEngine, ShardStart
from aiperf.sdk.plan import Plan
from aiperf.testing import ShardEngineContract
from aiperf_testing.journals import plan_for
from aiperf_testing.plans import sample_ref


class TestLocalKeepsTheContract(ShardEngineContract):
    engine = Local


class Held(Shard):
    """Nobody at all."""

    code: int | None = None

    def poll(self) -> int | None:
        return self.code

    def wait(self, seconds: float) -> int | None:
        return self.code

    def let_go(self) -> None:
        self.code = 0

    def kill(self) -> None:
        self.code = -9


class Noting(ShardEngine):
    """Starts nothing, and remembers what it was asked for."""

    started: ClassVar[list[ShardStart]] = []

    def start(self, start: ShardStart) -> Shard:
        self.started.append(start)
        return Held()


class Sharing(Noting):
    shares_memory = True


class Full(ShardEngine):
    def start(self, start: ShardStart) -> Shard:
        raise AiperfError("the cluster is full", "wait")


class Broken(ShardEngine):
    def start(self, start: ShardStart) -> Shard:
        raise ZeroDivisionError("no machine to divide by")


def ref(engine: type) -> PluginRef:
    return sample_ref("engines", f"{__name__}:{engine.__name__}")


def plan(directory: Path, engine: type[ShardEngine], **more: Any) -> Plan:
    return plan_for(directory, engine=ref(engine), reducers=0, **more)


def children(directory: Path, engine: type[ShardEngine], **more: Any) -> Children:
    return Children(plan(directory, engine, **more), "ipc://nowhere", directory, directory / "log")


@pytest.fixture(autouse=True)
def nothing_started() -> None:
    Noting.started.clear()


def test_an_engine_is_asked_for_each_shard_with_the_words_to_run(tmp_path: Path) -> None:
    found = children(tmp_path, Noting, workers=2)
    assert [start.index for start in Noting.started] == [0, 1]
    assert Noting.started[1].command[1:] == ("-P", "-m", "aiperf.worker.process", "ipc://nowhere", "1", "")
    assert Noting.started[1].descriptors == ()
    assert not found.replaceable
    found.end(0.0)
    assert [child.process.poll() for child in found.workers] == [0, 0]


def test_shards_that_share_memory_inherit_what_they_count_together(tmp_path: Path) -> None:
    found = children(tmp_path, Sharing, workers=2)
    (first, _) = Noting.started
    assert first.command[-1].split(",") == [str(fd) for fd in found.shared.fds]
    assert list(first.descriptors) == found.shared.fds
    assert all(os.fstat(fd) for fd in first.descriptors)
    assert found.replaceable
    found.end(0.0)


@pytest.mark.parametrize(
    ("engine", "error", "said"),
    [
        (Full, AiperfError, "the cluster is full"),
        (
            Broken,
            PluginError,
            "the plugin engines:broken of acme 1.2 can't start shard 0: ZeroDivisionError: no machine to divide by",
        ),
    ],
)
def test_an_engine_that_starts_nothing_is_named(
    tmp_path: Path, engine: type[ShardEngine], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        children(tmp_path, engine)


def test_the_end_of_a_shard_is_said_in_words(tmp_path: Path) -> None:
    found = children(tmp_path, Noting)
    child = found.workers[0]
    assert child.fate() == "is running"
    child.process.kill()
    assert child.fate() == "was killed by SIGKILL"
