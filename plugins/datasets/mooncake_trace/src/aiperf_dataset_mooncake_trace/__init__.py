"""mooncake_trace: recorded requests of a serving cluster, with times and ids of shared prompt blocks."""
