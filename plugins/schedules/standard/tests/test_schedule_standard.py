"""What the package registers keeps the contracts that strangers keep."""

from __future__ import annotations

from aiperf.registry.registry import Registry
from aiperf.testing import ArrivalsContract, RampContract, SamplerContract, ScheduleContract, UrlStrategyContract
from aiperf_schedule_standard import arrivals, burst, ramps, replay, request_rate, samplers, url_strategies, user_centric

OWN = "aiperf-schedule-standard"


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
    strategy = url_strategies.RoundRobin


class TestWeighted(UrlStrategyContract):
    strategy = url_strategies.Weighted


class TestLeastInFlight(UrlStrategyContract):
    strategy = url_strategies.LeastInFlight


class TestBurst(ScheduleContract):
    schedule = burst.Burst


class TestRequestRate(ScheduleContract):
    schedule = request_rate.RequestRate


class TestFixedSchedule(ScheduleContract):
    schedule = replay.FixedSchedule


class TestUserCentric(ScheduleContract):
    schedule = user_centric.UserCentric


def test_one_pattern_says_that_it_has_a_shape() -> None:
    found = {each.name: each for each in Registry.discover(cache=False).all("arrivals") if each.distribution == OWN}
    assert {name for name, each in found.items() if each.capabilities.get("smoothness")} == {"gamma"}
    assert found["gamma"].capabilities["smoothness"] is True
