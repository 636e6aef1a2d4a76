"""The contract of engines: shards start, talk to the run, and end on request."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiperf.processes import control
from aiperf.processes.local import module_command
from aiperf.sdk.engine import Shard, ShardEngine, ShardStart

from aiperf_testing.findings import unlike
from aiperf_testing.manifests import check_row

_PATIENCE_S = 60.0


class ShardEngineContract:
    """Subclass with an engine's class::

        class TestMineKeepsTheContract(ShardEngineContract):
            engine = Mine

    The contract starts real shards, without a run.
    """

    engine: ClassVar[type[ShardEngine]]
    options: ClassVar[Any] = None

    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[EngineBench]:
        with tempfile.TemporaryDirectory(prefix="aiperf-") as directory:
            board = control.Switchboard(f"ipc://{directory}/control")
            place = EngineBench(type(self).engine(type(self).options), board, tmp_path)
            try:
                yield place
            finally:
                place.close()

    def test_its_manifest_says_what_it_is(self) -> None:
        row = check_row("engines", self.engine)
        assert row.capabilities.get("shares_memory", False) is self.engine.shares_memory, (
            unlike(row.capabilities.get("shares_memory", False), self.engine.shares_memory, "say it in the manifest row")
        )

    def test_a_shard_comes_up_and_ends_when_it_is_let_go(self, place: EngineBench) -> None:
        shard = place.start(0)
        assert place.hello() == {0}, "no shard 0 said hello: start must run the given command"
        assert shard.poll() is None, "poll gives an exit code although the shard is running: give None until it ends"
        assert shard.wait(0.0) is None, "wait(0) gives an exit code although the shard is running: give None"
        shard.let_go()
        shard.let_go()
        assert shard.wait(_PATIENCE_S) == 0 == shard.poll(), (
            "a shard that was let go did not end with 0: close its standard input, and give its exit code"
        )
        shard.kill()

    def test_shards_are_several(self, place: EngineBench) -> None:
        first, second = place.start(0), place.start(1)
        assert place.hello(2) == {0, 1}, "shards 0 and 1 did not both say hello: each start runs a process of its own"
        first.kill()
        assert first.poll() not in (None, 0), unlike(first.poll(), "an exit code other than 0", "kill must end the shard")
        assert second.poll() is None, unlike(second.poll(), None, "killing one shard must not end another")
        second.let_go()
        assert second.wait(_PATIENCE_S) == 0, "the second shard did not end with 0 when it was let go"

    def test_a_shard_that_fails_says_so_in_the_log(self, place: EngineBench) -> None:
        words = ("-c", "import sys; sys.stderr.write('no luck'); sys.exit(7)")
        shard = place.engine.start(ShardStart(0, (sys.executable, *words), (), place.log))
        assert shard.wait(_PATIENCE_S) == 7, "a shard that exits with 7 gave another code: wait gives its exit code"
        assert place.log.read_text().startswith("what stood there\n"), "the log lost what stood there: append to it"
        assert "no luck" in place.log.read_text(), "the log lacks what the shard wrote to standard error: append its output"

    def test_what_shards_share_is_inherited(self, place: EngineBench) -> None:
        if not self.engine.shares_memory:
            pytest.skip("its shards share no memory")
        read, write = os.pipe()
        words = ("-c", f"import os; os.write({write}, b'here')")
        shard = place.engine.start(ShardStart(0, (sys.executable, *words), (write,), place.log))
        os.close(write)
        assert shard.wait(_PATIENCE_S) == 0, (
            "a shard that reads an inherited descriptor did not end with 0: pass descriptors on"
        )
        assert os.read(read, 9) == b"here", (
            "what the shard wrote to the inherited descriptor did not arrive: pass descriptors on"
        )
        os.close(read)


class EngineBench:
    """An engine, a control channel, and a log."""

    def __init__(self, engine: ShardEngine, board: control.Switchboard, directory: Path) -> None:
        self.engine, self._board = engine, board
        self.log = directory / "aiperf.log"
        self.log.write_text("what stood there\n")
        self._shards: list[Shard] = []

    def start(self, index: int) -> Shard:
        command = module_command("aiperf.worker.process", self._board.address, index, "")
        self._shards.append(self.engine.start(ShardStart(index, command, (), self.log)))
        return self._shards[-1]

    def hello(self, count: int = 1) -> set[int]:
        """The indices of the shards that have started."""
        started: set[int] = set()
        until = time.monotonic() + _PATIENCE_S
        while len(started) < count and time.monotonic() < until:
            news = self._board.receive(50)
            if isinstance(news, control.Hello):
                started.add(news.index)
        return started

    def close(self) -> None:
        for shard in self._shards:
            shard.kill()
        self.engine.close()
        self._board.close()
