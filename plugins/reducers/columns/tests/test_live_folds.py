"""Live statistics: those of the report, from buckets that come in pieces, and of the last seconds alone."""

from __future__ import annotations

import itertools

import msgspec
import numpy as np
import pytest
from aiperf.sdk.model import ErrorDetails
from aiperf_reducer_columns.reduce.live_failures import MOST_KINDS, FailureKinds, kinds_of
from aiperf_reducer_columns.statistics.described import PERCENTILES, adjusted, statistics
from aiperf_reducer_columns.statistics.live_folds import FoldView, Histogram, LiveFold, Piece

RANDOM = np.random.default_rng(7)
KINDS = {
    "latencies": np.rint(RANDOM.lognormal(17, 0.8, 4000)),
    "counts": RANDOM.integers(0, 40, 1500).astype(np.float64),
    "both signs": np.concatenate([-RANDOM.lognormal(3, 2, 700), np.zeros(9), RANDOM.lognormal(1, 3, 900)]),
    "one value": np.array([3.5]),
    "equal values": np.full(50, 1e9),
    "extremes": np.array([1e-300, 1.0, 1e100]),
}


def told(values: np.ndarray, pieces: int = 7) -> list[Piece]:
    """The values in pieces, as another process sends them."""
    parts = [part for part in np.array_split(values, pieces) if len(part)]
    return [msgspec.msgpack.decode(msgspec.msgpack.encode(Piece.of(part)), type=Piece) for part in parts]


def folded(values: np.ndarray) -> LiveFold:
    fold = LiveFold()
    for piece in told(values):
        fold.add(piece, 0.0)
    return fold


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_are_those_of_the_report(kind: str) -> None:
    values = KINDS[kind]
    exact, live = statistics(values), folded(values).total.statistics(1.0, PERCENTILES)
    assert all(live[name] == exact[name] for name in ("count", "sum", "avg", "min", "max"))
    for name in set(exact) - {"count", "sum", "avg", "min", "max"}:
        assert live[name] == pytest.approx(exact[name], rel=0.002, abs=1e-9), name


def test_pieces_come_in_any_order() -> None:
    pieces = told(KINDS["both signs"], 4)
    results = []
    for order in itertools.permutations(pieces):
        whole = Histogram()
        for piece in order:
            whole.add(piece)
        results.append({name: round(value, 6) for name, value in whole.statistics(1.0, PERCENTILES).items()})
    assert all(result == results[0] for result in results)


def test_what_is_recent_is_what_came_last() -> None:
    fold, values = LiveFold(), KINDS["latencies"]
    for at, part in enumerate(np.array_split(values, 10)):
        fold.add(Piece.of(part), float(at))
    fold.expire(6.5)
    last = np.concatenate(np.array_split(values, 10)[7:])
    exact, live = statistics(last), fold.recent.statistics(1.0, PERCENTILES)
    assert all(live[name] == exact[name] for name in ("count", "avg", "min", "max"))
    assert live["p99"] == pytest.approx(exact["p99"], rel=0.002)
    fold.expire(99.0)
    assert fold.recent.count == 0 and fold.total.count == len(values)


def test_a_line_of_progress_has_a_window_of_its_own() -> None:
    fold, values = LiveFold(lined=True), KINDS["latencies"]
    assert fold.interval is not None
    for at, part in enumerate(np.array_split(values, 10)):
        fold.add(Piece.of(part), float(at))
    fold.expire(6.5, 3.5)
    assert (fold.recent.count, fold.interval.count) == (1200, 2400)
    assert fold.interval.low == np.concatenate(np.array_split(values, 10)[4:]).min()


def test_failed_requests_count_as_infinitely_slow() -> None:
    values = np.sort(KINDS["latencies"])
    worse = FoldView([folded(values).total], PERCENTILES).adjusted(400, 1.0)
    assert worse is not None
    assert worse[0].keys() == (exact := adjusted(values.item, len(values), 400, 1.0)).keys()
    assert all(worse[0][name] == pytest.approx(exact[name], rel=0.002) for name in exact)


def test_estimates_have_bounds() -> None:
    known, estimated = KINDS["latencies"], np.array([1e6, 2e6])
    parts = [folded(known).total, folded(estimated).total]
    low, high = folded(estimated - 1e5).total, folded(estimated + 1e5).total
    view = FoldView(parts, PERCENTILES, listed=True, bounds=([parts[0], low], [parts[0], high], 2e5))
    sides = view.bounds(1.0)
    assert sides[0]["sum"] == known.sum() + 3e6 - 2e5 and sides[1]["sum"] == known.sum() + 3e6 + 2e5
    assert sides[0]["min"] == min(known.min(), 9e5)
    assert view.count == len(known) + 2 and FoldView(parts[:1], PERCENTILES).bounds(1.0) == []


def test_a_day_of_snapshots_takes_little_memory() -> None:
    """What is kept grows with the spread of the values, not with their number."""
    fold = LiveFold()
    for at in range(20_000):
        fold.add(Piece.of(KINDS["latencies"][at % 4000 : at % 4000 + 1]), float(at))
        fold.expire(at - 10.0)
    assert len(fold.recent._pieces) <= 10
    assert fold.total._above.counts.nbytes < 40_000


def test_the_commonest_of_two_thousand_kinds_of_failure_are_told() -> None:
    errors = [
        (msgspec.json.encode(ErrorDetails(f"text {kind} at {at}", f"Error{kind}", 400 + kind % 200)).decode(), float(kind + at))
        for kind in range(2000) for at in range(1 + max(0, 30 - kind))
    ]  # fmt: skip
    whole = FailureKinds()
    for some in (errors[1::2], errors[::2]):
        whole.merge(msgspec.msgpack.decode(msgspec.msgpack.encode(kinds_of(some)), type=FailureKinds))
    told, further = whole.commonest()
    assert [each.count for each in told] == [*range(31, 11, -1)]
    assert (told[0].type, told[0].code, told[0].text) == ("Error0", 400, "text 0 at 0")
    assert sum(each.count for each in told) + further == len(errors) and len(whole.rows) == MOST_KINDS
