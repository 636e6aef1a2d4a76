"""What the kernel registers itself keeps the contracts that strangers keep."""

from __future__ import annotations

from aiperf.run.display import Simple
from aiperf.schedule import arrivals, ramps, replay, request_rate, samplers, user_centric
from aiperf.sdk import url_strategy
from aiperf.sdk.ui import NoUi
from aiperf.testing import (
    ArrivalsContract,
    RampContract,
    SamplerContract,
    ScheduleContract,
    UiContract,
    UrlStrategyContract,
)


class TestConstantArrivals(ArrivalsContract):
    gaps = staticmethod(arrivals.constant_gaps)


class TestPoissonArrivals(ArrivalsContract):
    gaps = staticmethod(arrivals.poisson_gaps)


class TestGammaArrivals(ArrivalsContract):
    gaps = staticmethod(arrivals.gamma_gaps)


class TestLinearRamp(RampContract):
    ramp = staticmethod(ramps.linear)


class TestExponentialRamp(RampContract):
    ramp = staticmethod(ramps.exponential)


class TestSequentialSampler(SamplerContract):
    sampler = staticmethod(samplers.sequential)


class TestShuffleSampler(SamplerContract):
    sampler = staticmethod(samplers.shuffle)


class TestRandomSampler(SamplerContract):
    sampler = staticmethod(samplers.random)


class TestRoundRobin(UrlStrategyContract):
    strategy = url_strategy.RoundRobin


class TestWeighted(UrlStrategyContract):
    strategy = url_strategy.Weighted


class TestLeastInFlight(UrlStrategyContract):
    strategy = url_strategy.LeastInFlight


class TestBurst(ScheduleContract):
    schedule = request_rate.Burst


class TestRequestRate(ScheduleContract):
    schedule = request_rate.RequestRate


class TestFixedSchedule(ScheduleContract):
    schedule = replay.FixedSchedule


class TestUserCentric(ScheduleContract):
    schedule = user_centric.UserCentric


class TestSimpleUi(UiContract):
    ui = Simple


class TestNoUi(UiContract):
    ui = NoUi
