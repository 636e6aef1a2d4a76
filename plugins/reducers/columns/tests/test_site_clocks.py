"""Columns of sites whose clocks have drifted: instants move, latencies do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from aiperf.parts import journal
from aiperf.sdk.engine import SiteClock
from aiperf.sdk.plan import SiteOffset
from aiperf_reducer_columns.reduce.batches import StoredBatch, stored_batches
from aiperf_reducer_columns.reduce.reducer import ShardReducer
from aiperf_reducer_columns.reduce.site_clocks import corrected
from aiperf_testing.journals import CLOCK, Recording
from msgspec.structs import replace

MS = 1_000_000
ZERO = CLOCK.started_mono_ns
DRIFTED = replace(CLOCK, sites=(SiteOffset(0), SiteOffset(0, ((ZERO, 0), (ZERO + 1000 * MS, 10 * MS)))))
"""The clock of the second of two sites goes faster, by 10 ms in the first second."""


def recorded(directory: Path) -> Recording:
    run = Recording(directory, workers=2, sites=("attic", "barn"), export_level="raw")
    for shard in (0, 1):
        run.phase("begin", 0, shard=shard)
        reads = (520 * MS, b'data: {"text":"a"}\n\n'), (540 * MS, b"data: [DONE]\n\n")
        run.answered(0, 500 * MS, *reads, shard=shard, due_ns=400 * MS)
        run.phase("end", 1000 * MS, shard=shard)
        run.flush(1000 * MS, shard=shard)
    run.ended(sites=(SiteClock("attic", (0,)), SiteClock("barn", (1,))))
    return run


def reduced(run: Recording, clock: journal.RunClock) -> list[StoredBatch]:
    """The batches as a reducer with this clock leaves them."""
    reducer = ShardReducer(run.plan, run.journal, 0, 1, clock=clock)
    reducer.finish()
    return list(stored_batches(run.journal))


@pytest.mark.parametrize("at_once", [False, True], ids=["from columns", "from segments"])
def test_instants_are_on_the_clock_of_the_run_and_latencies_as_they_were(tmp_path: Path, at_once: bool) -> None:
    run = recorded(tmp_path)
    before = reduced(recorded(tmp_path / "plain"), CLOCK)
    if not at_once:
        reduced(run, CLOCK)  # at the site, which knows of no drift
    after = reduced(run, DRIFTED)
    (plain,), (moved,) = ([each for each in batches if each.count] for batches in (before, after))
    columns, there = plain.columns(), moved.columns()
    assert columns["shard"].tolist() == there["shard"].tolist() == [0.0, 1.0]
    for name in ("due_ns", "started_ns", "first_token_ns", "ended_ns"):
        assert (columns[name] - there[name]).tolist() == [0.0, 5.0 * MS], name
    for name in ("held_ns", "connect_ns"):
        assert np.array_equal(columns[name], there[name], equal_nan=True)
    stamps = [np.frombuffer(each.stamps, dtype=np.int64) for each in (plain, moved)]
    assert (stamps[0] - stamps[1]).tolist() == [0, 5 * MS]
    events = [(shard, value["event"], value["at_ns"] - ZERO) for each in after for shard, _, value in each.events]
    assert (1, "end", 990 * MS) in events and (0, "end", 1000 * MS) in events


def test_a_batch_is_corrected_once(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    first = reduced(run, DRIFTED)
    assert reduced(run, DRIFTED) == first
    assert all(corrected(each, DRIFTED) is each for each in first)
