"""A generated sample for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any

from aiperf_benchmarks.contract import BenchmarkContract

from aiperf_dataset_hellaswag.dataset import Hellaswag


def sample(count: int) -> list[dict[str, Any]]:
    """*count* texts of three activities in turn, one without an answer, then two rows each of 17 activities for examples."""
    rows = [_row(number, _ACTIVITIES[number % 3], "validation") for number in range(count)]
    examples = [_row(1000 + number, _ACTIVITIES[number // 2], "train") for number in range(2 * len(_ACTIVITIES))]
    return [*rows, {**_row(999, _ACTIVITIES[0], "validation"), "label": ""}, *examples]


_ACTIVITIES = ("Ice fishing", "Home and Garden", "Ping-pong", *(f"Activity {number}" for number in range(14)))


def _row(number: int, activity: str, split: str) -> dict[str, Any]:
    endings = [f"takes {number + offset} of them." for offset in range(4)]
    return {
        "ctx": f"A person does {activity} for the {number}th time. The person", "endings": endings,
        "label": str(number % 4), "activity_label": activity, "split": split,
    }  # fmt: skip


class HellaswagContract(BenchmarkContract):
    benchmark = Hellaswag
    named = "hellaswag"
    rows = sample(4)


__all__ = ["HellaswagContract", "sample"]
