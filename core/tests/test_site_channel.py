"""The channel between a run and its sites: lost messages come again, keys decide who is heard, clocks are bounded."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
from aiperf import AiperfError
from aiperf.sdk.engine import SiteEngine
from aiperf.sdk.plan import SiteOffset
from aiperf.sites import messages
from aiperf.sites.channel import SiteBoard, SiteLine
from aiperf.sites.clock_offset import Trips
from aiperf.sites.delivery import Delivery
from aiperf.sites.files import FileCopy, is_columns, is_segment, part, sent_file
from msgspec.structs import replace

_MOST_S = 60.0


@pytest.fixture
def board() -> Iterator[SiteBoard]:
    board = SiteBoard()
    yield board
    board.close()


def heard(board: SiteBoard) -> tuple[int, messages.SiteMessage]:
    until_s = time.monotonic() + _MOST_S
    while time.monotonic() < until_s:
        if (message := board.receive(100)) is not None:
            return message
    raise AssertionError("nothing came")


def answer(line: SiteLine) -> messages.SiteMessage:
    until_s = time.monotonic() + _MOST_S
    while time.monotonic() < until_s:
        if (message := line.receive()) is not None:
            return message
        time.sleep(0.001)
    raise AssertionError("nothing came")


def test_messages_over_a_broken_way_come_once_and_in_order() -> None:
    draws, there, here, got, now_s = random.Random(3), Delivery(), Delivery(), list[bytes](), 0.0
    sent = [b"%d" % n for n in range(200)]
    for body in sent:
        now_s += 0.1
        under_way = [there.packed(body, now_s), *there.due(now_s)]
        for data in under_way * draws.choice((1, 2)):
            if draws.random() < 0.6 and (taken := here.unpacked(data, now_s)) is not None:
                got.append(taken)
        for data in here.due(now_s):
            if draws.random() < 0.6:
                assert there.unpacked(data, now_s) is None
    while not there.settled:
        now_s += 2.0
        got += filter(None, (here.unpacked(data, now_s) for data in there.due(now_s)))
        for data in here.due(now_s):
            there.unpacked(data, now_s)
    assert got == sent


@pytest.mark.parametrize("host", ["127.0.0.2", "::1"])
def test_the_run_listens_where_the_engine_says(host: str) -> None:
    class Elsewhere(SiteEngine[None]):
        def host(self) -> str:
            return host

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, 0), family=family).close()
    except OSError as error:
        pytest.skip(f"this machine has no address {host}: {error}")
    engine = Elsewhere(None)
    board = SiteBoard(engine.host())
    line = SiteLine(board.keys(0, engine.address(0, board.port)))
    line.send(messages.SiteUp("1"))
    assert heard(board) == (0, messages.SiteUp("1"))
    line.close()
    board.close()


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(AiperfError, match=r"the run can't listen for its sites at 198\.51\.100\.1: \w+"):
        SiteBoard("198.51.100.1")


def test_a_message_that_may_be_lost_is_never_sent_again() -> None:
    there, here = Delivery(), Delivery()
    assert here.unpacked(there.packed(b"a trip", 0.0, numbered=False), 0.0) == b"a trip"
    assert list(there.due(100.0)) == [] == list(here.due(100.0)) and there.settled


def test_a_site_with_its_key_is_heard_and_answered(board: SiteBoard) -> None:
    line = SiteLine(board.keys(0, f"tcp://127.0.0.1:{board.port}"))
    line.send(messages.SiteUp("1"))
    assert heard(board) == (0, messages.SiteUp("1"))
    board.send(0, messages.SiteEnd())
    assert answer(line) == messages.SiteEnd()
    line.close()


@pytest.mark.parametrize("stranger", ["no key", "another run's key", "the key that a site had before", "no name of its own"])
def test_who_has_no_key_of_the_run_is_not_heard(board: SiteBoard, stranger: str) -> None:
    address = f"tcp://127.0.0.1:{board.port}"
    keys = [board.keys(site, address) for site in (0, 1)]
    context = zmq.Context()
    match stranger:
        case "no key" | "no name of its own":  # the latter has the key of site 1
            socket = context.socket(zmq.DEALER)
            socket.setsockopt(zmq.LINGER, 0)
            if stranger != "no key":
                for option, key in (
                    (zmq.CURVE_SERVERKEY, keys[1].server), (zmq.CURVE_PUBLICKEY, keys[1].public),
                    (zmq.CURVE_SECRETKEY, keys[1].secret), (zmq.IDENTITY, "site-0"),
                ):  # fmt: skip
                    socket.setsockopt_string(option, key)
            socket.connect(address)
            socket.send(Delivery().packed(messages.encode(messages.SiteUp("x")), 0.0))
        case "another run's key":
            public, secret = (key.decode() for key in zmq.curve_keypair())
            other = SiteLine(replace(keys[0], public=public, secret=secret))
            other.send(messages.SiteUp("x"))
        case _:
            other = SiteLine(keys[0])
            keys[0] = board.keys(0, address)
            other.send(messages.SiteUp("x"))
    line = SiteLine(keys[0])
    line.send(messages.SiteUp("mine"))
    assert heard(board) == (0, messages.SiteUp("mine")), "the stranger was heard"
    until_s = time.monotonic() + (_MOST_S if stranger == "no name of its own" else 0.2)
    while time.monotonic() < until_s and not board.garbage:
        assert board.receive(20) is None
    assert board.garbage == ({1} if stranger == "no name of its own" else set())
    context.destroy(0)


def test_what_is_no_message_is_noted_and_not_raised(board: SiteBoard) -> None:
    line = SiteLine(board.keys(0, f"tcp://127.0.0.1:{board.port}"))
    line._socket.send(b"garbage")
    line.send(messages.SiteUp("1"))
    assert heard(board) == (0, messages.SiteUp("1")) and board.garbage == {0}
    line.close()


def test_a_second_program_with_a_sites_key_is_noted_and_not_heard(board: SiteBoard) -> None:
    keys = board.keys(0, f"tcp://127.0.0.1:{board.port}")
    first, second = SiteLine(keys), SiteLine(keys)
    first.send(messages.SiteUp("first"))
    assert heard(board) == (0, messages.SiteUp("first")) and board.twice == set()
    second.send(messages.SiteUp("second"))
    until_s = time.monotonic() + _MOST_S
    while not board.twice and time.monotonic() < until_s:
        assert board.receive(20) is None
    assert board.twice == {0}
    board.send(0, messages.SiteEnd())
    assert answer(first) == messages.SiteEnd() and second.receive() is None
    for line in (first, second):
        line.close()


def test_a_site_that_was_replaced_is_not_heard_any_more(board: SiteBoard) -> None:
    address = f"tcp://127.0.0.1:{board.port}"
    old = SiteLine(board.keys(0, address))
    old.send(messages.SiteUp("old"))
    assert heard(board) == (0, messages.SiteUp("old"))
    new = SiteLine(board.keys(0, address))
    old.send(messages.SiteUp("late"))
    new.send(messages.SiteUp("new"))
    assert heard(board) == (0, messages.SiteUp("new"))
    assert board.receive(200) is None and not board.garbage and not board.twice
    for line in (old, new):
        line.close()


@pytest.mark.parametrize("seed", range(20))
def test_a_planted_offset_is_within_the_stated_uncertainty(seed: int) -> None:
    draws, trips, ahead_ns = random.Random(seed), Trips(), random.Random(seed).randrange(-(10**15), 10**15)
    now_ns = 10**12
    for _ in range(20):
        there_ns, back_ns = (round(draws.expovariate(1 / 3e5)) + draws.randrange(50_000, 20_000_000) for _ in range(2))
        trips.add(now_ns, now_ns + there_ns + ahead_ns, now_ns + there_ns + back_ns)
        now_ns += there_ns + back_ns
    offset = trips.offset()
    assert abs(offset.ahead_ns - ahead_ns) <= offset.within_ns <= trips.shortest_ns


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("ppm", [0.0, 0.3, 20.0, -100.0])
def test_a_planted_drift_is_within_the_stated_uncertainty_at_any_time(seed: int, ppm: float) -> None:
    draws, trips, ahead_ns = random.Random(seed), Trips(), random.Random(seed).randrange(-(10**15), 10**15)
    begin_ns = now_ns = 10**13

    def ahead(at_ns: int) -> int:
        return ahead_ns + round(ppm * (at_ns - begin_ns) / 1e6)

    def look(count: int, pause_ns: int) -> None:
        nonlocal now_ns
        for _ in range(count):
            there, back = (draws.randrange(50_000, 80_000) + round(draws.expovariate(1e-5)) * way for way in (1, 3))
            trips.add(now_ns, now_ns + there + ahead(now_ns + there), now_ns + there + back)
            now_ns += there + back + pause_ns

    look(20, 0)
    first = trips.offset()
    look(60, 1_000_000_000)
    look(20, 0)
    path = trips.path(first.ahead_ns)
    offset = SiteOffset(first.ahead_ns, tuple((at, there - first.ahead_ns) for at, there in path.knots))
    for at_ns in range(path.knots[0][0], path.knots[-1][0], 10**9):
        assert abs(offset.ahead_ns + offset.moved_ns(at_ns) - ahead(at_ns)) <= path.within_ns
    assert path.within_ns < 500_000
    if not ppm:
        assert {there for _, there in path.knots} == {first.ahead_ns}, "no look shows a drift, so that none is corrected"
    if abs(ppm) > 10:
        assert abs(path.drift_ns - ppm * 60e3) < 0.2 * abs(ppm) * 60e3 + 2 * path.within_ns


def test_a_clock_that_is_set_meanwhile_is_followed_in_parts() -> None:
    draws, trips = random.Random(3), Trips()
    for second in range(120):
        ahead_ns = 5_000 if second < 50 else 40_000_000
        at_ns = 10**12 + second * 10**9
        there, back = draws.randrange(50_000, 90_000), draws.randrange(50_000, 90_000)
        trips.add(at_ns, at_ns + there + ahead_ns, at_ns + there + back)
    path = trips.path(5_000)
    offset = SiteOffset(0, path.knots)
    for second, ahead_ns in ((1, 5_000), (30, 5_000), (80, 40_000_000), (118, 40_000_000)):
        assert abs(offset.moved_ns(10**12 + second * 10**9) - ahead_ns) < 200_000


def test_a_clock_that_went_faster_widens_its_bounds() -> None:
    trips = Trips()
    for n, ahead_ns in enumerate((0, 1_000_000)):
        trips.add(n * 10**9, n * 10**9 + 50_000 + ahead_ns, n * 10**9 + 100_000)
    offset = trips.offset()
    assert offset.ahead_ns - offset.within_ns <= 50_000 and offset.ahead_ns + offset.within_ns >= 950_000


def test_a_file_is_copied_in_pieces_that_may_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draws, clock = random.Random(1), [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    source, copies = tmp_path / "columns-0.0", tmp_path / "copy"
    copies.mkdir()
    source.write_bytes(draws.randbytes(5000))
    copy = FileCopy(copies, 600)
    copy.grow(source.name, 2000)
    grown = False
    while copy.missing_bytes or not grown:
        if not copy.missing_bytes:
            grown = True
            copy.grow(source.name, 5000)
        clock[0] += 1.0
        for wanted in copy.wanted():
            for piece in [part(source, wanted)] * draws.choice((0, 1, 2)):
                copy.take(piece)
    assert sent_file(copies / source.name) == sent_file(source)
    copy.drop(source.name)
    assert copy.missing_bytes == 5000 and (copies / source.name).stat().st_size == 0


@pytest.mark.parametrize(("name", "own"), [
    ("columns-1.0", True), ("columns-4.12", True), ("columns-0.0", False), ("columns-1.0.draft", False), ("run.json", False),
    ("../columns-1.0", False), ("columns-1.0\n", False), ("columns-\u0661.0", False), ("", False),
])  # fmt: skip
def test_a_site_writes_its_own_columns_alone(name: str, own: bool) -> None:
    assert is_columns(name, 1, 3) is own
    assert is_segment(f"{name.replace('columns', 'shard')}.seg", 1, 3) is own and not is_segment(name, 1, 3)
