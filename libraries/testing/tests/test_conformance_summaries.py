"""The contract of summary exporters: it lets good ones pass, and catches bad ones."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.outcomes import Failed
from aiperf import Artifact, Summary, SummaryExporter, Target, atomic
from aiperf.testing import SummaryExporterContract, sample_summary


class Tags(SummaryExporter):
    files = {"tags.txt": "{prefix_}tags.txt"}

    def export(self, summary: Summary) -> Sequence[Artifact]:
        path = self.target.file("tags.txt")
        with atomic(path) as draft:
            draft.write_text("\n".join(sorted(summary.results)))
        return [Artifact("Tags", path)]


class Silent(Tags):
    """Doesn't say what it wrote."""

    def export(self, summary: Summary) -> Sequence[Artifact]:
        super().export(summary)
        return []


class Counting(Tags):
    """Its file says when it was made."""

    files = {"made.txt": "{prefix_}made.txt"}
    made = 0

    def __init__(self, target: Target, options: Any = None) -> None:
        super().__init__(target, options)
        type(self).made += 1

    def export(self, summary: Summary) -> Sequence[Artifact]:
        path = self.target.file("made.txt")
        with atomic(path) as draft:
            draft.write_text(str(self.made))
        return [Artifact("Made", path)]


class Undeclared(Tags):
    """Declares another file."""

    files = {"table.txt": "{prefix_}table.txt"}


class Needy(Tags):
    """Takes for granted that a run has results."""

    def export(self, summary: Summary) -> Sequence[Artifact]:
        return super().export(summary) if summary.results["request_latency"] else []


class Hiding(Tags):
    """Keeps to itself that it couldn't write."""

    def export(self, summary: Summary) -> Sequence[Artifact]:
        try:
            return super().export(summary)
        except OSError:
            return []


@pytest.mark.parametrize(
    ("exporter", "caught"),
    [
        (Tags, set()),
        (Undeclared, {"test_it_declares_every_file_it_writes"}),
        (Silent, {"test_it_names_every_file_it_writes"}),
        (Counting, {"test_the_same_summary_gives_the_same_files"}),
        (Needy, {"test_a_run_without_results_is_survived"}),
        (
            Hiding,
            {
                "test_where_nothing_can_be_written_it_says_so_and_leaves_nothing",
                "test_a_full_disk_is_said_and_no_half_file_is_left",
            },
        ),
    ],
)
def test_each_fault_is_caught_by_the_test_for_it(exporter: type[SummaryExporter], caught: set[str], tmp_path: Path) -> None:
    contract = type("Changed", (SummaryExporterContract,), {"exporter": exporter})()
    failed = set()
    for name, test in inspect.getmembers(contract, callable):
        if not name.startswith("test_") or name == "test_its_manifest_says_what_it_is":
            continue
        (tmp_path / name).mkdir()
        try:
            test(tmp_path / name)
        except (Exception, Failed):  # noqa: BLE001  # that it failed is the finding
            failed.add(name)
    assert failed == caught


def test_a_sample_has_what_it_is_given() -> None:
    assert set(sample_summary().results) == {"request_latency", "request_throughput"}
    assert sample_summary().results["request_latency"].distribution
    assert not sample_summary().results["request_throughput"].distribution
