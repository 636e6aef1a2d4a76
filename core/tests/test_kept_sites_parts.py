"""What a site and its run keep between two plans: files, logs, limits; and a run whose second site can't be started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from aiperf import AiperfError, Shard, SiteEngine, SiteStart
from aiperf.run.site_stocks import Stock
from aiperf.sdk.driver import ARRIVALS
from aiperf.sdk.plan import RunClock
from aiperf.sites.files import sent_file
from aiperf.sites.kept_files import KeptFiles
from aiperf.sites.messages import Block, Claim, Given
from aiperf.sites.remote import RemoteSites
from aiperf.sites.site_log import SiteLog
from aiperf.worker.claims import Blocks
from aiperf.worker.shared import Shared
from aiperf_testing.journals import plan_for


def journal(folder: Path, name: str, **files: bytes) -> Path:
    (folder / name).mkdir()
    for file, content in files.items():
        (folder / name / file).write_bytes(content)
    return folder / name


def test_files_of_the_same_content_stay_and_others_go(tmp_path: Path) -> None:
    first = journal(tmp_path, "first", entries=b"entries", due=b"1", same=b"entries")
    files = [sent_file(path) for path in sorted(first.iterdir())]
    wanted = [sent_file(first / "entries", "other"), sent_file(journal(tmp_path, "run", due=b"2") / "due")]
    kept = KeptFiles(tmp_path / "files")
    kept.keep(first, files)
    second = journal(tmp_path, "second")
    assert [file.name for file in kept.give(second, wanted)] == ["due"]
    assert (second / "other").read_bytes() == b"entries"
    assert not (tmp_path / "files").exists()


def test_certificates_are_not_kept(tmp_path: Path) -> None:
    first = journal(tmp_path, "first", **{"tls-client-key.pem": b"secret"})
    kept = KeptFiles(tmp_path / "files")
    kept.keep(first, [file := sent_file(first / "tls-client-key.pem")])
    assert [*(tmp_path / "files").iterdir()] == []
    assert [*kept.give(journal(tmp_path, "second"), [file])] == [file]


def test_each_plan_has_what_was_said_in_it(tmp_path: Path) -> None:
    said, first, second = (tmp_path / name for name in ("said", "first", "second"))
    log = SiteLog(said, first)
    assert log.last_line() == "" and first.read_text() == ""
    said.write_text("one\n")
    log.follow()
    with said.open("a") as file:
        file.write("two\n")
    log = log.next(second)
    assert (first.read_text(), second.read_text(), log.last_line()) == ("one\ntwo\n", "", "")
    with said.open("a") as file:
        file.write("three\n\n")
    log.follow()
    assert (second.read_text(), log.last_line()) == ("three\n\n", " (three)")


def test_numbers_of_one_plan_are_not_in_the_next(tmp_path: Path) -> None:
    shared = Shared(2, several=True, claims=True)
    plan = plan_for(tmp_path)
    shared.begin(plan)
    fds, sent = shared.claims(plan.load.phases[0]), list[Claim | Given]()
    stock = Stock(0, ARRIVALS, fds, (4, 1), sent.append)
    stock.take(Block(0, ARRIVALS, 100, 3))
    stock.take(Block(0, ARRIVALS, 500, 0, over=True))
    os.eventfd_read(fds.stocks[ARRIVALS])
    os.lseek(fds.positions[ARRIVALS], 1, os.SEEK_CUR)
    shared.begin(plan)
    with pytest.raises(BlockingIOError):
        os.eventfd_read(fds.stocks[ARRIVALS])
    assert os.lseek(fds.positions[ARRIVALS], 0, os.SEEK_CUR) == 0
    blocks = Blocks(fds.blocks, ARRIVALS)
    blocks.append(7, 2)
    assert [blocks.number(position) for position in (0, 1)] == [7, 8]
    shared.close()


def test_numbers_beyond_the_count_have_no_end(tmp_path: Path) -> None:
    shared, sent = Shared(2, several=True, claims=True), list[Claim | Given]()
    plan = plan_for(tmp_path)
    shared.begin(plan)
    fds = shared.claims(plan.load.phases[0])
    stock = Stock(0, ARRIVALS, fds, (4, 1), sent.append)
    stock.take(Block(0, ARRIVALS, 500, 0, over=True))
    blocks, drawn = Blocks(fds.blocks, ARRIVALS), list[int]()
    for look in range(20):
        for _ in range(1000):
            os.eventfd_read(fds.stocks[ARRIVALS])
            drawn.append(blocks.number(os.lseek(fds.positions[ARRIVALS], 1, os.SEEK_CUR) - 1))
        stock.look(float(look))
    assert drawn == [*range(500, 20_500)] and len(sent) == 1
    shared.close()


class Fake(Shard):
    def __init__(self, ended: list[str]) -> None:
        self._ended = ended

    def poll(self) -> int | None:
        return 0 if "killed" in self._ended else None

    def wait(self, seconds: float) -> int | None:
        return self.poll()

    def let_go(self) -> None:
        self._ended.append("let go")

    def kill(self) -> None:
        self._ended.append("killed")


class Half(SiteEngine[None]):
    """It can start one site."""

    def __init__(self) -> None:
        super().__init__(None)
        self.ended: list[str] = []

    def start(self, start: SiteStart) -> Shard:
        if start.index:
            raise AiperfError("no room for a second one")
        return Fake(self.ended)

    def close(self) -> None:
        self.ended.append("closed")


def test_sites_that_were_started_end_where_the_next_one_cannot_be(tmp_path: Path) -> None:
    engine = Half()
    plan = plan_for(tmp_path, sites=("attic", "barn"), workers=2)
    with pytest.raises(AiperfError, match="no room"):
        RemoteSites(plan, engine, RunClock(0, 0), tmp_path, tmp_path / "log", "a module")
    assert engine.ended == ["killed", "let go", "closed"]
