"""Grades are counted again from their lines."""

from typing import Any

import pytest
from aiperf_command_validate.faults import Faults
from aiperf_command_validate.grades import Grades

HEAD = ["task", "correct", "total", "unparsed", "accuracy", "failed", "ungraded", "ci_low", "ci_high"]
TABLE = [
    HEAD, ["products", "0", "1", "0", "0.0000", "1", "0", "", ""], ["sums", "1", "2", "1", "0.5000", "0", "0", "", ""],
    ["OVERALL", "1", "3", "1", "0.3333", "1", "0", "", ""],
]  # fmt: skip
METRICS = {
    "accuracy.overall": {"avg": 1 / 3, "count": 3}, "accuracy.unparsed": {"avg": 1 / 3, "count": 3},
    "accuracy.task.sums": {"avg": 0.5, "count": 2}, "accuracy.unparsed.task.sums": {"avg": 0.5, "count": 2},
    "accuracy.task.products": {"avg": 0.0, "count": 1}, "accuracy.unparsed.task.products": {"avg": 0.0, "count": 1},
}  # fmt: skip


def line(number: int, task: str, passed: bool | None, *, unparsed: bool | None = False) -> tuple[int, dict[str, Any]]:
    return number, {"task": task, "passed": passed, "unparsed": unparsed, "x_request_id": str(number)}


LINES = [
    line(1, "sums", True), line(2, "sums", False, unparsed=True), line(3, "products", False),
    line(4, "products", None, unparsed=None),
]  # fmt: skip


def counted(faults: Faults, lines: list[tuple[int, dict[str, Any]]] = LINES) -> Grades:
    grades = Grades()
    grades.read(iter(lines), "lines", faults)
    return grades


def said(faults: Faults) -> list[str]:
    return [str(fault) for fault in faults.all()]


def test_a_table_and_shares_that_are_those_of_the_lines_have_no_fault() -> None:
    faults = Faults()
    grades = counted(faults)
    grades.against_table(TABLE, "table", faults)
    grades.against_summary(METRICS, "summary", faults)
    assert said(faults) == []


@pytest.mark.parametrize(("row", "column", "cell", "fault"), [
    (2, 1, "2", "table: sums has 2 correct; its lines have 1"),
    (3, 2, "4", "table: OVERALL has 4 total; its lines have 3"),
    (1, 5, "0", "table: products has 0 failed and ungraded; its lines have 1"),
    (2, 4, "0.6000", "table: sums has the accuracy 0.6000; its lines have 0.5000"),
    (2, 0, "sum", "table: has a row for sum, of which there are no lines"),
])
def test_a_changed_cell_is_a_fault(row: int, column: int, cell: str, fault: str) -> None:
    table, faults = [list(each) for each in TABLE], Faults()
    table[row][column] = cell
    counted(faults).against_table(table, "table", faults)
    assert fault in said(faults)


@pytest.mark.parametrize("tag", sorted(METRICS))
def test_a_changed_or_missing_share_is_a_fault(tag: str) -> None:
    faults = Faults()
    counted(faults).against_summary({**METRICS, tag: {"avg": 0.9, "count": 3}}, "summary", faults)
    counted(faults).against_summary({name: entry for name, entry in METRICS.items() if name != tag}, "summary", faults)
    assert len(said(faults)) == 2 and all(tag in each for each in said(faults))


def test_half_a_grade_and_a_request_twice_are_faults() -> None:
    faults = Faults()
    counted(faults, [line(1, "sums", True, unparsed=None), line(1, "sums", True), (2, {"x_request_id": "1", "task": "sums",
        "passed": True, "unparsed": False})])  # fmt: skip
    assert said(faults) == [
        "lines:1: has one of passed and unparsed without the other", "lines:2: is of the request of line 1",
    ]  # fmt: skip
