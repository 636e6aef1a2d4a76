"""Tables of plugins on the terminal."""

from __future__ import annotations

import pytest
from aiperf.sdk.table import SummaryTable, TableColumn, WhenShown
from aiperf_exporter_console.metrics import number
from aiperf_exporter_console.report import report
from aiperf_exporter_console.table import BOX, Look, cells_of
from aiperf_exporter_console.tables import shown
from aiperf_testing import sample_summary
from msgspec.structs import replace

QUEUES = SummaryTable(
    "queues", "Queues",
    (TableColumn("engine"), TableColumn("target"), TableColumn("waiting", "requests"), TableColumn("took_longest", "ms")),
    (("vllm", "http://10.0.0.1:8000/metrics", 12, 1234.5), ("sglang\x1b[31m", "http://10.0.0.2:8000/metrics", None, 0.25)),
    notes=("shared server",),
)  # fmt: skip


def test_units_stand_in_the_header_and_absent_cells_are_empty() -> None:
    lines = list(shown(QUEUES, Look(BOX), 100))
    assert "took longest (ms)" in lines[2] and "waiting (requests)" in lines[2]
    assert "│ vllm" in lines[4] and "12 │" in lines[4] and "1,234 │" in lines[4]
    assert "0.25 │" in lines[5] and "\x1b" not in lines[5]
    assert lines[-1] == "shared server"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_it_keeps_to_the_width_and_says_what_is_left_out(width: int) -> None:
    lines = list(shown(QUEUES, Look(BOX), width))
    assert max(map(cells_of, lines)) <= width
    left_out = "longest" not in " ".join(lines[1:5])
    assert left_out == ("Too narrow for" in " ".join(lines[-2:])) == (width == 40)


def test_details_need_the_word() -> None:
    summary = replace(sample_summary(), tables=(replace(QUEUES, shown=WhenShown.VERBOSE),))
    assert "Queues" not in report(summary, Look(BOX), 80, verbose=False)
    assert "Queues" in report(summary, Look(BOX), 80, verbose=True)
    never = replace(sample_summary(), tables=(replace(QUEUES, shown=WhenShown.NEVER),))
    assert "Queues" not in report(never, Look(BOX), 80, verbose=True)


def test_a_table_without_rows_shows_its_notes() -> None:
    assert list(shown(replace(QUEUES, rows=()), Look(BOX), 80)) == ["Queues", "shared server"]


def test_a_text_that_all_rows_share_stands_below() -> None:
    rows = tuple((name, "http://10.0.0.1:8000/metrics", count, 1.5) for name, count in (("vllm", 12), ("sglang", 3)))
    lines = list(shown(replace(QUEUES, rows=rows), Look(BOX), 100))
    assert "target" not in lines[2] and "engine" in lines[2] and "waiting (requests)" in lines[2]
    assert lines[-2:] == ["All rows: target http://10.0.0.1:8000/metrics.", "shared server"]
    alone = list(shown(replace(QUEUES, rows=rows[:1]), Look(BOX), 100))
    assert "target" in alone[2] and alone[-1] == "shared server"


def test_a_table_without_room_is_divided_by_a_text() -> None:
    targets = "http://10.0.0.1:8000/metrics", "http://10.0.0.2:8000/metrics"
    rows = tuple(("vllm", target, count, 1.5) for target in targets for count in range(3))
    one = replace(QUEUES, rows=rows)
    below = [f"All rows: target {target}." for target in targets]
    assert [line for line in shown(one, Look(BOX), 60) if line.startswith("All rows")] == below
    assert [*shown(one, Look(BOX), 60)][-1] == "shared server"
    lines = [*shown(one, Look(BOX), 60)]
    assert lines.count("shared server") == 1 and max(map(cells_of, lines)) <= 60
    assert not any(line.startswith("All rows") for line in shown(one, Look(BOX), 100))
    for mixed in (replace(one, rows=rows[::2] + rows[1::2]), replace(one, rows=(*rows, ("sglang", "http://h", 1, 1.0)))):
        assert sum("Queues" in line for line in shown(mixed, Look(BOX), 60)) == 1


@pytest.mark.parametrize(("value", "decimals", "read"), [
    (0.0, 2, "0.00"), (0.00041, 2, "0.00041"), (-0.004, 2, "-0.004"), (0.005, 2, "0.01"), (1234.5, 2, "1,234.50"),
    (0.0004, 3, "0.0004"), (0.2, 0, "0"), (None, 2, "N/A"),
])  # fmt: skip
def test_what_is_not_zero_does_not_read_so(value: float | None, decimals: int, read: str) -> None:
    assert number(value, decimals) == read
