"""How requests of agents are told apart: settings in environment variables (spec: datasets §3.11, limits by environment)."""

from __future__ import annotations

from aiperf.sdk.environment import flag, number
from msgspec import Struct

from aiperf_traces.chains import SeamRules

_MOST = 1e15
"""The largest number that a variable may have."""


class WorkerRules(Struct, frozen=True):
    """What decides whether a request is of another agent, and how that one is called.

    split: look for workers at all.  sidecar_requests: most requests of a chain that is a sidecar; 0 calls none so.
    sidecar_share, sidecar_tokens: a sidecar's prompt has fewer tokens than this share of the longest prompt of the chain beside
    which it runs, or than this number.  other_model: a request to another model is a sidecar.
    summary_output, summary_ratio: a chain of one request is a sidecar, too, where its answer has fewer tokens than the one (0:
    none is), and its prompt more than the other times those of the answer.
    group: fewest workers that are a group; 0 makes no groups.
    """

    split: bool = True
    seams: SeamRules = SeamRules()
    sidecar_requests: int = 1
    sidecar_share: float = 0.10
    sidecar_tokens: int = 16_384
    other_model: bool = True
    summary_output: int = 4000
    summary_ratio: float = 20.0
    group: int = 3


class TraceSettings(Struct, frozen=True):
    """workers: how agents are told apart.  tool_shaped: results of tools are sent as messages of the role ``tool``.

    fork_parent_messages: the first prompt of a child keeps the messages of the turn with which it shares its beginning.
    """

    workers: WorkerRules = WorkerRules()
    tool_shaped: bool = False
    fork_parent_messages: bool = True


def settings() -> TraceSettings:
    """The settings of this process.

    Raises:
        ConfigError: A variable has another value than those that are possible.
    """
    seams = SeamRules(
        _number("AIPERF_DATASET_WEKA_SEAM_MAX_GAP_SECONDS", 3600.0),
        _number("AIPERF_DATASET_WEKA_SEAM_MIN_OVERLAP_RATIO", 0.5, 1),
    )
    workers = WorkerRules(
        split=flag("AIPERF_DATASET_WEKA_SPLIT_FLATTENED_AGENTS", True),
        seams=seams,
        sidecar_requests=int(_number("AIPERF_DATASET_WEKA_AUX_MAX_REQUESTS", 1)),
        sidecar_share=_number("AIPERF_DATASET_WEKA_AUX_ISL_RATIO", 0.10),
        sidecar_tokens=int(_number("AIPERF_DATASET_WEKA_AUX_ISL_FLOOR", 16_384)),
        other_model=flag("AIPERF_DATASET_WEKA_AUX_CROSS_MODEL", True),
        summary_output=int(_number("AIPERF_DATASET_WEKA_AUX_REDUCTION_OSL_MAX", 4000)),
        summary_ratio=_number("AIPERF_DATASET_WEKA_AUX_REDUCTION_RATIO", 20.0),
        group=int(_number("AIPERF_DATASET_WEKA_WORKER_GROUP_MIN", 3)),
    )
    tool_shaped = flag("AIPERF_DATASET_WEKA_TOOL_SHAPED_MESSAGES", False)
    return TraceSettings(workers, tool_shaped, flag("AIPERF_DATASET_WEKA_FORK_PARENT_MESSAGES", True))


def _number(name: str, default: float, most: float = _MOST) -> float:
    return number(name, 0, most, default)


__all__ = ["TraceSettings", "WorkerRules", "settings"]
