"""Grades counted again from their lines: the table of tasks, and the summary's shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aiperf_command_validate.faults import Faults
from aiperf_command_validate.numbers import close

KIND = "accuracy.jsonl"
TABLE = "accuracy_results.csv"
_OVERALL = "OVERALL"
_COUNTS = ("correct", "total", "unparsed")


class Grades:
    """The counts of each task, and of all together: right, graded and unparsed answers, and those without a grade."""

    def __init__(self) -> None:
        self.tasks: dict[str, dict[str, int]] = {}

    def read(self, lines: Iterator[tuple[int, dict[str, Any]]], name: str, faults: Faults) -> None:
        """Count the lines.  A line that has a mark without a grade, or a grade without one, is a fault."""
        seen: dict[object, int] = {}
        for number, line in lines:
            passed, unparsed, request = line.get("passed"), line.get("unparsed"), line.get("x_request_id")
            if (passed is None) != (unparsed is None):
                faults.add(name, "has one of passed and unparsed without the other", number, kind="half grades")
            if request is not None and seen.setdefault(request, number) != number:
                faults.add(name, f"is of the request of line {seen[request]:,}", number, kind="requests twice")
            for task in {str(line["task"]), _OVERALL} if line.get("task") is not None else {_OVERALL}:
                counts = self.tasks.setdefault(task, dict.fromkeys((*_COUNTS, "without"), 0))
                counts["without" if passed is None else "total"] += 1
                counts["correct"] += passed is True
                counts["unparsed"] += unparsed is True

    def against_table(self, table: Sequence[Sequence[str]], name: str, faults: Faults) -> None:
        """Each row of the CSV has the counts of its lines."""
        if not table:
            faults.add(name, "is empty")
            return
        head, *rows = table
        found = {row[0]: dict(zip(head, row, strict=False)) for row in rows if row}
        for task in sorted(self.tasks.keys() | found.keys()):
            counts, row = self.tasks.get(task), found.get(task)
            if counts is None or row is None:
                what = "has a row for" if counts is None else "has no row for"
                faults.add(name, f"{what} {task}, {'of which there are no lines' if counts is None else 'which has lines'}")
                continue
            without = _whole(row.get("failed")) + _whole(row.get("ungraded"))
            told = {key: _whole(row.get(key)) for key in _COUNTS} | {"without": without}
            for key, count in counts.items():
                if told[key] != count:
                    said = "failed and ungraded" if key == "without" else key
                    faults.add(name, f"{task} has {told[key]:,} {said}; its lines have {count:,}")
            share = f"{counts['correct'] / counts['total']:.4f}" if counts["total"] else ""
            if row.get("accuracy", "") != share:
                faults.add(name, f"{task} has the accuracy {row.get('accuracy', '')}; its lines have {share or 'none'}")

    def against_summary(self, metrics: Mapping[str, Any], name: str, faults: Faults) -> None:
        """``accuracy.overall``, ``accuracy.unparsed`` and those of each task are the shares of the lines."""
        for task, counts in sorted(self.tasks.items()):
            if not counts["total"]:
                continue
            of_all = task == _OVERALL
            tags = {
                "correct": "accuracy.overall" if of_all else f"accuracy.task.{task}",
                "unparsed": "accuracy.unparsed" if of_all else f"accuracy.unparsed.task.{task}",
            }
            for key, tag in tags.items():
                entry, share = metrics.get(tag), counts[key] / counts["total"]
                if entry is None:
                    faults.add(name, f"has no {tag}, which {counts['total']:,} graded answers have")
                elif entry.get("count") != counts["total"] or not close(float(entry.get("avg", -1)), share):
                    what = f"{entry.get('avg')} of {entry.get('count')}"
                    faults.add(name, f"{tag} is {what}; the lines have {share:.6g} of {counts['total']:,}")


def _whole(text: str | None) -> int:
    """A cell as a whole number; -1 where it is none."""
    return int(text) if text is not None and text.isdecimal() else -1


__all__ = ["KIND", "TABLE", "Grades"]
