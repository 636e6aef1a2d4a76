"""bailian_trace: recorded chats of a serving cluster, with times in seconds and ids of shared prompt blocks."""
