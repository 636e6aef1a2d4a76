"""Numbers that sites claim in blocks: each comes once, none is lost, and who has none gets a part of what others have."""

from __future__ import annotations

import os
import random
from collections import deque

import pytest
from aiperf.run import site_stocks
from aiperf.run.site_stocks import Stocks
from aiperf.sdk.driver import ARRIVALS, SESSIONS
from aiperf.sdk.plan import PhasePlan
from aiperf.sites.claims import Pools
from aiperf.sites.messages import Block, Claim, GiveBack, Given
from aiperf.worker.claims import Blocks, ClaimedCounter, ClaimGate, make_blocks_fd
from aiperf.worker.shared import Shared
from aiperf.worker.slots import LocalSlots


class Clock:
    def __init__(self) -> None:
        self.now_s = 1.0

    def monotonic(self) -> float:
        return self.now_s


class Site:
    """A site with one worker that draws when it may.  inbox: messages with the time at which they arrive.  starved_s: how long
    it waited while not all numbers were dealt."""

    def __init__(self, phase: PhasePlan, speed: float) -> None:
        self.speed, self.debt = speed, 0.0
        self.shared = Shared(1, several=True, claims=True)
        self.outbox: deque[Claim | Given] = deque()
        self.inbox: deque[tuple[float, Block | GiveBack]] = deque()
        fds = self.shared.claims(phase)
        self.stocks = Stocks([phase], [fds], self.outbox.append)
        self.counter = ClaimedCounter(fds.stocks[0], fds.positions[0], Blocks(fds.blocks, ARRIVALS), None)  # type: ignore[arg-type]
        self.sent: list[int] = []
        self.ended_s: float | None = None
        self.waited_s = self.starved_s = 0.0


def play(
    count: int, speeds: list[float], way_s: float, monkeypatch: pytest.MonkeyPatch, *, dies_s: float | None = None
) -> list[Site]:
    """Sites that draw so many numbers a second each, a half of a trip away; with *dies_s* the first one dies then."""
    clock = Clock()
    monkeypatch.setattr(site_stocks, "time", clock)
    phase = PhasePlan("profiling", "profiling", 0, "burst", request_count=count, concurrency=4)
    pools, sites = Pools([phase], len(speeds)), [Site(phase, speed) for speed in speeds]
    up: deque[tuple[float, int, Claim | Given]] = deque()
    alive, dealt = dict(enumerate(sites)), 0
    while any(site.ended_s is None for site in alive.values()):
        clock.now_s += 0.005
        assert clock.now_s < 600, "the sites do not end"
        if dies_s is not None and clock.now_s >= dies_s and 0 in alive:
            del alive[0]
            up = deque(each for each in up if each[1] != 0)
            deal(pools.lose(0), sites, clock.now_s + way_s)
        while up and up[0][0] <= clock.now_s:
            _, index, said = up.popleft()
            answers = pools.claim(index, said) if isinstance(said, Claim) else pools.take(index, said)
            deal(answers, sites, clock.now_s + way_s)
        for index, site in alive.items():
            while site.inbox and site.inbox[0][0] <= clock.now_s:
                site.stocks.handle(message := site.inbox.popleft()[1])
                dealt = max(dealt, message.start + message.count) if isinstance(message, Block) else dealt
            site.stocks.look()
            up.extend((clock.now_s + way_s, index, said) for said in site.outbox)
            site.outbox.clear()
            site.debt += site.speed * 0.005 if clock.now_s > 2 else 0
            while site.debt >= 1 and site.ended_s is None:
                if not site.counter.ready():
                    site.waited_s += 0.005
                    site.starved_s += 0.005 if dealt < count else 0.0
                    site.debt = 1
                    break
                if (n := site.counter.next()) >= count:
                    site.ended_s = clock.now_s
                else:
                    site.sent.append(n)
                site.debt -= 1
    for site in sites:
        site.shared.close()
    return sites


def deal(answers: object, sites: list[Site], at_s: float) -> None:
    for index, answer in answers:  # type: ignore[attr-defined]
        sites[index].inbox.append((at_s, answer))


