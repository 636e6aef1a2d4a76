"""Options of Weka traces."""

from __future__ import annotations

from aiperf.sdk.options import Word, option
from aiperf_traces.options import AgentTraceOptions

_GROUP, _SYNTHESIS = "Recorded agents", "Synthesis"
AUTO, ABSOLUTE, RELATIVE = "auto", "absolute", "relative"


class WekaOptions(AgentTraceOptions):
    """Also the clock of subagents, and bounds of lengths."""

    basis: Word = option("--weka-nested-timestamp-basis", default=AUTO, choices=(AUTO, ABSOLUTE, RELATIVE), group=_GROUP,
        place="dataset.weka_nested_timestamp_basis",
        help="What the times of a subagent's requests count from: the begin of the trace, or of the subagent. auto is relative"
        " where any of them is earlier than its subagent.")
    max_isl: int | None = option("--synthesis-max-isl", ge=1, group=_SYNTHESIS, metavar="TOKENS", shown="no limit",
        place="dataset.synthesis.max_isl",
        help="Leave out recorded prompts that are longer, and cut synthesized ones to this.")
    max_osl: int | None = option("--synthesis-max-osl", ge=1, group=_SYNTHESIS, metavar="TOKENS", shown="no limit",
        place="dataset.synthesis.max_osl", help="Cut answer lengths to this.")
