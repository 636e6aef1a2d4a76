"""The {{ cookiecutter.name }} schedule: arithmetic, whole or in blocks."""

from __future__ import annotations

import numpy as np
import pytest
from aiperf import ConfigError, PhasePlan, ScheduleContext

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


def made(rate: float | None, ramp_s: float) -> {{ cookiecutter.__class }}:
    return {{ cookiecutter.__class }}(ScheduleContext(1, PhasePlan("profiling", "profiling", 0, "request_rate", rate=rate)), ramp_s)


@pytest.mark.parametrize(("n", "due_s"), [(0, 0.632455532), (4, 1.414213562), (9, 2.0), (10, 2.1), (109, 12.0)])
def test_ten_per_second_are_reached_in_two_seconds(n: int, due_s: float) -> None:
    assert made(10.0, 2.0).due_block(n, 1).tolist() == [round(due_s * 1e9)]


def test_blocks_join_and_never_go_back() -> None:
    whole = made(50.0, 3.0).due_block(0, 400)
    parts = [made(50.0, 3.0).due_block(first, 100) for first in range(0, 400, 100)]
    assert whole.dtype == np.int64
    assert np.array_equal(np.concatenate(parts), whole)
    assert (np.diff(whole) >= 0).all()


def test_without_a_rate_there_is_nothing_to_grow_to() -> None:
    with pytest.raises(ConfigError, match="needs a rate"):
        made(None, 2.0)
