"""The pictures of the reference under their names, each a declaration."""

from __future__ import annotations

from aiperf_plotting.preset import Preset, PresetPlot, Value


class ParetoLatency(PresetPlot):
    """Up and to the left is better; a run below the frontier is beaten in both."""

    title = "Throughput against latency, and the frontier"
    runs = 2
    preset = Preset("pareto", Value("request_latency", "avg"), Value("output_token_throughput_per_gpu", "avg"), title=title)


class ParetoInteractivity(PresetPlot):
    """Up and to the right is better; a run below the frontier is beaten in both."""

    title = "Throughput against that of one user, and the frontier"
    runs = 2
    preset = Preset(
        "pareto", Value("output_token_throughput_per_user", "avg"), Value("output_token_throughput_per_gpu", "avg"),
        title=title,
    )  # fmt: skip


class TtftVsThroughput(PresetPlot):
    """A line that turns right without rising is a saturated server."""

    title = "Throughput against the time to first token"
    runs = 2
    preset = Preset("scatter_line", Value("time_to_first_token", "avg"), Value("request_throughput", "avg"), title=title)


class LatencyThroughputUncertainty(PresetPlot):
    """Two loads whose intervals overlap on both axes may be the same."""

    title = "Latency and throughput, with intervals of repeats"
    preset = Preset(
        "latency_throughput_uncertainty", Value("request_latency", "avg"), Value("output_token_throughput_per_gpu", "avg"),
        title=title,
    )  # fmt: skip


class TtftTimeline(PresetPlot):
    """A staircase is a queue: each request waits for the one before."""

    title = "Requests, each with the time to its first token and its generation"
    most_runs = 1
    preset = Preset("request_timeline", Value("request_start_ns"), Value("time_to_first_token"), title=title)


class TimeslicesTtft(PresetPlot):
    """Slices that stand out are a warm-up, a freeze or a change of the load."""

    title = "Time to first token by time slice"
    most_runs = 1
    preset = Preset("timeslice", Value("slice"), Value("time_to_first_token", "avg"), title=title)


class TimeslicesItl(PresetPlot):
    """Slices that stand out are larger batches, or a machine that slowed down."""

    title = "Inter-token latency by time slice"
    most_runs = 1
    preset = Preset("timeslice", Value("slice"), Value("inter_token_latency", "avg"), title=title)


class TimeslicesThroughput(PresetPlot):
    """A run that is long enough has a level; its begin and end are lower."""

    title = "Output tokens per second by time slice"
    most_runs = 1
    preset = Preset("timeslice", Value("slice"), Value("output_token_throughput", "avg"), title=title)


class TimeslicesLatency(PresetPlot):
    """A latency that rises from slice to slice is a queue that grows."""

    title = "Request latency by time slice"
    most_runs = 1
    preset = Preset("timeslice", Value("slice"), Value("request_latency", "avg"), title=title)


class GpuUtilizationAndThroughput(PresetPlot):
    """Full GPUs and few tokens point at the server; idle GPUs at the load."""

    title = "Output tokens per second, and utilization of the GPUs"
    most_runs = 1
    preset = Preset("dual_axis", Value("time"), Value("throughput"), Value("nvidia_gpu_utilization"), title=title)


class ItlOverTime(PresetPlot):
    """Levels are sizes of batches; a slope is a cache that fills."""

    title = "Inter-token latency of each request"
    preset = Preset("scatter", Value("request_number"), Value("inter_token_latency"), title=title)


class LatencyOverTime(PresetPlot):
    """Lines that drift apart are a tail that grows."""

    title = "Request latency of each request, and percentiles of the last ten"
    most_runs = 1
    preset = Preset("scatter_with_percentiles", Value("request_number"), Value("request_latency"), title=title)


class DispersedThroughput(PresetPlot):
    """The level is what the server gives; gaps are pauses."""

    title = "Output tokens per second, each answer's spread over its generation"
    preset = Preset("area", Value("time"), Value("throughput"), title=title)
