"""Where a worker goes on in the place of one of a lost site; and one process of a site after the other."""

from __future__ import annotations

import socket
import subprocess
import sys
from array import array
from pathlib import Path

import pytest
from aiperf.errors import AiperfError
from aiperf.rundir.shard_reader import ShardReader
from aiperf.sdk.plan import PhasePlan
from aiperf.sites import fence
from aiperf.sites.going_on import PassedCells, PhaseTimes, Standing

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names without files are a feature of Linux")


def ints(path: Path, *numbers: int) -> str:
    path.write_bytes(array("q", numbers).tobytes())
    return str(path)


@pytest.fixture
def paced(tmp_path: Path) -> PhaseTimes:
    """Ten arrivals, one each 100 ns."""
    due = ints(tmp_path / "due", *range(0, 1000, 100))
    return PhaseTimes(PhasePlan("profiling", "profiling", 0, "request_rate", due_file=due))


@pytest.mark.parametrize(("shard", "elapsed_ns", "arrivals"), [
    (0, 0, 0), (0, 1, 1), (1, 1, 0), (1, 101, 1), (2, 299, 1), (0, 300, 1), (0, 301, 2), (2, 10_000, 3), (0, 10_000, 4),
    (0, -5, 0),
])  # fmt: skip
def test_a_worker_begins_with_its_first_arrival_that_is_not_due_yet(
    paced: PhaseTimes, shard: int, elapsed_ns: int, arrivals: int
) -> None:
    assert paced.place(shard, 3, elapsed_ns, Standing(0, 0, 0)) == PassedCells(arrivals, arrivals)
    assert paced.arrivals == 10


@pytest.mark.parametrize(("known", "sessions"), [
    (Standing(0, 0, 0), 4),  # nothing was told: each arrival may have begun one
    (Standing(0, 3, 1), 2),  # one more was sent since, which may have begun one more
    (Standing(0, 4, 2), 2),
    (Standing(0, 2, 2), 4),
    (Standing(0, 9, 4), 4),
])  # fmt: skip
def test_sessions_are_behind_all_that_may_have_begun(paced: PhaseTimes, known: Standing, sessions: int) -> None:
    assert paced.place(0, 3, 10_000, known) == PassedCells(4, sessions)


def test_sessions_with_times_go_on_with_the_first_that_begins_later(tmp_path: Path) -> None:
    due = ints(tmp_path / "due", 0, -1, 50, -1, -1, 90, 120)
    rows = ints(tmp_path / "sessions", 0, 2, 0, 1, 3, 2, 2, 1, 5, 3, 1, 6)  # entry, turns, first arrival
    times = PhaseTimes(PhasePlan("profiling", "profiling", 0, "fixed_schedule", due_file=due, sessions_file=rows))
    assert times.place(0, 2, 91, Standing(0, 4, 2)) == PassedCells(0, 2)
    assert times.place(1, 2, 91, Standing(0, 4, 2)) == PassedCells(0, 1)
    assert times.arrivals == 7


@pytest.mark.parametrize(("stored", "first", "missing"), [
    ([0, 1, 2, 3], (), 0),
    ([0, 2, 3], (), 1),
    ([0, 1, 10, 11], (10,), 0),
    ([0, 2, 10, 12], (10,), 2),
    ([10, 11, 20], (10, 20), 0),
    ([0, 20], (10, 20), 0),
    ([0, 1], (10,), 0),
])  # fmt: skip
def test_numbers_that_no_request_has_are_not_missing(
    tmp_path: Path, stored: list[int], first: tuple[int, ...], missing: int
) -> None:
    reader = ShardReader(tmp_path, 0)
    np = pytest.importorskip("numpy")
    reader.skip_stored(np.array(stored, dtype=np.int64))
    assert reader.missing(0, first) == missing


@LINUX
def test_the_next_process_waits_until_the_workers_of_the_one_before_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"test-{socket.gethostname()}-{id(monkeypatch)}"
    first = fence.held(place)
    assert first is not None
    words = (sys.executable, "-c", "import sys; sys.stdin.read()")
    worker = subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=(first.fileno(),))
    first.close()  # the site is gone, its worker is not
    monkeypatch.setattr(fence, "_WAIT_S", 0.0)
    with pytest.raises(AiperfError, match="processes of the site before, which was given up, still run"):
        fence.held(place)
    worker.communicate()
    again = fence.held(place)
    assert again is not None
    again.close()
