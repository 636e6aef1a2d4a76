"""The engine's arithmetic, with time as a number."""

from __future__ import annotations

from itertools import pairwise

import pytest
from aiperf_command_simulate.engine import STEPS_AT_ONCE, Engine, EngineModel, Freeze, Sequence
from aiperf_command_simulate.prefix import PrefixCache, block_keys, token_count
from aiperf_command_simulate.slowdown import Slowdown

PLAIN = EngineModel(prefill_ns=10, prefill_chunk=1000, decode_ns=100, decode_batch_ns=5, max_running=4, cache_blocks=0)


def changed(**fields):
    return EngineModel(**{name: getattr(PLAIN, name) for name in EngineModel.__struct_fields__} | fields)


def play(model, arrivals, *, until=10**9, seed=0):
    """Submit ``(at, name, prompt tokens, wanted[, pauses])`` in order; every instant at which each made a token."""
    engine = Engine(model, seed=seed)
    made = {}
    told = []
    for at, name, prompt, want, *pauses in arrivals:
        told += engine.advance(at)
        made[name] = []
        assert engine.submit(Sequence(name, prompt, want, pauses=pauses[0] if pauses else None), at)
    while (when := engine.next_ns) is not None and when <= until:
        told += engine.advance(when)
    for sequence, at in told:
        made[sequence.owner].append(at)
    return made


@pytest.mark.parametrize(
    ("model", "arrivals", "instants"),
    [
        pytest.param(PLAIN, [(0, "a", 7, 3)], {"a": [70, 170, 270]}, id="a prompt costs its tokens, then a step a token"),
        pytest.param(PLAIN, [(50, "a", 1, 2)], {"a": [60, 160]}, id="an idle device starts at once"),
        pytest.param(
            PLAIN, [(0, "a", 1, 3), (0, "b", 1, 3)], {"a": [10, 120, 225], "b": [120, 225, 325]},
            id="a step with two sequences is longer, a prompt beside it is added",
        ),
        pytest.param(
            PLAIN, [(0, "a", 5, 3), (60, "b", 20, 1)], {"a": [50, 150, 450], "b": [450]},
            id="a long prompt delays those that decode",
        ),
        pytest.param(
            changed(prefill_chunk=10), [(0, "a", 25, 1)], {"a": [250]}, id="a prompt cut in chunks costs the same",
        ),
        pytest.param(
            changed(prefill_chunk=10), [(0, "a", 1, 3), (1, "b", 25, 1)], {"a": [10, 210, 410], "b": [460]},
            id="chunks bound what a prompt adds to one step",
        ),
        pytest.param(
            changed(max_running=1), [(0, "a", 1, 2), (1, "b", 1, 1), (2, "c", 1, 1)], {"a": [10, 110], "b": [120], "c": [130]},
            id="what doesn't fit waits in order of arrival",
        ),
        pytest.param(changed(first_token_ns=500), [(7, "a", 99, 2)], {"a": [507, 607]}, id="a first token at a fixed time"),
        pytest.param(PLAIN, [(0, "a", 1, 2, {0: 1000})], {"a": [1010, 1110]}, id="a first token held back"),
        pytest.param(PLAIN, [(0, "a", 1, 4, {2: 5000})], {"a": [10, 110, 5210, 5310]}, id="a stall between tokens"),
        pytest.param(
            PLAIN, [(0, "a", 1, 3, {1: 1000}), (0, "b", 1, 4)], {"a": [10, 1110, 1210], "b": [20, 120, 220, 320]},
            id="one that stalls is no part of the batch",
        ),
        pytest.param(
            changed(freeze_every_ns=1000, freeze_for_ns=300), [(900, "a", 1, 3)], {"a": [910, 1310, 1410]},
            id="a frozen engine finishes its step afterwards",
        ),
        pytest.param(
            changed(freeze_every_ns=1000, freeze_for_ns=300), [(2100, "a", 1, 1)], {"a": [2310]},
            id="what comes while it is frozen starts afterwards",
        ),
        pytest.param(changed(decode_ns=0, prefill_ns=0), [(3, "a", 9, 3)], {"a": [3, 3, 3]}, id="no cost, no time"),
    ],
)  # fmt: skip
def test_tokens_are_made_when_the_model_says(model, arrivals, instants):
    assert play(model, arrivals) == instants


def test_a_caller_who_looks_late_is_told_the_same_instants():
    arrivals = [(0, "a", 5, 20), (30, "b", 9, 20)]
    punctual = play(PLAIN, arrivals)
    engine = Engine(PLAIN)
    for at, name, prompt, want in arrivals:
        engine.submit(Sequence(name, prompt, want), at)
    late = {"a": [], "b": []}
    for sequence, at in engine.advance(10**6):
        late[sequence.owner].append(at)
    assert late == punctual


def test_an_instant_before_one_given_already_counts_as_that_one():
    engine = Engine(PLAIN)
    engine.advance(500)
    engine.submit(Sequence("a", 1, 1), 400)
    assert [at for _, at in engine.advance(10**6)] == [510]


