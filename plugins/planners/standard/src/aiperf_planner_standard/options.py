"""Options of an early end of repeats."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from aiperf.sdk.options import Before, option
from aiperf_studies.options import ConvergedOptions

_GROUP, _PLACE = "Repeats", "multi_run.convergence"


class ConvergenceMode(StrEnum):
    """What is compared with the threshold: the interval's width, the coefficient of variation, or whole distributions."""

    CI_WIDTH = "ci_width"
    CV = "cv"
    DISTRIBUTION = "distribution"


class ConvergenceStat(StrEnum):
    AVG = "avg"
    P50 = "p50"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"
    MIN = "min"
    MAX = "max"


THRESHOLDS = {ConvergenceMode.CI_WIDTH: 0.10, ConvergenceMode.CV: 0.05, ConvergenceMode.DISTRIBUTION: 0.05}


def _underscored(value: Any) -> Any:
    """``ci-width`` is another spelling of ``ci_width``."""
    return value.replace("-", "_") if isinstance(value, str) else value


class ConvergenceOptions(ConvergedOptions):
    stat: ConvergenceStat = option("--convergence-stat", default=ConvergenceStat.AVG, group=_GROUP, place=f"{_PLACE}.stat",
        help="The statistic of the metric that is compared.")
    mode: Annotated[ConvergenceMode, Before(_underscored)] = option("--convergence-mode", default=ConvergenceMode.CI_WIDTH,
        group=_GROUP, place=f"{_PLACE}.mode", help="How runs are compared: the confidence interval's width over the mean, the "
        "coefficient of variation, or the last run's requests with those of all before, by a Kolmogorov-Smirnov test.")
    threshold: float | None = option("--convergence-threshold", group=_GROUP, metavar="SHARE", gt=0, lt=1,
        shown="0.1 of ci_width, else 0.05", place=f"{_PLACE}.threshold",
        help="The runs agree below this width or coefficient, or above this p value.")
    min_runs: int = option("--convergence-min-runs", default=3, group=_GROUP, metavar="INT", ge=2, le=10,
        place=f"{_PLACE}.min_runs", help="Runs of a load before it may end early.")

    @property
    def limit(self) -> float:
        """The threshold, or the mode's own."""
        return THRESHOLDS[self.mode] if self.threshold is None else self.threshold

    def problems(self, typed: dict[str, str]) -> list[str]:
        """Settings of an early end that nobody asked for, or that its mode doesn't have."""
        wanted = typed.get("metric", "--convergence-metric")
        found = []
        if self.metric is None:
            idle = [flag for field, flag in typed.items() if field != "metric"]
            found += [f"{flag} needs {wanted}: without it no load ends early\nadd {wanted}, or drop {flag}" for flag in idle]
        elif self.mode is ConvergenceMode.DISTRIBUTION and "stat" in typed:
            mode = typed.get("mode", "--convergence-mode")
            found.append(
                f"{typed['stat']} is of no use with {mode} distribution, which compares the values of all requests\n"
                f"drop {typed['stat']}, or choose {mode} ci_width or cv"
            )
        return found
