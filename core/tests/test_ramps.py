"""Times at which a ramped limit reaches each level, and curves that break the contract."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiperf.errors import PluginError
from aiperf.prepare.ramped_limits import levels_ns, ramp_of, with_limits
from aiperf.rundir.int_files import read_ints
from aiperf.sdk.columns import Floats
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf_testing.journals import plan_for
from aiperf_testing.plans import sample_ref
from hypothesis import given
from hypothesis import strategies as st

S = 10**9


def linear(x: Floats) -> Floats:
    return x


def exponential(x: Floats) -> Floats:
    return x * x


CURVES = """
import numpy as np

def linear(x):
    return x

def exponential(x):
    return x * x

def steps(x):
    return np.floor(x * 2) / 2

def falls(x):
    return 1 - x

def stops(x):
    return x / 2

def alone(x):
    return 0.5

def nothing(x):
    return x * np.nan

def fails(x):
    raise ZeroDivisionError("no luck")
"""


@pytest.fixture(autouse=True)
def curves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fake_ramps.py").write_text(CURVES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fake_ramps", raising=False)


def planned(folder: Path, name: str = "linear", **changes: Any) -> tuple[Plan, PhasePlan]:
    phase = PhasePlan(**{"name": "profiling", "kind": "profiling", "index": 3, "schedule": "burst", "ramp": name, **changes})
    (folder / "journal").mkdir(exist_ok=True)
    ramps = {name: sample_ref("ramps", f"fake_ramps:{name}")}
    return plan_for(folder, phases=(phase,), journal=str(folder / "journal"), ramps=ramps), phase


def test_eight_sessions_over_four_seconds_meet_acceptance_check_5() -> None:
    assert (levels_ns(linear, 4 * S, 8) / 1e9).round(2).tolist() == [0.57, 1.14, 1.71, 2.29, 2.86, 3.43, 4.0]


@given(st.integers(2, 500), st.integers(1, 10**13))
def test_a_linear_ramp_reaches_each_level_after_an_equal_time(target: int, ramp_ns: int) -> None:
    levels = levels_ns(linear, ramp_ns, target)
    exact = np.array([k * ramp_ns / (target - 1) for k in range(1, target)])
    assert levels.dtype == np.int64
    assert np.abs(levels - exact).max() <= 1 + ramp_ns * 1e-12
    assert levels[-1] == ramp_ns
    assert (np.diff(levels) >= 0).all()


@given(st.integers(2, 500), st.integers(10**6, 10**13))
def test_an_exponential_ramp_reaches_a_level_at_the_root_of_its_share(target: int, ramp_ns: int) -> None:
    levels = levels_ns(exponential, ramp_ns, target)
    exact = np.sqrt(np.arange(1, target) / (target - 1)) * ramp_ns
    assert np.abs(levels - exact).max() <= 1 + ramp_ns * 1e-4
    assert (np.diff(levels) >= 0).all()


def test_a_curve_of_steps_reaches_several_levels_at_once() -> None:
    levels = levels_ns(lambda x: np.floor(x * 2) / 2, 10 * S, 5)
    assert (levels / S).tolist() == pytest.approx([5, 5, 10, 10], abs=0.011)


def test_a_limit_of_one_needs_no_ramp() -> None:
    assert levels_ns(linear, S, 1).tolist() == []


def test_each_limit_that_rises_has_its_file(tmp_path: Path) -> None:
    plan, phase = planned(
        tmp_path, concurrency=3, concurrency_ramp_ns=2 * S, prefill_concurrency=2, prefill_ramp_ns=S, rate_ramp_ns=S, rate=1.0
    )
    ramped = with_limits(plan, phase)
    files = [Path(str(name)) for name in (ramped.limits_file, ramped.prefill_limits_file)]
    assert [path.name for path in files] == ["limits-3.bin", "prefill-limits-3.bin"]
    assert [read_ints(path).tolist() for path in files] == [[S, 2 * S], [S]]


@pytest.mark.parametrize(
    "limits", [{}, {"concurrency": 5}, {"concurrency": 1, "concurrency_ramp_ns": S}, {"prefill_ramp_ns": S}]
)
def test_limits_without_a_ramp_have_no_file(tmp_path: Path, limits: dict[str, Any]) -> None:
    found = with_limits(*planned(tmp_path, **limits))
    assert (found.limits_file, found.prefill_limits_file) == (None, None)


def test_a_third_party_curve_is_used(tmp_path: Path) -> None:
    plan, phase = planned(tmp_path, "steps")
    assert ramp_of(plan.plugins, phase)(np.array([0, 0.4, 0.5, 1.0])).tolist() == [0, 0, 0.5, 1]


@pytest.mark.parametrize(("name", "said"), [
    ("falls", "doesn't rise from 0 at 0 to 1 at 1"),
    ("stops", "doesn't rise from 0 at 0 to 1 at 1"),
    ("nothing", "doesn't rise from 0 at 0 to 1 at 1"),
    ("alone", "gave shares of shape () for (1001,)"),
    ("fails", "failed: ZeroDivisionError: no luck"),
    ("missing", "can't be imported"),
])  # fmt: skip
def test_a_curve_that_breaks_its_contract_is_named_with_its_package(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(PluginError) as caught:
        with_limits(*planned(tmp_path, name, concurrency=4, concurrency_ramp_ns=S))
    assert caught.value.message.startswith(f"the plugin ramps:{name} of acme 1.2 ")
    assert said in caught.value.message
