"""Options that several packages have alike."""

from __future__ import annotations

from aiperf.sdk.options import Options, option


class ConvergedOptions(Options):
    """Planners end the repeats of a cell by it, and exporters write the requests of its runs together where it is given."""

    metric: str | None = option("--convergence-metric", group="Repeats", metavar="TAG", place="multi_run.convergence.metric",
        help="Make no further runs of a load when this metric's values over its runs agree; --num-profile-runs is the most.")