@pytest.mark.parametrize("speeds", [[100.0, 100.0, 100.0], [1000.0, 100.0, 10.0], [50.0, 3.0]], ids=str)
@pytest.mark.parametrize("way_s", [0.0, 0.04], ids=["near", "far"])
def test_each_number_is_sent_once_and_sites_end_together(
    speeds: list[float], way_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites = play(3000, speeds, way_s, monkeypatch)
    assert sorted(n for site in sites for n in site.sent) == list(range(3000))
    ends = [site.ended_s or 0.0 for site in sites]
    assert max(ends) - min(ends) <= 1 / min(speeds) + 6 * way_s + 0.5
    assert [site.starved_s for site in sites] == [0.0] * len(sites)
    assert all(site.waited_s <= 25 * way_s + 0.15 for site in sites)  # once all are dealt, for what others have


def test_a_worker_that_wants_a_number_gets_one_while_another_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(site_stocks, "time", clock)
    phase = PhasePlan("profiling", "profiling", 0, "lanes", concurrency=6)
    shared, outbox = Shared(1, several=True, claims=True), list[Claim | Given]()
    fds = shared.claims(phase)
    stocks, pools = Stocks([phase], [fds], outbox.append, lanes={0}, sites=3), Pools([phase], 3)
    assert [(each.counter, each.want, each.least) for each in outbox] == [(ARRIVALS, 128, 2), (SESSIONS, 2, 1)]
    blocks = fds.stocks[SESSIONS], fds.positions[SESSIONS], Blocks(fds.blocks, SESSIONS)
    keeping, wanting = (ClaimedCounter(*blocks, None) for _ in range(2))  # type: ignore[arg-type]

    def look() -> None:
        clock.now_s += 0.2
        stocks.look()
        for said in (claimed := [each for each in outbox if isinstance(each, Claim)]):
            for _, answer in pools.claim(0, said):
                stocks.handle(answer)
        del outbox[: len(claimed)]

    look()
    assert keeping.ready()
    for number in range(8):  # seldom, as trees that last for long
        tries = 0
        while not wanting.ready():
            look()
            assert (tries := tries + 1) < 3, "the number of the next tree does not come"
        assert wanting.next() == number
        for _ in range(30):
            look()
    shared.close()


def test_fewer_numbers_than_sites_end_every_site(monkeypatch: pytest.MonkeyPatch) -> None:
    sites = play(2, [10.0, 10.0, 10.0], 0.02, monkeypatch)
    assert sorted(n for site in sites for n in site.sent) == [0, 1]


def test_a_site_that_dies_takes_its_own_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sites = play(3000, [100.0, 100.0, 100.0], 0.02, monkeypatch, dies_s=5.0)
    sent = [n for site in sites for n in site.sent]
    assert len(sent) == len(set(sent))
    lost = set(range(3000)) - set(sent)
    assert len(lost) <= 1000, "it had no more than its part"
    assert sorted(sites[0].sent)[0] < 3000 and all(site.ended_s is not None for site in sites[1:])


def test_a_block_rests_before_it_is_given_back_and_the_wish_outlives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_stocks, "time", clock := Clock())
    site = Site(PhasePlan("profiling", "profiling", 0, "burst", request_count=9, concurrency=1), 1.0)
    site.stocks.handle(Block(0, ARRIVALS, 0, 0))
    assert not site.counter.ready()
    site.outbox.clear()
    site.stocks.look()
    assert [said.empty for said in site.outbox if isinstance(said, Claim)] == [True]
    site.stocks.handle(Block(0, ARRIVALS, 4, 1))
    site.stocks.handle(GiveBack(0, ARRIVALS, 1.0))  # before the worker wakes up
    site.stocks.look()
    assert site.stocks.active and not any(isinstance(said, Given) for said in site.outbox)
    clock.now_s += 0.05
    site.stocks.look()
    assert Given(0, ARRIVALS, [(4, 1)]) in site.outbox
    site.stocks.look()
    assert isinstance(said := site.outbox.pop(), Claim) and said.empty
    site.shared.close()


def test_without_a_count_sites_never_run_dry() -> None:
    phase = PhasePlan("profiling", "profiling", 0, "burst", duration_ns=1, concurrency=4)
    pools, seen = Pools([phase], 2), set[int]()
    for site in (0, 1, 0, 1):
        for counter in (ARRIVALS, SESSIONS):
            ((to, block),) = pools.claim(site, Claim(0, counter, 10, 1))
            assert isinstance(block, Block) and to == site and block.count == 10
            seen |= {*range(block.start, block.start + 10)} if counter == ARRIVALS else set()
    assert seen == {*range(40)}


