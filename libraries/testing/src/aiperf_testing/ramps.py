"""The contract of ramps: they rise from 0 to 1, and the load follows the curve."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from aiperf.prepare.ramped_limits import levels_ns
from aiperf.sdk.columns import Floats
from aiperf.sdk.ramp import Ramp, ramp_points

from aiperf_testing.findings import unlike
from aiperf_testing.manifests import check_row

_X = np.linspace(0.0, 1.0, 2001)
_RAMP_NS, _RATE, _TARGET = 20_000_000_000, 100.0, 50
"""Time of the ramp; requests a second at its end; requests in flight at its end."""


def _arrivals(x: Floats, share: Floats) -> Floats:
    """Arrivals expected by each share *x* of the ramp's time, where the rate rises to _RATE by *share* of the rise."""
    begin = _RATE * 100_000_000 / _RAMP_NS
    rates = begin + (_RATE - begin) * share
    return np.append(0.0, np.cumsum((rates[1:] + rates[:-1]) / 2 * np.diff(x))) * _RAMP_NS / 1e9


class RampContract:
    """Subclass with the function::

        class TestMineKeepsTheContract(RampContract):
            ramp = staticmethod(mine)
    """

    ramp: ClassVar[Ramp]

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("ramps", type(self).ramp)

    def test_it_begins_at_nothing_and_ends_at_the_whole(self) -> None:
        begin, end = type(self).ramp(np.array([0.0, 1.0]))
        assert abs(begin) < 1e-9 and abs(end - 1.0) < 1e-9, unlike((begin, end), (0.0, 1.0), "share(0) is 0 and share(1) is 1")

    def test_it_never_falls_and_never_overshoots(self) -> None:
        share = type(self).ramp(_X.copy())
        assert (np.diff(share) >= 0).all(), "the share falls somewhere: give a function that never does"
        assert share.min() >= -1e-9 and share.max() <= 1.0 + 1e-9, (
            unlike((share.min(), share.max()), "shares from 0 to 1", "cut it there")
        )

    def test_each_point_stands_for_itself(self) -> None:
        whole = type(self).ramp(_X.copy())
        for i in (0, 17, 1000, 2000):
            np.testing.assert_array_equal(type(self).ramp(_X[i : i + 1].copy()), whole[i : i + 1])

    def test_the_times_it_is_given_are_left_as_they_were(self) -> None:
        given = _X.copy()
        type(self).ramp(given)
        np.testing.assert_array_equal(given, _X)

    def test_a_rate_that_rises_by_it_sends_what_lies_below_the_curve(self) -> None:
        below = _arrivals(_X, type(self).ramp(_X.copy()))[-1]
        x, share = ramp_points(type(self).ramp, _RAMP_NS)
        due_ns = np.interp(below, _arrivals(x, share), x * _RAMP_NS)
        np.testing.assert_allclose(due_ns, _RAMP_NS, rtol=1e-3)

    def test_a_limit_that_rises_by_it_reaches_every_level_in_time(self) -> None:
        reached = levels_ns(type(self).ramp, _RAMP_NS, _TARGET)
        assert len(reached) == _TARGET - 1, unlike(len(reached), _TARGET - 1, "each level between must be reached")
        assert (np.diff(reached) >= 0).all(), "a level is reached before a lower one: the share must not fall"
        assert reached[0] >= 0 and reached[-1] <= _RAMP_NS, (
            unlike((reached[0], reached[-1]), (0, _RAMP_NS), "levels are reached within the ramp")
        )
