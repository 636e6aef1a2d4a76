"""The clocks of a site that was lost, and of the process in its place, which may be on another machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from aiperf.sdk.engine import Shard, SiteLoss
from aiperf.sites.remote_site import RemoteSite

S = 1_000_000_000  # ns


class Process(Shard):
    """One that does not end."""

    def poll(self) -> int | None:
        return None


def site(folder: Path, before: RemoteSite | None = None) -> RemoteSite:
    board: Any = None  # nothing is sent
    return RemoteSite(board, "barn", 1, Process(), folder / "log", folder, before)


def look(site: RemoteSite, begin_ns: int, end_ns: int, ahead_ns: int, ppm: float) -> None:
    """Trips to its clock, one a second, and 20 before them."""
    draws = random.Random(ahead_ns)
    for at_ns in [*[begin_ns] * 20, *range(begin_ns, end_ns, S)]:
        there, back = draws.randrange(50_000, 60_000), draws.randrange(50_000, 60_000)
        clock_ns = at_ns + there + ahead_ns + round(ppm * (at_ns + there - begin_ns) / 1e6)
        site.trips.add(at_ns, clock_ns, at_ns + there + back)
        site.ahead = site.trips.offset() if site.trips.count == 20 else site.ahead


def test_the_drift_of_a_lost_clock_is_known_by_the_trips_until_then(tmp_path: Path) -> None:
    lost = site(tmp_path)
    look(lost, 1000 * S, 1060 * S, 7 * S, 50.0)
    again = site(tmp_path, lost)
    again.losses.append(SiteLoss("killed", 0))
    assert again.offset.moved_ns(1030 * S) == lost.offset.moved_ns(1030 * S), "before anything is known of the new one"
    look(again, 1070 * S, 1130 * S, -3 * S, 0.0)
    moved_ns = again.offset.moved_ns
    assert abs(moved_ns(1030 * S) - 1_500_000) < 100_000 and abs(moved_ns(1060 * S) - 3_000_000) < 100_000
    assert moved_ns(1071 * S) == moved_ns(1130 * S) == 0
    # What is said to the new one is on its own clock, before it was there, too.
    assert again.ahead is not None
    assert again.offset.ahead_ns == again.ahead.ahead_ns == again.ahead_ns(1030 * S) == again.ahead_ns(1100 * S)


def test_clocks_that_do_not_drift_move_nothing(tmp_path: Path) -> None:
    lost = site(tmp_path)
    look(lost, 1000 * S, 1060 * S, 7 * S, 0.0)
    again = site(tmp_path, lost)
    look(again, 1070 * S, 1130 * S, 7 * S, 0.0)
    assert again.offset.knots == () and again.offset.ahead_ns == again.ahead_ns(1100 * S)


def test_an_uncertain_clock_that_was_lost_counts(tmp_path: Path) -> None:
    again = site(tmp_path)
    look(again, 1070 * S, 1130 * S, 7 * S, 0.0)
    known = again.clock((1,)).uncertainty_ms
    again.losses.append(SiteLoss("killed", 0, within_ms=4.0))
    assert again.clock((1,)).uncertainty_ms == 4.0 > known
