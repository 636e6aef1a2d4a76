"""The contracts of engines: shards, or the commands of sites, start, talk to the run, and end on request."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiperf.processes import control
from aiperf.processes.local import module_command
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.engine import Shard, ShardEngine, ShardStart, SiteEngine, SiteStart
from aiperf.sdk.options import EncodedOptions
from aiperf.sites.engine_apart import EngineApart

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


_SITE = "import sys; print(len(sys.stdin.readline()), 'bytes', flush=True); sys.stdin.read()"
"""What stands for a site's program: it reads a line, and waits for the end of its input."""


class SiteEngineContract:
    """Subclass with an engine's class, and options that name two sites or more, which this machine can start::

        class TestMineKeepsTheContract(SiteEngineContract):
            engine = Mine
            options = MineOptions(places=("here", "there"))

    The contract starts commands in place of sites, without a run.  Whether the program of a site finds its way back to the
    run, only a run shows.
    """

    engine: ClassVar[type[SiteEngine]]
    options: ClassVar[Any] = None

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[SiteBench]:
        bench = SiteBench(site_engine(type(self).engine, type(self).options, tmp_path / "engine.log"), tmp_path)
        try:
            yield bench
        finally:
            bench.close()

    def test_its_manifest_says_what_it_is(self) -> None:
        row = check_row("engines", self.engine)
        assert row.capabilities.get("sites") is True, "its manifest lacks capabilities: {sites: true}, so it gets no sites"
        assert not self.engine.shares_memory, "sites share no memory: leave shares_memory false"

    def test_each_site_has_a_name_of_its_own(self, bench: SiteBench) -> None:
        names = list(bench.engine.names())
        assert names and all(isinstance(name, str) and name for name in names), f"names gave {names!r}: give texts"
        assert len(set(names)) == len(names), f"names gave {names!r}: two sites can't have one name"
        assert names == list(bench.engine.names()), "names gave others when it was asked again: they depend on options alone"

    def test_a_site_has_a_way_to_the_run(self, bench: SiteBench) -> None:
        host = bench.engine.host()
        try:
            socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
        except OSError as error:
            pytest.fail(f"host gave {host!r}, where nothing can listen ({error}): give an IP address of this machine")
        address = bench.engine.address(0, 4321)
        assert re.fullmatch(r"tcp://\S+:\d+|ipc:///\S+", address), unlike(address, "tcp://HOST:PORT or ipc:///PATH", "give one")

    def test_a_command_gets_its_input_and_ends_when_it_is_let_go(self, bench: SiteBench) -> None:
        site = bench.start(0, _SITE)
        bench.await_input()
        assert bench.echo in bench.log.read_text(), "the command did not get start.input on its standard input"
        assert site.poll() is None, "the command ended before it was let go: keep its standard input open behind start.input"
        site.let_go()
        site.let_go()
        assert site.wait(_PATIENCE_S) == 0 == site.poll(), "a command that was let go did not end with its exit code, 0"
        site.kill()

    def test_the_keys_of_a_site_are_in_no_command_line_and_no_environment(self, bench: SiteBench) -> None:
        site = bench.start(0, _SITE)
        bench.await_input()
        if not Path("/proc/self/environ").exists():
            pytest.skip("this system has no /proc")
        assert [path for path in _told_of_processes() if bench.secret in path[1]] == [], (
            "start.input stands in a command line or an environment, which others can read: give it to standard input alone"
        )
        site.kill()
        assert bench.secret not in bench.log.read_bytes(), "start.input stands in the log: write it nowhere"

    def test_a_command_that_fails_says_so_in_the_log(self, bench: SiteBench) -> None:
        site = bench.start(0, "import sys; sys.stderr.write('no luck'); sys.exit(7)")
        assert site.wait(_PATIENCE_S) == 7, "a command that exits with 7 gave another code: wait gives its exit code"
        said = bench.log.read_text()
        assert said.startswith("what stood there\n"), "the log lost what stood there: append to it"
        assert "no luck" in said, "the log lacks what the command wrote to standard error: append its output"

    def test_killing_a_site_ends_no_other(self, bench: SiteBench) -> None:
        if len(bench.engine.names()) < 2:
            pytest.skip("its options name one site")
        first, second = bench.start(0, _SITE), bench.start(1, _SITE)
        bench.await_input(2)
        first.kill()
        assert first.poll() not in (None, 0), unlike(first.poll(), "an exit code other than 0", "kill must end the command")
        assert second.poll() is None, unlike(second.poll(), None, "killing one site must not end another")
        second.let_go()
        assert second.wait(_PATIENCE_S) == 0, "the second command did not end with 0 when it was let go"

    def test_a_site_that_was_lost_is_started_again(self, bench: SiteBench) -> None:
        bench.start(0, _SITE).kill()
        again = bench.start(0, _SITE)
        assert again.poll() is None, unlike(again.poll(), None, "start may be called again for a site whose command has ended")
        again.let_go()
        assert again.wait(_PATIENCE_S) == 0, "the command that was started again did not end with 0 when it was let go"

    def test_a_site_ends_with_the_process_of_its_engine(self, bench: SiteBench, tmp_path: Path) -> None:
        if not isinstance(bench.engine, EngineApart):
            pytest.skip("it has no process of its own")
        ended = tmp_path / "ended"
        site = bench.start(0, f"{_SITE}; open({str(ended)!r}, 'x')")
        bench.await_input()
        pid = bench.engine.pid
        assert site.poll() is None and pid is not None, "the engine's process, or the command that it started, ended by itself"
        os.kill(pid, signal.SIGKILL)
        assert site.wait(_PATIENCE_S) == 1, "the run must notice that the engine's process has ended"
        until = time.monotonic() + _PATIENCE_S
        while not ended.exists() and time.monotonic() < until:
            time.sleep(0.01)
        assert ended.exists(), "a command outlived its engine's process: its standard input must end with that"


