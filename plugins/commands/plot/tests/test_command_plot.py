"""``aiperf plot``: which runs, which plots, what is written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aiperf import AiperfError, Axis, Figure, Plot, PlotRun, PlotSeries, PluginError, UsageError
from aiperf.registry.registry import Registry
from aiperf.sdk.command import PluginOptions
from aiperf.sdk.descriptor import Descriptor
from aiperf.sdk.plot import Mark
from aiperf.testing import CommandContract, sample_runs
from aiperf_command_plot import PlotCommand
from aiperf_command_plot.options import PlotOptions
from aiperf_plotting.caption import caption_of
from aiperf_results import finished_run, open_runs
from aiperf_results.chosen import ChosenColumns, of_lines


class TestItKeepsTheContract(CommandContract):
    command = PlotCommand


class Latency(Plot):
    title = "Latency"
    columns = ("request_latency",)

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        drawn = [(run.label, y) for run in runs if len(y := run.column("request_latency"))]
        series = [PlotSeries(label, np.arange(1.0, 1.0 + len(y)), y) for label, y in drawn]
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
    rows = [Descriptor("plots", each.__name__.lower(), f"{__name__}:{each.__name__}", "acme-plots", "2.0") for each in plots]
    registry = Registry(rows, kernel_options=())
    registry.load = lambda category, name: {each.__name__.lower(): each for each in plots}[name]  # type: ignore[method-assign]
    made = PlotCommand()
    made.plugin_options = PluginOptions(registry, {}, {})
    return made


def options(**given: Any) -> PlotOptions:
    return PlotOptions(**given)


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
    drawn = Path(line).read_text()
    assert "<svg" in drawn and "latency (ms)" in drawn


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


def broken(made: object) -> type[Plot]:
    """A plot that gives *made* for a figure."""

    class Broken(Plot):
        title = "Broken"

        def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
            return made  # type: ignore[return-value]

    return Broken


def shown(*series: PlotSeries, log: bool = False, marks: tuple[Mark, ...] = ()) -> Figure:
    return Figure("Broken", Axis("time (s)"), Axis("latency (ms)", log=log), series, marks)


ONE, TWO = np.array([1.0]), np.array([1.0, 2.0])


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        ("<svg/>", "draw() gave str, not a Figure"),
        (shown(), "a figure without a series; where there is nothing to show draw() gives None"),
        (shown(PlotSeries("a", ONE, TWO)), "the series 'a' has 1 x and 2 y"),
        (shown(PlotSeries("a", ONE[:0], ONE[:0])), "the series 'a' has no value"),
        (shown(PlotSeries("a", ONE, ONE, kind="blobs")),
            "the series 'a' is of kind 'blobs', not line, points, steps, path, bar, band, error, span, heat, lanes"),
        (shown(PlotSeries("a", [1], ONE)), "x of the series 'a' is no array of numbers"),  # type: ignore[arg-type]
        (shown(PlotSeries("a", ONE, np.array([np.nan]))), "y of the series 'a' isn't finite throughout"),
        (
            shown(PlotSeries("a", ONE, -ONE), log=True),
            "y of the series 'a' isn't positive throughout, and its axis is in decades",
        ),
        (shown(PlotSeries("a", TWO[::-1], TWO)), "x of the series 'a' doesn't ascend, and neighbours are joined"),
        (shown(PlotSeries("a", ONE, ONE), PlotSeries("a", TWO, TWO)), "two series are called 'a'"),
        (shown(PlotSeries("a", ONE, ONE), marks=(Mark("b", "y", 1.0, "p50", "1"),)),
            "the mark 'p50' is of the series 'b', which is not there"),
        (shown(PlotSeries("a", ONE, ONE), marks=(Mark("a", "z", 1.0, "p50", "1"),)),
            "the mark 'p50' is on the axis 'z', not x or y"),
        (shown(PlotSeries("a", ONE, ONE), marks=(Mark("a", "x", np.inf, "p50", "1"),)),
            "the mark 'p50' stands at inf, which is not on its axis"),
        (shown(PlotSeries("a", ONE, ONE), log=True, marks=(Mark("a", "y", 0.0, "p50", "0"),)),
            "the mark 'p50' stands at 0, which is not on its axis"),
    ],
)
def test_a_bad_figure_is_named_and_the_others_are_drawn(
    results: Path, capsys: pytest.CaptureFixture[str], made: object, sentence: str, as_json: bool
) -> None:
    assert command(broken(made), Latency).run(options(as_json=as_json), [str(results)]) == 1
    said = capsys.readouterr()
    assert "latency" in said.out and "roken" not in said.out
    assert said.err == f"error: the plot broken of acme-plots 2.0 failed: ValueError: {sentence}\n"


def test_a_picture_names_its_runs_models_requests_and_failures(results: Path) -> None:
    path = results / "run0" / "profile_export_aiperf.json"
    summary = json.loads(path.read_text())
    summary["input_config"]["models"] = {"items": [{"name": "llama"}, {"name": "$x_y$"}]}
    summary["error_request_count"] = {"unit": "requests", "avg": 3.0}
    summary["measurement"] = {"arrivals": {"aborted_in_flight": 2}}
    path.write_text(json.dumps(summary))
    assert command(Latency).run(options(format="svg"), [str(results)]) == 0
    drawn = (results / "plots" / "latency.svg").read_text()
    assert "run0: models llama, $x_y$, n = 43, 3 failed, 2 cut off; no verdict" in drawn
    assert "run1: model unknown, n = 40, 0 failed; no verdict" in drawn


def test_the_numbers_name_their_runs_too(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(Latency).run(options(as_json=True), [str(results / "run0")]) == 0
    (figure,) = json.loads(capsys.readouterr().out)
    assert figure["runs"] == [{"name": "run0", "models": [], "requests": 40, "failed": 0, "cut_off": 0,
        "verdict": None, "scope": None, "reasons": []}]  # fmt: skip


def test_many_runs_share_a_line_and_their_models_stand_below() -> None:
    summaries = [{"request_count": {"avg": 10.0 * i}, "input_config": {"models": ["m"]}} for i in range(1, 7)]
    runs = [PlotRun(f"c{i}", summary) for i, summary in enumerate(summaries, 1)]
    assert caption_of(runs) == ["6 runs, c1 to c6: n = 10 to 60 each, 0 failed; no verdict", "model m"]
    assert caption_of(runs[:2]) == [
        "c1: n = 10, 0 failed; no verdict", "c2: n = 20, 0 failed; no verdict", "model m",
    ]  # fmt: skip
    other = PlotRun("c9", {"input_config": {"models": ["other"]}})
    assert caption_of([runs[0], other])[0] == "c1: model m, n = 10, 0 failed; no verdict"
    assert caption_of([PlotRun("bare", {})]) == ["bare: model unknown, n unknown, 0 failed; no verdict"]


def judged(label: str, verdict: str, *reasons: str, scope: str | None = None) -> PlotRun:
    return PlotRun(label, {"measurement": {"verdict": verdict, "reasons": list(reasons), "scope": scope}})


def test_the_caption_has_the_verdict_and_of_a_single_run_its_reasons() -> None:
    good, bad = judged("a", "trustworthy"), judged("b", "suspect", "chunks were merged", "late", scope="inter-chunk")
    assert caption_of([good])[0].endswith("; verdict: trustworthy")
    first, *reasons = caption_of([bad])
    assert first.endswith("; verdict: suspect (inter-chunk statistics alone)")
    assert reasons == ["– chunks were merged", "– late"]
    assert [line.rpartition("; ")[2] for line in caption_of([good, bad])] == [
        "verdict: trustworthy", "verdict: suspect (inter-chunk statistics alone)",
    ]  # fmt: skip


def test_many_runs_name_those_with_another_verdict() -> None:
    good = [judged(f"c{n}", "trustworthy") for n in range(5)]
    assert caption_of(good)[0].endswith("; verdict of all: trustworthy")
    assert caption_of([*good, judged("c9", "suspect")])[0].endswith("; verdicts: 5 trustworthy, 1 suspect (c9)")


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


def test_runs_stand_in_the_order_in_which_people_count(results: Path) -> None:
    (results / "run0").rename(results / "c16")
    (results / "run1").rename(results / "c4")
    assert [run.label for run in open_runs([results])] == ["c4", "c16"]
    assert [run.label for run in open_runs([results / "c16", results / "c4"])] == ["c16", "c4"], "as they were given"


def test_a_statistic_that_is_no_number_is_absent() -> None:
    run = PlotRun("a", {"latency": {"avg": float("inf"), "p50": float("nan"), "p99": None, "min": True, "max": 0}})
    assert [run.number("latency", each) for each in ("avg", "p50", "p99", "min", "std", "max")] == [None] * 5 + [0.0]


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


def test_a_request_without_the_number_is_absent_and_stays_in_its_place(results: Path) -> None:
    path = results / "run0" / "profile_export.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for at in (0, 3, 39):
        del lines[at]["metrics"]["request_latency"]
    lines[5]["metrics"]["late"] = {"value": 7, "unit": "ms"}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run,) = open_runs([results / "run0"])
    assert np.flatnonzero(np.isnan(run.column("request_latency"))).tolist() == [0, 3, 39]
    assert np.flatnonzero(np.isfinite(run.column("late"))).tolist() == [5]
    assert np.isnan(run.column("nobody_has_it")).tolist() == [True] * 40


@pytest.mark.parametrize("line", ['{"metadata": {"request_start_', "[]", '{"metadata": null, "metrics": {}}', '{"metrics": 3}'])
def test_a_line_that_is_cut_or_no_request_is_named(results: Path, line: str) -> None:
    path = results / "run0" / "profile_export.jsonl"
    path.write_text(path.read_text() + line)
    (run,) = open_runs([results / "run0"])
    with pytest.raises(AiperfError, match=r"profile_export.jsonl:41 can't be read"):
        run.column("request_latency")


@pytest.mark.parametrize(("words", "place"), [((), "artifacts"), (("--paths", "elsewhere"), "elsewhere")])
def test_a_path_without_a_flag_may_be_left_out(tmp_path: Path, words: tuple[str, ...], place: str) -> None:
    program = [sys.executable, "-P", "-m", "aiperf", "plot", *words]
    said = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert said.stderr.startswith((f"error: {place} is not there", "error: no plot is installed")), said.stderr


def test_without_the_extra_a_sentence_says_so_and_numbers_are_printed(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aiperf_painting", None)
    with pytest.raises(AiperfError, match="PNG and SVG need the extra plots") as caught:
        command(Latency).run(options(), [str(results)])
    assert caught.value.hints[0] == "pip install 'aiperf-suite[plots]'"
    assert command(Latency).run(options(as_json=True), [str(results)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["description"].startswith("Latency. x: request.")


def test_the_command_imports_neither_matplotlib_nor_what_draws() -> None:
    script = "import sys, aiperf_command_plot; print({'matplotlib', 'aiperf_painting'} & sys.modules.keys())"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "set()"


def test_a_broken_run_is_named_and_the_good_ones_are_drawn(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (results / "run0" / "profile_export.jsonl").write_text("{")
    other = results / "run2"
    other.mkdir()
    (other / "profile_export_aiperf.json").write_text("[]")
    assert command(Latency).run(options(as_json=True), [str(results)]) == 1
    said = capsys.readouterr()
    assert [series["name"] for series in json.loads(said.out)[0]["series"]] == ["run1"]
    assert re.search(r"error: the run run2 is left out: .*/run2/profile_export_aiperf.json is no summary", said.err)
    assert re.search(r"error: the run run0 is left out: .*/run0/profile_export.jsonl:1 can't be read", said.err)


def test_only_the_columns_that_plots_declare_are_read(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def watched(path: Path, names: Sequence[str]) -> ChosenColumns:
        asked.append(sorted(names))
        return of_lines(path, names)

    monkeypatch.setattr(finished_run, "of_lines", watched)
    assert command(Latency, Two).run(options(as_json=True), [str(results)]) == 0
    assert asked == [["request_latency"]] * 2, "once for each run"


def test_a_list_says_what_was_drawn(results: Path) -> None:
    assert command(Latency).run(options(), [str(results / "run0")]) == 0
    lines = (results / "run0" / "plots" / "summary.txt").read_text().splitlines()
    assert lines[0].startswith("run0: ") and lines[2].startswith("latency.png: Latency. x: request.")


@pytest.mark.parametrize("size", ["wide", "1600", "0x100", "99999x100", "1600x", "-5x5"])
def test_a_size_that_is_none_is_refused(results: Path, size: str) -> None:
    with pytest.raises(UsageError, match="--size: "):
        command(Latency).run(options(size=size), [str(results)])


def test_pictures_are_sent_where_the_run_is(results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    sent: list[Any] = []

    def upload_pictures(paths: Sequence[Path], *place: Any) -> list[str]:
        sent.append((list(paths), place))
        return ["b: no"]

    place_of = lambda folder, uri, run: (f"{folder.name} {uri}", run)  # noqa: E731
    module = SimpleNamespace(place_of=place_of, upload_pictures=upload_pictures)
    monkeypatch.setattr("aiperf_command_plot.sender", lambda: module)
    folder = results / "run0"
    assert command(Latency).run(options(mlflow_upload=True, mlflow_run_id="f"), [str(folder)]) == 1
    assert sent == [([folder / "plots" / "latency.png"], ("run0 None", "f"))]
    assert capsys.readouterr().err == "error: b: no\n"
    with pytest.raises(UsageError, match="--mlflow-upload takes one directory"):
        command(Latency).run(options(mlflow_upload=True), [str(folder), str(results / "run1")])


def test_an_upload_without_its_package_names_the_extra(results: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "aiperf_exporter_mlflow", None)
    monkeypatch.setitem(sys.modules, "aiperf_exporter_mlflow.pictures", None)
    with pytest.raises(AiperfError, match="--mlflow-upload needs the extra mlflow"):
        command(Latency).run(options(mlflow_upload=True), [str(results / "run0")])
    assert not (results / "run0" / "plots").exists()


def test_settings_of_no_upload_are_refused() -> None:
    typed = {"mlflow_run_id": "--mlflow-run-id"}
    (said,) = PlotOptions(mlflow_run_id="f").problems(typed)
    assert said.startswith("--mlflow-run-id needs --mlflow-upload")
    (said,) = PlotOptions(mlflow_upload=True, as_json=True).problems(typed)
    assert said.startswith("--json and --mlflow-upload exclude each other")
    assert PlotOptions(mlflow_upload=True, mlflow_run_id="f").problems(typed) == []