def test_numbers_of_turns_go_beyond_those_planned_where_all_are_used() -> None:
    phase = PhasePlan("profiling", "profiling", 0, "burst", session_count=2, turns=4, concurrency=4)
    pools = Pools([phase], 2)
    ((_, block),) = pools.claim(0, Claim(0, ARRIVALS, 100, 4))
    assert isinstance(block, Block) and (block.start, block.count) == (0, 4)
    ((_, dry),) = pools.claim(1, Claim(0, ARRIVALS, 1, 1))
    assert isinstance(dry, Block) and not dry.count and not dry.over
    assert list(pools.claim(1, Claim(0, ARRIVALS, 1, 1, empty=True))) == [(0, GiveBack(0, ARRIVALS))]
    ((to, back),) = pools.take(0, Given(0, ARRIVALS, [(2, 2)]))
    assert (to, back) == (1, Block(0, ARRIVALS, 2, 2))
    assert list(pools.claim(1, Claim(0, ARRIVALS, 1, 1, empty=True))) == [(0, GiveBack(0, ARRIVALS))]
    assert list(pools.take(0, Given(0, ARRIVALS, []))) == [(1, Block(0, ARRIVALS, 4, 0, over=True))]
    (_, other), *_ = [*pools.claim(0, Claim(0, ARRIVALS, 1, 1, empty=True)), *pools.take(1, Given(0, ARRIVALS, []))][1:]
    assert isinstance(other, Block) and other.over and other.start > 1 << 30, "no two sites have a number in common"


def test_positions_find_their_numbers_in_any_blocks() -> None:
    draws, fd = random.Random(7), make_blocks_fd()
    writer, reader, expected, start = Blocks(fd, SESSIONS), Blocks(fd, SESSIONS), list[int](), 0
    for _ in range(200):
        start += draws.choice((0, 0, 5))
        count = draws.randrange(1, 4)
        writer.append(start, count)
        expected += range(start, start + count)
        start += count
    assert [reader.number(position) for position in range(len(expected))] == expected
    os.close(fd)


def test_a_number_that_came_back_is_dealt_before_one_beyond_the_count() -> None:
    """Two sites have none, and one number is left.  The first waits for a number that it does not need, and gives it back."""
    phase = PhasePlan("profiling", "profiling", 0, "burst", session_count=14, turns=51, concurrency=3)
    pools = Pools([phase], 3)

    def said(answers: object) -> list[tuple[int, object]]:
        return [(site, answer) for site, answer in answers]  # type: ignore[attr-defined]

    while pools.arrivals(0) < 51:
        list(pools.claim(0, Claim(0, ARRIVALS, 100, 100)))
    first = said(pools.claim(1, Claim(0, ARRIVALS, 1, 1, empty=True)))
    assert first == [(0, GiveBack(0, ARRIVALS)), (2, GiveBack(0, ARRIVALS))]
    assert said(pools.claim(2, Claim(0, ARRIVALS, 1, 1, empty=True))) == []
    assert said(pools.take(2, Given(0, ARRIVALS, []))) == []
    answers = said(pools.take(0, Given(0, ARRIVALS, [(42, 1)])))
    assert answers == [(1, Block(0, ARRIVALS, 42, 1)), (0, GiveBack(0, ARRIVALS)), (1, GiveBack(0, ARRIVALS))]
    assert said(pools.take(0, Given(0, ARRIVALS, []))) == []
    assert said(pools.take(1, Given(0, ARRIVALS, [(42, 1)]))) == [(2, Block(0, ARRIVALS, 42, 1))]
    # Who needs one when there is none gets numbers beyond the count.
    assert said(pools.claim(1, Claim(0, ARRIVALS, 1, 1, empty=True)))[0] == (0, GiveBack(0, ARRIVALS))
    assert said(pools.take(0, Given(0, ARRIVALS, []))) == []
    assert said(pools.take(2, Given(0, ARRIVALS, []))) == [(1, Block(0, ARRIVALS, 51, 0, over=True))]
    assert pools.arrivals(0) == 51, "a site in the place of a lost one numbers its requests behind these"


def test_a_worker_without_a_session_gives_the_number_of_its_arrival_back() -> None:
    phase = PhasePlan("profiling", "profiling", 0, "burst", session_count=1, turns=3, concurrency=2)
    site = Site(phase, 1.0)
    fds = site.shared.claims(phase)
    numbers = ClaimedCounter(fds.stocks[1], fds.positions[1], Blocks(fds.blocks, SESSIONS), None)  # type: ignore[arg-type]
    site.stocks.handle(Block(0, ARRIVALS, 2, 1))
    site.stocks.handle(Block(0, SESSIONS, 1, 0, over=True))
    gate = ClaimGate(LocalSlots(2), None, site.counter, numbers, sessions_drawn=True)
    assert gate.take_session() and numbers.next() == 1, "there is but the session 0"
    gate.release_session()
    other = ClaimedCounter(fds.stocks[0], fds.positions[0], Blocks(fds.blocks, ARRIVALS), None)  # type: ignore[arg-type]
    assert other.ready() and other.next() == 2
    site.shared.close()
