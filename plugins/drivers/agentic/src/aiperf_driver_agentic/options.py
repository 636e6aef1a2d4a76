"""Options of agentic replay."""

from __future__ import annotations

from aiperf.sdk.options import Finite, Options, option

_GROUP = "Agentic replay"


class AgenticOptions(Options):
    """Where lanes begin, how they are warmed up, and how much of a trace's idle time is waited."""

    start_min_ratio: Finite = option("--trajectory-start-min-ratio", default=0.25, ge=0, le=1, group=_GROUP, metavar="RATIO",
        place="agentic.trajectory_start_min_ratio",
        help="Earliest cut of a lane's first trace, as a share of its time.")
    start_max_ratio: Finite = option("--trajectory-start-max-ratio", default=0.75, ge=0, le=1, group=_GROUP, metavar="RATIO",
        place="agentic.trajectory_start_max_ratio",
        help="Latest cut of a lane's first trace, as a share of its time.")
    burst: bool = option("--burst-phase-starts", default=False, group=_GROUP, place="agentic.burst_phase_starts",
        help="Begin both phases with one request of each lane at once.")
    requests_per_lane: int | None = option("--warmup-requests-per-lane", ge=1, group=_GROUP, metavar="INT",
        place="agentic.warmup_requests_per_lane",
        help="Let each lane go on without idle time, behind the first answers of the warmup, for this many requests.")
    cache_warmup_s: Finite | None = option("--agentic-cache-warmup-duration", gt=0, group=_GROUP, metavar="SECONDS",
        place="agentic.cache_warmup_duration",
        help="Let the lanes go on without idle time, behind the first answers of the warmup, for this time.")
    warmup_grace_s: Finite | None = option("--agentic-warmup-grace-period", ge=0, group=_GROUP, metavar="SECONDS",
        place="agentic.warmup_grace_period", shown="no limit",
        help="Longest wait for the answers of the warmup.")
    trace_gap_cap_s: Finite | None = option("--trace-idle-gap-cap-seconds", ge=0, group=_GROUP, metavar="SECONDS",
        place="agentic.trace_idle_gap_cap", shown="no cap",
        help="Longest time that a trace waits with no request in flight.")
    system_gap_cap_s: Finite | None = option("--system-idle-gap-cap-seconds", ge=0, group=_GROUP, metavar="SECONDS",
        place="agentic.system_idle_gap_cap", shown="no cap",
        help="Longest time that the run waits with no request in flight.")
    wraps: bool = option("--allow-dataset-wrap", default=False, negative="--no-allow-dataset-wrap", group=_GROUP,
        place="agentic.allow_dataset_wrap",
        help="Let several lanes begin with one trace, where the data set has fewer traces than lanes.")

    def problems(self, typed: dict[str, str]) -> list[str]:
        """Bounds in the wrong order, and two further stages of the warmup."""
        sentences = []
        if self.start_min_ratio > self.start_max_ratio:
            least = typed.get("start_min_ratio", "--trajectory-start-min-ratio")
            most = typed.get("start_max_ratio", "--trajectory-start-max-ratio")
            sentences.append(
                f"{least} {self.start_min_ratio:g} is more than {most} {self.start_max_ratio:g}\nlower one, or raise the other"
            )
        if self.requests_per_lane is not None and self.cache_warmup_s is not None:
            count = typed.get("requests_per_lane", "--warmup-requests-per-lane")
            time = typed.get("cache_warmup_s", "--agentic-cache-warmup-duration")
            sentences.append(f"{count} and {time} exclude each other: each says how long the warmup goes on\nkeep one of them")
        return sentences
