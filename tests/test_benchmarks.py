"""Benchmarks: the history of ratios to the other tools of the same run, and runs that are made up."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    sys.modules.pop("history", None)
    import history

    return history


def found(rate: float, error: float) -> dict[str, Any]:
    rows = {
        "rate": {"unit": "/s", "more": True, "values": {"this": [rate - 1, rate, rate + 9], "other": [100.0]}},
        "error": {"unit": "ms", "more": False, "values": {"this": [error], "other": [2.0], "loop": [-0.1]}},
        "theirs": {"unit": "ms", "more": False, "values": {"other": [1.0]}},
    }
    return {"machine": "2 cores", "rows": rows}


def test_an_entry_has_our_medians_and_how_many_times_better_they_are(history: ModuleType) -> None:
    assert history.entry(found(300.0, 0.5), "this")["rows"] == {
        "rate": {"value": 300.0, "unit": "/s", "ratios": {"other": 3.0}},
        "error": {"value": 0.5, "unit": "ms", "ratios": {"other": 4.0}},  # an error below 0 is no measure
    }


def test_a_ratio_that_is_a_quarter_below_the_earlier_ones_is_marked(history: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    for rate, error in ((300.0, 0.5), (310.0, 0.5), (200.0, 0.55)):
        history.add(found(rate, error), "this", path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    shown = history.table(lines).splitlines()
    assert "| rate | other | 3 · 3.1 · 2 | 3.05 | worse |" in shown
    assert "| error | other | 4 · 4 · 3.64 | 4 |  |" in shown
    assert len(history.table(lines, ["error"]).splitlines()) == 3


def test_made_up_runs_can_be_reduced() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "reduce.py"), "--requests", "64", "--chunks", "4"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["columns", "report", "segments", "plain"]


@pytest.mark.long
def test_many_shards_become_one_summary() -> None:
    words = [sys.executable, str(BENCHMARKS / "sites.py"), "--records", "600", "1200", "--shards", "30", "--kinds", "2"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "600 requests of 30 shards", "1,200 requests of 30 shards", "2 times the requests",
    ], done.stderr


@pytest.fixture
def scaling(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import scaling

    return scaling


@pytest.mark.parametrize(("shares", "cores", "count", "said"), [
    ({4: 0.5}, 2, 4, ""),
    ({4: 0.9, 8: 0.6}, 16, 8, ""),
    ({4: 0.9, 8: 0.9, 16: 0.71}, 64, 16, "and there are 16"),
    ({4: 0.75}, 4, 4, "and 4.0 of 4 cores are busy"),
])  # fmt: skip
def test_servers_are_added_until_none_is_busy(
    shares: dict[int, float], cores: int, count: int, said: str, scaling: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def took(load: object, running: list[object]) -> Any:
        busy = (shares[len(running)],) * len(running)
        return scaling.Took(4, len(running), 1, 1, 1.0, busy, (0.25,) * 4, 1.0, 1.0, 2.0, 1, 1, 0.0, 1, 0.1)

    monkeypatch.setattr(scaling, "took", took)
    monkeypatch.setattr(scaling, "servers", lambda number, itl_ms: nullcontext([object()] * number))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(cores))
    found, lacking = scaling.enough(scaling._FULL, 0)
    assert found == count
    assert said in lacking and bool(said) == bool(lacking)


@pytest.mark.parametrize(("merged", "expected"), [(0.7, 3.0), (0.5, 5.0), (0.4, 6.0), (0.9, 1.5)])
def test_one_worker_is_compared_at_the_merged_share_of_several(merged: float, expected: float, scaling: ModuleType) -> None:
    def lone(chunk_us: float, share: float) -> Any:
        return scaling.Took(1, 1, 1, 1000, 1.0, (0.5,), (0.5,), chunk_us / 1000, 1.0, 2.0, 1, 1, share, 1, 0.1)

    assert scaling.at_share(merged, [lone(3.0, 0.7), lone(5.0, 0.5)]) == pytest.approx(expected)
    assert scaling.at_share(merged, [lone(3.0, 0.7), lone(3.5, 0.68)]) == 3.25
