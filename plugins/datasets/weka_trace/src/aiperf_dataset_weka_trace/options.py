"""Options of Weka traces."""

from __future__ import annotations

from aiperf.sdk.options import Word, option
from aiperf_traces.options import AgentTraceOptions

_GROUP = "Recorded agents"
AUTO, ABSOLUTE, RELATIVE = "auto", "absolute", "relative"


class WekaOptions(AgentTraceOptions):
    """Also the clock of subagents."""

    basis: Word = option("--weka-nested-timestamp-basis", default=AUTO, choices=(AUTO, ABSOLUTE, RELATIVE), group=_GROUP,
        place="dataset.weka_nested_timestamp_basis",
        help="What the times of a subagent's requests count from: the begin of the trace, or of the subagent. auto is relative"
        " where any of them is earlier than its subagent.")
