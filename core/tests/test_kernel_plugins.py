"""What the kernel registers itself keeps the contracts that strangers keep."""

from __future__ import annotations

from aiperf import balance, ramps, schedule, sessions
from aiperf.progress import Simple
from aiperf.testing import (
    ArrivalsContract,
    RampContract,
    SamplerContract,
    ScheduleContract,
    UiContract,
    UrlStrategyContract,
)
from aiperf.ui import NoUi


class TestConstantArrivals(ArrivalsContract):
    gaps = staticmethod(schedule.constant_gaps)


class TestPoissonArrivals(ArrivalsContract):
    gaps = staticmethod(schedule.poisson_gaps)


class TestGammaArrivals(ArrivalsContract):
    gaps = staticmethod(schedule.gamma_gaps)


class TestLinearRamp(RampContract):
    ramp = staticmethod(ramps.linear)


class TestExponentialRamp(RampContract):
    ramp = staticmethod(ramps.exponential)


class TestSequentialSampler(SamplerContract):
    sampler = staticmethod(schedule.sequential)


class TestShuffleSampler(SamplerContract):
    sampler = staticmethod(schedule.shuffle)


class TestRandomSampler(SamplerContract):
    sampler = staticmethod(schedule.random)


class TestRoundRobin(UrlStrategyContract):
    strategy = balance.RoundRobin


class TestWeighted(UrlStrategyContract):
    strategy = balance.Weighted


class TestLeastInFlight(UrlStrategyContract):
    strategy = balance.LeastInFlight


class TestBurst(ScheduleContract):
    schedule = schedule.Burst


class TestRequestRate(ScheduleContract):
    schedule = schedule.RequestRate


class TestFixedSchedule(ScheduleContract):
    schedule = sessions.FixedSchedule


class TestUserCentric(ScheduleContract):
    schedule = sessions.UserCentric


class TestSimpleUi(UiContract):
    ui = Simple


class TestNoUi(UiContract):
    ui = NoUi