def site_engine(engine: type[SiteEngine], options: Any, log: Path) -> SiteEngine:
    """The engine as a run has it: in a process of its own where it says so, which prints into *log*."""
    if not engine.own_process:
        return engine(options)
    ref = PluginRef("engines", engine.__name__.lower(), f"{engine.__module__}:{engine.__qualname__}", "", "")
    return EngineApart(ref, None if options is None else EncodedOptions.of(options), log)


class SiteBench:
    """An engine of sites, and a log.  input: what its commands get; *secret* is a part of it."""

    def __init__(self, engine: SiteEngine, directory: Path) -> None:
        self.engine = engine
        self.log = directory / "site.log"
        self.log.write_text("what stood there\n")
        self.secret = secrets.token_hex(16).encode()
        self.input = b'{"secret": "%s"}\n' % self.secret
        self._sites: list[Shard] = []

    def start(self, index: int, code: str) -> Shard:
        address = self.engine.address(index, 9)
        self._sites.append(self.engine.start(SiteStart(index, ("-c", code), self.input, self.log, address, 9)))
        return self._sites[-1]

    @property
    def echo(self) -> str:
        """What a command says that has got its input."""
        return f"{len(self.input)} bytes"

    def await_input(self, count: int = 1) -> None:
        """Wait until so many commands have got their input, or have ended."""
        until = time.monotonic() + _PATIENCE_S
        while self.log.read_text().count(self.echo) < count and time.monotonic() < until:
            if all(site.poll() is not None for site in self._sites):
                return
            time.sleep(0.01)

    def close(self) -> None:
        for site in self._sites:
            site.kill()
        self.engine.close()


def _told_of_processes() -> Iterator[tuple[str, bytes]]:
    """Command lines and environments of the processes of this machine that this user may read."""
    for process in Path("/proc").iterdir():
        for name in ("cmdline", "environ"):
            try:
                yield f"{process.name}/{name}", (process / name).read_bytes()
            except OSError:  # it is no process, has ended, or is another user's
                continue
