"""Options that data sets of recorded agents have in common."""

from __future__ import annotations

from aiperf.sdk.options import Finite, Options, option

_GROUP, _SYNTHESIS = "Recorded agents", "Synthesis"


class AgentTraceOptions(Options):
    """How recorded pauses are kept, which sessions are left out, and bounds of lengths."""

    think_time_only: bool = option("--use-think-time-only", default=False, group=_GROUP,
        place="dataset.use_think_time_only",
        help="Wait the recorded think time before a request, in place of the time since the recorded answer before.")
    ignore_delays: bool = option("--ignore-trace-delays", default=False, group=_GROUP,
        place="dataset.ignore_trace_delays", help="Send each request as soon as the answer before it has come.")
    delay_cap_s: Finite | None = option("--inter-turn-delay-cap-seconds", ge=0, group=_GROUP, metavar="SECONDS",
        place="dataset.inter_turn_delay_cap_seconds", shown="no bound",
        help="Longest pause before a request; longer ones are cut.")
    max_context: int | None = option("--max-context-length", ge=1, group=_GROUP, metavar="TOKENS", shown="no limit",
        place="dataset.max_context_length",
        help="Leave out sessions with a request whose prompt and answer have more tokens than this together.")

    max_isl: int | None = option("--synthesis-max-isl", ge=1, group=_SYNTHESIS, metavar="TOKENS", shown="no limit",
        place="dataset.synthesis.max_isl",
        help="Leave out recorded prompts that are longer, and cut synthesized ones to this.")
    max_osl: int | None = option("--synthesis-max-osl", ge=1, group=_SYNTHESIS, metavar="TOKENS", shown="no limit",
        place="dataset.synthesis.max_osl", help="Cut answer lengths to this.")

    def problems(self, typed: dict[str, str]) -> list[str]:
        """The think time alone, and no delays at all."""
        found = super().problems(typed)
        if self.think_time_only and self.ignore_delays:
            think = typed.get("think_time_only", "--use-think-time-only")
            ignore = typed.get("ignore_delays", "--ignore-trace-delays")
            found.append(f"{think} and {ignore} exclude each other: the one waits, the other doesn't\ndrop {think} or {ignore}")
        return found
