"""``aiperf plot``: which runs, which plots, what is written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aiperf import AiperfError, Axis, Figure, Plot, PlotRun, PluginError, Series, UsageError
from aiperf.command import Others
from aiperf.descriptor import Descriptor
from aiperf.plot import open_runs
from aiperf.registry import Registry
from aiperf.testing import CommandContract, sample_runs
from aiperf_command_plot import PlotCommand
from aiperf_command_plot.pictures import picture


class TestItKeepsTheContract(CommandContract):
    command = PlotCommand


class Latency(Plot):
    title = "Latency"

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        series = [Series(run.label, np.arange(1.0, 1.0 + len(y)), y) for run in runs if len(y := run.column("request_latency"))]
        return Figure(self.title, Axis("request"), Axis("latency (ms)", log=True), tuple(series)) if series else None


class Two(Plot):
    title, runs = "Two", 2

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        return Latency().draw(runs)


class Failing(Plot):
    title = "Failing"

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        raise ValueError("no ink")


def command(*plots: type[Plot]) -> PlotCommand:
    rows = [
        Descriptor("plots", each.__name__.lower(), f"{__name__}:{each.__name__}", "acme-plots", "2.0") for each in plots
    ]
    registry = Registry(rows, kernel_options=())
    registry.load = lambda category, name: {each.__name__.lower(): each for each in plots}[name]  # type: ignore[method-assign]
    made = PlotCommand()
    made.others = Others(registry, {}, {})
    return made


def options(**given: Any) -> SimpleNamespace:
    usual = {"paths": [], "output": None, "only": [], "format": "png", "theme": "light", "as_json": False}
    return SimpleNamespace(**{**usual, **given})


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A directory with two runs in directories of their own."""
    folder = tmp_path / "artifacts"
    folder.mkdir()
    for run in sample_runs(folder, 2):
        (folder / run.label / "profile_export_aiperf.json").write_text(json.dumps(run.summary))
    return folder


def test_every_plot_is_a_file_of_its_name(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(Latency, Two).run(options(), [str(results)]) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert written == [results / "plots" / "latency.png", results / "plots" / "two.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


def test_one_run_leaves_out_what_takes_two(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(Latency, Two).run(options(format="svg"), [str(results / "run0")]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert Path(line) == results / "run0" / "plots" / "latency.svg"
    assert "latency (ms)" in Path(line).read_text() or "<svg" in Path(line).read_text()


def test_the_same_figure_is_the_same_file(results: Path) -> None:
    for name in ("first", "second"):
        command(Latency).run(options(format="svg", output=results / name), [str(results)])
    first, second = ((results / name / "latency.svg").read_bytes() for name in ("first", "second"))
    assert first == second


def test_numbers_go_to_standard_output_and_no_file_is_written(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(Latency).run(options(as_json=True), [str(results)]) == 0
    (figure,) = json.loads(capsys.readouterr().out)
    assert figure["plot"] == "latency" and [each["name"] for each in figure["series"]] == ["run0", "run1"]
    assert figure["series"][0]["y"][:2] == [301.0, 302.0]
    assert not (results / "plots").exists()


def test_a_failing_plot_is_named_and_the_others_are_drawn(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(Failing, Latency).run(options(), [str(results)]) == 1
    said = capsys.readouterr()
    assert said.out.strip().endswith("latency.png")
    assert said.err == "error: the plot failing of acme-plots 2.0 failed: ValueError: no ink\n"


def test_asked_for_by_name_a_plot_says_what_it_lacks(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(Latency, Two).run(options(only=["two"]), [str(results / "run0")]) == 1
    assert "the plot two needs 2 runs; one run given" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("only", "path", "error", "sentence"),
    [
        (["latencie"], "", PluginError, "latencie"),
        ([], "nowhere", AiperfError, "is not there; results are a directory"),
        ([], "run0/profile_export.jsonl", AiperfError, "is a file; results are a directory"),
        ([], "empty", AiperfError, "holds no results: neither it nor a directory below has a profile_export_aiperf.json"),
    ],
)
def test_bad_input_gets_a_sentence(results: Path, only: list[str], path: str, error: type[Exception], sentence: str) -> None:
    (results / "empty").mkdir()
    with pytest.raises(error, match=sentence):
        command(Latency).run(options(only=only), [str(results / path)])


def test_without_any_plot_it_says_where_to_get_one(results: Path) -> None:
    with pytest.raises(UsageError, match="no plot is installed"):
        command().run(options(), [str(results)])


def test_runs_of_one_name_are_told_apart(results: Path) -> None:
    other = results.parent / "others" / "run0"
    other.parent.mkdir()
    (results / "run0").rename(other)
    (results / "run1").rename(results / "run0")
    assert [run.label for run in open_runs([results / "run0", other])] == ["artifacts/run0", "others/run0"]


def test_results_under_a_prefix_are_found(results: Path) -> None:
    run = results / "run0"
    (run / "profile_export_aiperf.json").rename(run / "mine.json")
    (run / "profile_export.jsonl").rename(run / "mine.jsonl")
    (run / "mine.csv").touch()
    (found,) = open_runs([run])
    assert found.number("request_throughput") == 2.5
    assert len(found.column("request_latency")) == 40


def test_failed_requests_and_those_of_the_warmup_are_in_no_column(results: Path) -> None:
    path = results / "run0" / "profile_export.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["error"] = {"code": 500}
    lines[1]["metadata"]["benchmark_phase"] = "warmup"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run,) = open_runs([results / "run0"])
    assert len(run.column("request_latency")) == 38


def test_a_line_that_is_cut_is_named(results: Path) -> None:
    path = results / "run0" / "profile_export.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    (run,) = open_runs([results / "run0"])
    with pytest.raises(AiperfError, match=r"profile_export.jsonl:40 can't be read"):
        run.column("request_latency")


def test_a_place_that_can_not_be_written_is_said(results: Path) -> None:
    figure = Latency().draw(open_runs([results]))
    assert figure is not None
    (results / "taken").write_text("")
    with pytest.raises(AiperfError, match="can't be written"):
        picture(figure, results / "taken" / "latency.png", theme="dark")
