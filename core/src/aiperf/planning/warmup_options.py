"""The kernel's options of the warmup, which has those of the profiling phase where it has none of its own."""

from __future__ import annotations

from aiperf.sdk.options import Finite, Options, Word, option


class WarmupOptions(Options):
    """Options of the phase before profiling, whose requests are in no result."""

    warmup_request_count: int | None = option("--warmup-request-count", "--num-warmup-requests", ge=1, group="Warmup",
        metavar="INT", place="warmup.requests", help="Warm up with this many requests.")
    warmup_session_count: int | None = option("--num-warmup-sessions", ge=1, group="Warmup", metavar="INT",
        place="warmup.sessions", help="Warm up with this many sessions.")
    warmup_duration_s: Finite | None = option("--warmup-duration", gt=0, group="Warmup", metavar="SECONDS",
        place="warmup.duration", help="Warm up for this time.")
    warmup_concurrency: int | None = option("--warmup-concurrency", ge=1, group="Warmup", metavar="INT", shown="--concurrency",
        place="warmup.concurrency", help="Most sessions at a time while warming up.")
    warmup_prefill_concurrency: int | None = option("--warmup-prefill-concurrency", ge=1, group="Warmup", metavar="INT",
        shown="--prefill-concurrency", place="warmup.prefill_concurrency",
        help="Most requests at a time that wait for their first token while warming up.")
    warmup_request_rate: Finite | None = option("--warmup-request-rate", gt=0, group="Warmup", metavar="REQ/S",
        shown="--request-rate", place="warmup.rate", help="Requests started per second while warming up.")
    warmup_arrival_pattern: Word | None = option("--warmup-arrival-pattern", group="Warmup", metavar="NAME",
        shown="--arrival-pattern", place="warmup.type", help="Distribution of the time between arrivals while warming up.")
    warmup_user_centric_rate: Finite | None = option("--warmup-user-centric-rate", gt=0, group="Warmup", metavar="REQ/S",
        place="warmup.rate (user_centric)", help="Warm up with users: requests per second over all of them.")
    warmup_users: int | None = option("--warmup-num-users", ge=1, group="Warmup", metavar="INT", shown="--num-users",
        place="warmup.users", help="Simulated users while warming up; with, and only with, a user-centric rate of the warmup.")
    warmup_fixed_schedule: bool = option("--warmup-fixed-schedule", default=False, group="Warmup",
        place="warmup.type (fixed_schedule)", help="Warm up with a trace at its recorded times.")
    warmup_auto_offset: bool = option("--warmup-fixed-schedule-auto-offset", default=True,
        negative="--no-warmup-fixed-schedule-auto-offset", group="Warmup", place="warmup.auto_offset",
        help="Shift the warmup's trace so that its first request is due at once.")
    warmup_start_ms: int | None = option("--warmup-fixed-schedule-start-offset", ge=0, group="Warmup", metavar="MS",
        place="warmup.start_offset",
        help="Leave out of the warmup what a trace has before this time, which becomes time zero.")
    warmup_end_ms: int | None = option("--warmup-fixed-schedule-end-offset", ge=0, group="Warmup", metavar="MS",
        place="warmup.end_offset", help="Leave out of the warmup what a trace has after this time.")
    warmup_alone: bool = option("--warmup-alone", default=False, group="Warmup", place="warmup.alone",
        help="Warm up with the warmup's own options alone: without a rate of its own it is a burst.")
    warmup_grace_s: float | None = option("--warmup-grace-period", ge=0, group="Warmup", metavar="SECONDS", shown="inf",
        place="warmup.grace_period", help="Time that requests in flight get after the warmup's duration.")

    warmup_concurrency_ramp_s: Finite | None = option("--warmup-concurrency-ramp-duration", gt=0, group="Warmup",
        metavar="SECONDS", shown="--concurrency-ramp-duration", place="warmup.concurrency_ramp.duration",
        help="Raise the warmup's concurrency over this time.")
    warmup_prefill_ramp_s: Finite | None = option("--warmup-prefill-concurrency-ramp-duration", gt=0, group="Warmup",
        metavar="SECONDS", shown="--prefill-concurrency-ramp-duration", place="warmup.prefill_ramp.duration",
        help="Raise the warmup's prefill concurrency over this time.")
    warmup_rate_ramp_s: Finite | None = option("--warmup-request-rate-ramp-duration", gt=0, group="Warmup", metavar="SECONDS",
        shown="--request-rate-ramp-duration", place="warmup.rate_ramp.duration",
        help="Raise the warmup's request rate over this time.")
