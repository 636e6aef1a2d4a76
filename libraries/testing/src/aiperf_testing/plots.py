"""The contract of plots: a deterministic, valid figure for any runs, from the columns that the plot declares."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from aiperf.results import FinishedRun, Table, open_run
from aiperf.sdk.figures import described, reduced
from aiperf.sdk.plot import Figure, Plot, PlotRun, checked
from msgspec.structs import replace

from aiperf_testing.manifests import check_row

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats

_REQUESTS = 40
_FAILED = 4
"""Requests of a run with everything, behind the good ones."""
_BEGIN_NS = 1_700_000_000_000_000_000


class WatchedRun(FinishedRun):
    """A run that remembers in *asked* which columns of its requests were read."""

    def __init__(self, run: FinishedRun) -> None:
        super().__init__(run.directory, run.label)
        self.asked: set[str] = set()

    def column(self, name: str) -> Floats:
        self.asked.add(name)
        return super().column(name)

    def requests(self, names: Collection[str] | None = None, *, failed: bool = False, lists: bool = False) -> Table:
        self.asked |= {"all columns"} if names is None else set(names)
        return super().requests(names, failed=failed, lists=lists)


class PlotContract:
    """Subclass with a plot's class::

        class TestMineKeepsTheContract(PlotContract):
            plot = Mine
    """

    plot: ClassVar[type[Plot]]
    options: ClassVar[Any] = None

    @pytest.fixture
    def some(self, tmp_path: Path) -> Sequence[FinishedRun]:
        """The runs of the tests: as many as the plot takes, and one more where it takes that."""
        plot = type(self).plot
        count = plot.runs + 1
        return sample_runs(tmp_path, count if plot.most_runs is None else min(count, plot.most_runs), everything=True)

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
        bare = [replace(figure, series=()) for figure in (first, second)]
        assert bare[0] == bare[1], "the same runs gave other titles, axes, marks or lines: a figure depends on the runs alone"
        for one, other in zip(first.series, second.series, strict=True):
            columns = zip(one.columns(), other.columns(), strict=True)
            assert one.name == other.name and all(np.array_equal(mine, theirs) for (_, mine), (_, theirs) in columns), (
                f"the same runs gave another series {one.name!r}: a figure depends on the runs alone"
            )

    def test_it_reads_the_columns_that_it_declares(self, some: Sequence[FinishedRun]) -> None:
        watched, plot = [WatchedRun(run) for run in some], type(self).plot(type(self).options)
        plot.draw(watched)
        undeclared = {name for run in watched for name in run.asked} - set(plot.columns)
        assert not undeclared, f"the plot reads {', '.join(sorted(undeclared))}, and does not declare it: name it in columns"

    def test_a_figure_can_be_told_in_words_and_reduced(self, some: Sequence[PlotRun]) -> None:
        drawn = self._drawn(some)
        assert drawn is not None, "the plot draws nothing of the runs of this contract"
        small, title = reduced(drawn, 8), drawn.title.rstrip(".")
        assert checked(small) is small and title in described(small), f"the words of the figure lack its title {title!r}"

    def test_of_runs_that_have_nothing_there_is_no_figure(self) -> None:
        assert self._drawn([PlotRun(f"run{i}", {}) for i in range(type(self).plot.runs)]) is None, (
            "runs without any data gave a figure: give None"
        )


def sample_runs(folder: Path, count: int, *, everything: bool = False) -> list[FinishedRun]:
    """Runs of one server under more and more load, with every number that an ordinary streaming run has.

    everything: failed requests, due times, a ledger of arrivals, slices, and series of a GPU and a server, too.
    """
    return [_run(folder / f"run{i}", 2**i, everything) for i in range(count)]


def _run(folder: Path, concurrency: int, everything: bool) -> FinishedRun:
    folder.mkdir()
    lines = [_line(n, concurrency, due=everything) for n in range(_REQUESTS)]
    if everything:
        lines += [_line(n, concurrency, due=True, failed=True) for n in range(_REQUESTS, _REQUESTS + _FAILED)]
        _write_more(folder, lines)
    (folder / "profile_export.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "profile_export_aiperf.json").write_text(json.dumps(_summary(concurrency, everything)))
    return open_run(folder)


def _line(n: int, concurrency: int, *, due: bool, failed: bool = False) -> dict[str, Any]:
    start_ns = _BEGIN_NS + n // concurrency * 400_000_000 + n % concurrency * 1_000_000
    first, latency = 20.0 + n % 7 + concurrency, 300.0 + n % 11 + concurrency
    metrics = {"time_to_first_token": first, "request_latency": latency, "inter_token_latency": (latency - first) / 31}
    values = {tag: {"value": value, "unit": "ms"} for tag, value in metrics.items()}
    lengths = {"output_sequence_length": 32, "input_sequence_length": 32 + n % 5}
    values |= {tag: {"value": length, "unit": "tokens"} for tag, length in lengths.items()}
    if due:
        values["effective_latency"] = {"value": latency + n % 3, "unit": "ms"}
    about = {"request_start_ns": start_ns, "request_end_ns": start_ns + int(latency * 1e6), "benchmark_phase": "profiling"}
    about |= {"due_ns": start_ns - n % 3 * 1_000_000} if due else {}
    error = {"code": 500 if n % 2 else None, "type": "ServerError" if n % 2 else "Timeout", "message": "no"} if failed else None
    return {"metadata": about, "metrics": {} if failed else values, "error": error}


def _write_more(folder: Path, lines: Sequence[dict[str, Any]]) -> None:
    """The ledger of arrivals, slices of a second, and samples of a GPU and a server."""
    instants = [(line["metadata"], "error" if line["error"] else "completed") for line in lines]
    ledger = [
        {"phase": "profiling", "n": n, "outcome": outcome, "due_ns": about["due_ns"], "started_ns": about["request_start_ns"],
         "ended_ns": about["request_end_ns"]}
        for n, (about, outcome) in enumerate(instants)
    ]  # fmt: skip
    ledger.append({"phase": "profiling", "n": len(ledger), "outcome": "never_sent", "due_ns": _BEGIN_NS + 2_000_000_000})
    (folder / "profile_export_arrivals.jsonl").write_text("".join(json.dumps(line) + "\n" for line in ledger))
    slices = [
        {"start_ns": _BEGIN_NS + number * 10**9, "end_ns": _BEGIN_NS + (number + 1) * 10**9}
        | {tag: {"unit": "ms", "avg": 20.0 + number, "std": 1.0} for tag in _LATENCIES}
        | {tag: {"unit": unit, "avg": 5.0 + number} for tag, unit in _RATES.items()}
        for number in range(4)
    ]
    (folder / "profile_export_aiperf_timeslices.json").write_text(json.dumps({"timeslices": slices}))
    gpu, server = [], []
    for number in range(5):
        at_ns = _BEGIN_NS + number * 500_000_000
        samples = {"gpu_utilization": 50.0 + number, "gpu_power_usage": 300.0 + number}
        gpu.append({"timestamp_ns": at_ns, "dcgm_url": "http://127.0.0.1:9400/metrics", "gpu_index": 0, "gpu_uuid": "GPU-1",
                    "telemetry_data": samples})  # fmt: skip
        points = {"vllm:num_requests_running": [{"labels": {"engine": "0"}, "value": float(number)}]}
        server.append({"timestamp_ns": at_ns, "endpoint_url": "http://127.0.0.1:8000/metrics", "metrics": points})
    for name, rows in (("gpu_telemetry_export.jsonl", gpu), ("server_metrics_export.jsonl", server)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


_LATENCIES = ("time_to_first_token", "request_latency", "inter_token_latency")
_RATES = {"request_throughput": "requests/sec", "output_token_throughput": "tokens/sec"}


def _summary(concurrency: int, everything: bool) -> dict[str, Any]:
    spread = {"p50": 310.0, "p90": 311.0, "p99": 312.0, "min": 300.0, "max": 330.0, "std": 3.0, "count": _REQUESTS}
    summary: dict[str, Any] = {tag: {"unit": "ms", "avg": 20.0 * concurrency, **spread} for tag in _LATENCIES}
    summary |= {
        "schema_version": "1.4",
        "request_count": {"unit": "requests", "avg": float(_REQUESTS)},
        "request_throughput": {"unit": "requests/sec", "avg": 2.5 * concurrency},
        "effective_concurrency": {"unit": "requests", "avg": 0.9 * concurrency, **spread},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 80.0 * concurrency},
        "output_token_throughput_per_user": {"unit": "tokens/sec/user", "avg": 90.0 - concurrency, **spread},
        "input_config": {"phases": [{"kind": "profiling", "concurrency": concurrency}]},
    }
    if everything:
        summary["error_request_count"] = {"unit": "requests", "avg": float(_FAILED)}
        summary["goodput"] = {"unit": "requests/sec", "avg": 2.0 * concurrency}
        summary["measurement"] = {"arrivals": {"planned": _REQUESTS + _FAILED + 1, "never_sent": 1}}
    return summary
