"""tracelab: rounds of coding agents, and the subagents that they started."""
