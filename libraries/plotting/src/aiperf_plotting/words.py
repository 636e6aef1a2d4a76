"""Words of a picture: metric, statistic and unit of an axis, values with their unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aiperf import PlotRun

_KNOWN = {
    "request_latency": "request latency", "time_to_first_token": "time to first token",
    "inter_token_latency": "inter-token latency", "effective_latency": "response latency",
    "output_token_throughput": "output tokens per second", "request_throughput": "requests per second",
    "output_token_throughput_per_user": "output tokens per second and user", "goodput": "good requests per second",
    "input_sequence_length": "prompt length", "output_sequence_length": "output length",
    "effective_concurrency": "requests in flight", "nvidia_gpu_utilization": "utilization of a GPU",
    "nvidia_power_usage": "power of a GPU",
}  # fmt: skip
_UNITS = {
    "time_to_first_token": "ms", "request_latency": "ms", "inter_token_latency": "ms", "effective_latency": "ms",
    "input_sequence_length": "tokens", "output_sequence_length": "tokens",
}  # fmt: skip
_IN_THE_NAME = frozenset(("tokens/sec", "requests/sec", "tokens/sec/user"))
"""Units that the names in _KNOWN say."""


def named(tag: str) -> str:
    """A metric's name for people."""
    return _KNOWN.get(tag, tag.replace("_", " "))


def unit_of(tag: str, runs: Sequence[PlotRun]) -> str:
    """The metric's unit, as the first run that has it writes it; "" where none does."""
    for run in runs:
        entry = run.summary.get(tag)
        if isinstance(entry, Mapping) and isinstance(entry.get("unit"), str):
            return str(entry["unit"])
    return _UNITS.get(tag, "")


def labelled(tag: str, statistic: str, runs: Sequence[PlotRun]) -> str:
    """The label of an axis: metric, statistic and unit.  *statistic*: "" where values are those of single requests."""
    unit = unit_of(tag, runs)
    said = tag in _KNOWN and unit in _IN_THE_NAME
    about = ", ".join(filter(None, (named(tag), statistic)))
    return about if said or not unit else f"{about} ({unit})"


def shown(value: float, unit: str) -> str:
    """A value with its unit: three or four digits tell it."""
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}".rstrip()
