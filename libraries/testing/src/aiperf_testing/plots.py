"""The contract of plots: a deterministic, valid figure for any runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from aiperf.results import open_run
from aiperf.sdk.plot import Figure, Plot, PlotRun, checked

from aiperf_testing.manifests import check_row

_REQUESTS = 40


class PlotContract:
    """Subclass with a plot's class::

        class TestMineKeepsTheContract(PlotContract):
            plot = Mine
    """

    plot: ClassVar[type[Plot]]
    options: ClassVar[Any] = None

    @pytest.fixture
    def some(self, tmp_path: Path) -> Sequence[PlotRun]:
        """The runs of the tests: as many as the plot takes, and one more."""
        return sample_runs(tmp_path, type(self).plot.runs + 1)

    def _drawn(self, runs: Sequence[PlotRun]) -> Figure | None:
        return type(self).plot(type(self).options).draw(runs)

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("plots", self.plot)
        assert self.plot.title.strip() and self.plot.runs >= 1, (
            "the plot has no title, or runs less than 1: set both in the class"
        )

    def test_a_figure_can_be_drawn(self, some: Sequence[PlotRun]) -> None:
        drawn = self._drawn(some)
        assert drawn is not None, "of runs that have everything it made nothing"
        figure = checked(drawn)
        assert figure.title.strip() and figure.x.label.strip() and figure.y.label.strip(), (
            "the figure, or one of its axes, has no title: label all three"
        )
        assert all(one.name.strip() for one in figure.series), "a series has no name: the legend shows it"
        assert all(mark.label.strip() and mark.shown.strip() for mark in figure.marks), (
            "a mark has no label, or no value that is shown: the picture shows both"
        )

    def test_as_few_runs_as_it_takes_are_enough(self, some: Sequence[PlotRun]) -> None:
        assert self._drawn(some[: type(self).plot.runs]) is not None, (
            f"{type(self).plot.runs} runs gave no figure: set runs to the fewest that are enough"
        )

    def test_the_same_runs_give_the_same_figure(self, some: Sequence[PlotRun]) -> None:
        first, second = self._drawn(some), self._drawn(some)
        assert first is not None and second is not None, "the same runs gave no figure: a figure depends on the runs alone"
        assert (first.title, first.x, first.y, first.marks) == (second.title, second.x, second.y, second.marks), (
            "the same runs gave other titles, axes or marks: a figure depends on the runs alone"
        )
        for one, other in zip(first.series, second.series, strict=True):
            assert one.name == other.name and np.array_equal(one.x, other.x) and np.array_equal(one.y, other.y), (
                f"the same runs gave another series {one.name!r}: a figure depends on the runs alone"
            )

    def test_of_runs_that_have_nothing_there_is_no_figure(self) -> None:
        assert self._drawn([PlotRun(f"run{i}", {}) for i in range(type(self).plot.runs)]) is None, (
            "runs without any data gave a figure: give None"
        )


def sample_runs(folder: Path, count: int) -> list[PlotRun]:
    """Runs of one server under more and more load, with every number that an ordinary streaming run has."""
    return [_run(folder / f"run{i}", 2**i) for i in range(count)]


def _run(folder: Path, concurrency: int) -> PlotRun:
    folder.mkdir()
    lines = []
    for n in range(_REQUESTS):
        start_ns = 1_700_000_000_000_000_000 + n // concurrency * 400_000_000 + n % concurrency * 1_000_000
        first, latency = 20.0 + n % 7 + concurrency, 300.0 + n % 11 + concurrency
        metrics = {"time_to_first_token": first, "request_latency": latency, "inter_token_latency": (latency - first) / 31}
        values = {tag: {"value": value, "unit": "ms"} for tag, value in metrics.items()}
        values |= {tag: {"value": 32, "unit": "tokens"} for tag in ("output_sequence_length", "input_sequence_length")}
        about = {"request_start_ns": start_ns, "request_end_ns": start_ns + int(latency * 1e6), "benchmark_phase": "profiling"}
        lines.append(json.dumps({"metadata": about, "metrics": values, "error": None}))
    path = folder / "profile_export.jsonl"
    path.write_text("\n".join(lines) + "\n")
    spread = {"p50": 310.0, "p90": 311.0, "p99": 312.0, "min": 300.0, "max": 330.0, "std": 3.0, "count": _REQUESTS}
    summary: dict[str, Any] = {
        tag: {"unit": "ms", "avg": 20.0 * concurrency, **spread}
        for tag in ("time_to_first_token", "request_latency", "inter_token_latency")
    }
    summary |= {
        "schema_version": "1.4",
        "request_count": {"unit": "requests", "avg": float(_REQUESTS)},
        "request_throughput": {"unit": "requests/sec", "avg": 2.5 * concurrency},
        "effective_concurrency": {"unit": "requests", "avg": 0.9 * concurrency, **spread},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 80.0 * concurrency},
        "output_token_throughput_per_user": {"unit": "tokens/sec/user", "avg": 90.0 - concurrency, **spread},
        "input_config": {"phases": [{"kind": "profiling", "concurrency": concurrency}]},
    }
    (folder / "profile_export_aiperf.json").write_text(json.dumps(summary))
    return open_run(folder)