def test_a_full_queue_refuses_and_a_cancelled_one_makes_room():
    engine = Engine(changed(max_running=1, max_queue=1))
    running, waiting, refused = (Sequence(name, 1, 5) for name in "abc")
    assert engine.submit(running, 0)
    assert engine.submit(waiting, 0)
    assert not engine.submit(refused, 0)
    engine.cancel(waiting, 5)
    assert engine.waiting_count == 0
    assert engine.submit(refused, 6)
    engine.cancel(running, 50)
    assert [(sequence.owner, at) for sequence, at in engine.advance(10**6)][:2] == [("a", 10), ("c", 120)]
    assert not engine.running


def test_a_sequence_cancelled_while_it_stalls_gives_its_place_to_the_next():
    engine = Engine(changed(max_running=1))
    stalled = Sequence("a", 1, 5, pauses={1: 10**9})
    engine.submit(stalled, 0)
    engine.submit(Sequence("b", 1, 1), 0)
    assert [sequence.owner for sequence, _ in engine.advance(1000)] == ["a"]
    engine.cancel(stalled, 2000)
    assert [(sequence.owner, at) for sequence, at in engine.advance(10**6)] == [("b", 2010)]
    assert engine.next_ns is None


def test_an_engine_without_cost_lets_its_caller_breathe():
    engine = Engine(changed(decode_ns=0, prefill_ns=0, decode_batch_ns=0))
    engine.submit(Sequence("a", 1, 10 * STEPS_AT_ONCE), 0)
    first = engine.advance(0)
    assert 0 < len(first) <= 3 * STEPS_AT_ONCE
    assert engine.next_ns == 0
    total = len(first)
    while engine.next_ns is not None:
        total += len(engine.advance(0))
    assert total == 10 * STEPS_AT_ONCE


def test_jitter_stays_within_its_share_and_follows_the_seed():
    model = changed(jitter=0.5)
    made = play(model, [(0, "a", 1, 200)])["a"]
    gaps = [b - a for a, b in pairwise(made)]
    assert 50 <= min(gaps) < 60
    assert 140 < max(gaps) <= 150
    assert play(model, [(0, "a", 1, 200)])["a"] == made
    assert play(model, [(0, "a", 1, 200)], seed=1)["a"] != made


def test_a_known_prefix_costs_nothing_but_its_last_token():
    model = changed(cache_blocks=10, block_size=4)
    engine = Engine(model)
    prompt = b"x" * 4 * 8  # two blocks
    first = Sequence("a", 8, 1, block_keys(prompt, 4))
    again = Sequence("b", 8, 1, block_keys(prompt, 4))
    longer = Sequence("c", 12, 1, block_keys(prompt + b"y" * 16, 4))
    at = 0
    costs = []
    for sequence in (first, again, longer):
        engine.submit(sequence, at)
        ((_, end),) = engine.advance(at + 10**6)
        costs.append(end - at)
        at += 10**6
    assert costs == [80, 10, 40]
    assert (first.cached_tokens, again.cached_tokens, longer.cached_tokens) == (0, 7, 8)


@pytest.mark.parametrize(
    ("world", "device"),
    [(0, 0), (999, 999), (1000, 1000), (1299, 1000), (1300, 1000), (1400, 1100), (2000, 1700), (2500, 1900)],
)
def test_the_device_clock_stands_still_while_frozen(world, device):
    freeze = Freeze(0, 1000, 300)
    assert freeze.device_ns(world) == device
    assert freeze.device_ns(freeze.world_ns(device)) == device
    assert freeze.world_ns(device) >= world - 300


@pytest.mark.parametrize(("prompt", "tokens"), [(b"", 1), (b"abc", 1), (b"abcd", 1), (b"abcde", 2)])
def test_a_token_is_four_bytes_rounded_up(prompt, tokens):
    assert token_count(prompt) == tokens


def test_block_keys_cover_full_blocks_and_everything_before_them():
    one = block_keys(b"a" * 8 + b"b" * 8 + b"rest", 2)
    other = block_keys(b"c" * 8 + b"b" * 8, 2)
    assert len(one) == len(other) == 2
    assert one[1] != other[1]
    assert block_keys(b"a" * 8 + b"b" * 8, 2, known=one[:1]) == one


def test_the_least_recently_used_block_leaves_first_and_tails_before_heads():
    cache = PrefixCache(3)
    cache.add((1, 2))
    cache.add((7,))
    assert cache.hits((1, 2)) == 2
    cache.add((8,))  # 7 is the oldest now
    assert cache.hits((7,)) == 0
    cache.add((9,))  # then 2, the tail of (1, 2)
    assert cache.hits((1, 2)) == 1
    assert len(cache) == 3


def test_a_cache_of_nothing_keeps_nothing():
    cache = PrefixCache(0)
    cache.add((1, 2))
    assert cache.hits((1, 2)) == 0


def test_steps_that_begin_in_a_slow_time_take_longer():
    slow = Slowdown(from_ns=200, for_ns=200, by=1.5)
    assert play(changed(slowdown=slow), [(0, "a", 10, 5)])["a"] == [100, 200, 350, 500, 600]
    assert play(changed(slowdown=slow, first_token_ns=100), [(250, "a", 10, 1)])["a"] == [400]
