"""Options of a Baseten trace."""

from __future__ import annotations

from aiperf.sdk.options import Finite, option
from aiperf_dataset_synthetic.options import CommonOptions, Problems

_GROUP = "Trace replay"


class BasetenTraceOptions(CommonOptions):
    open_loop_replay: bool = option("--open-loop-replay", default=True, negative="--no-open-loop-replay", group=_GROUP,
        place="dataset.replay.open_loop",
        help="Start later requests of a session at their times, else after the recorded pause behind the one before.")
    open_loop_strict: bool = option("--open-loop-strict", default=False, group=_GROUP, place="dataset.replay.strict",
        help="Keep the time of every request, also where the one before of its session has not ended.")
    speedup: Finite = option("--replay-speedup", default=1.0, gt=0, group=_GROUP, metavar="RATIO", shown="1",
        place="dataset.replay.speedup", help="Divide the recorded times and pauses by this.")
    idle_gap_cap_s: Finite | None = option("--max-idle-gap-cap-seconds", ge=0, group=_GROUP, metavar="SECONDS", shown="no cap",
        place="dataset.replay.max_idle_gap",
        help="Shorten recorded gaps between consecutive requests to this, before the speed-up.")
    session_sample_ratio: Finite = option("--trace-session-sample-ratio", default=1.0, gt=0, le=1, group=_GROUP,
        metavar="RATIO", shown="1", place="dataset.replay.session_sample_ratio",
        help="Keep this share of the sessions, drawn by the seed.")
    force_min_tokens: bool = option("--force-min-tokens", default=True, negative="--no-force-min-tokens", group=_GROUP,
        place="dataset.replay.force_min_tokens", help="Send min_tokens, so that answers have their recorded length.")
    omit_kv_hints: bool = option("--omit-kv-hints", default=False, group=_GROUP, place="dataset.replay.omit_kv_hints",
        help="Leave hash_ids and block_size out of the body.")

    def problems(self, typed: dict[str, str]) -> list[str]:
        problems = Problems(typed)
        if self.open_loop_strict and not self.open_loop_replay:
            strict, closed = typed.get("open_loop_strict", "--open-loop-strict"), "--no-open-loop-replay"
            why = f"{strict} and {closed} exclude each other: the one keeps times, the other pauses"
            problems.refuse(why, f"drop {closed}")
        return problems.messages + super().problems(typed)
