"""Lag of a replay behind its recording, beyond the constant part of the lag."""

from __future__ import annotations

from aiperf import Needs, RunMetric, Totals, Unit

_DEGRADED_MS = 500.0


class _Lag(RunMetric):
    unit = Unit.MILLISECONDS
    needs = ("schedule_slip",)
    requires = Needs.REPLAYED

    percentile = ""

    def number(self, run: Totals) -> float | None:
        reached, least = (run.statistic("schedule_slip", name) for name in (self.percentile, "min"))
        return None if reached is None or least is None else reached - least


class ReplayLagP50(_Lag):
    """The schedule slip's median minus its minimum."""

    tag = "replay_sched_lag_p50"
    title = "Replay Schedule Lag p50"
    percentile = "p50"


class ReplayLagP90(_Lag):
    """The schedule slip's 90th percentile minus its minimum."""

    tag = "replay_sched_lag_p90"
    title = "Replay Schedule Lag p90"
    percentile = "p90"


class ReplayLagP99(_Lag):
    """The schedule slip's 99th percentile minus its minimum."""

    tag = "replay_sched_lag_p99"
    title = "Replay Schedule Lag p99"
    percentile = "p99"


class ReplayDegraded(RunMetric):
    """1 where the lag's 99th percentile is above 500 ms, else 0."""

    tag = "replay_sched_degraded"
    title = "Replay Schedule Degraded"
    unit = Unit.COUNT
    needs = ("replay_sched_lag_p99",)
    requires = Needs.REPLAYED

    def number(self, run: Totals) -> float | None:
        lag_ms = run.value("replay_sched_lag_p99")
        return None if lag_ms is None else float(lag_ms > _DEGRADED_MS)
