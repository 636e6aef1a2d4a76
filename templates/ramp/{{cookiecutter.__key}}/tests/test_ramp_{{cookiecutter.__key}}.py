"""The {{ cookiecutter.name }} ramp: half of the rise in half of the time."""

from __future__ import annotations

import numpy as np
import pytest
from aiperf.testing import RampContract

from {{ cookiecutter.__module }} import rise


class TestItKeepsTheContract(RampContract):
    ramp = staticmethod(rise)


def test_it_is_slow_at_both_ends() -> None:
    assert rise(np.array([0.1, 0.5, 0.9])) == pytest.approx([0.028, 0.5, 0.972])
