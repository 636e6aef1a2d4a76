"""``aiperf plot --config``: pictures that a file declares, and its mistakes with their lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import AiperfError, UsageError
from aiperf.registry.registry import Registry
from aiperf.sdk.command import PluginOptions
from aiperf.testing import sample_runs
from aiperf_command_plot import PlotCommand
from aiperf_command_plot.configured import read
from aiperf_command_plot.options import PlotOptions

for needed in ("aiperf_plot_basics", "aiperf_plot_presets", "aiperf_painting"):
    pytest.importorskip(needed, reason="needs packages of plots, and of painting")

WHOLE = """
visualization:
  multi_run_defaults: [tail, ttft_vs_throughput]
  single_run_defaults: [waits, power]
  multi_run_plots:
    tail:
      type: scatter_line
      x: request_throughput
      y: {metric: request_latency, stat: p99, source: aggregated}
      labels: [run_name]
      groups: [experiment_group]
      title: Tail
      x_label: load
      description: As the board wants it.
    spread: {type: latency_throughput_uncertainty, x: request_latency, y: output_token_throughput, ci_level: 0.9}
  single_run_plots:
    waits: {type: scatter, x: request_number, y: time_to_first_token, source: requests}
    power: {type: dual_axis, x: time, y: throughput, y2: {metric: nvidia_power_usage, source: gpu_telemetry}}
    parts: {type: timeslice, x: slice, y: time_to_first_token_avg}
experiment_classification:
  baselines: ["run0"]
  treatments: ["run*"]
  group_display_names: {baseline: old, treatment: new}
"""


def options(**given: Any) -> PlotOptions:
    return PlotOptions(**{"as_json": True, **given})


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "artifacts"
    folder.mkdir()
    sample_runs(folder, 3, everything=True)
    return folder


def figures(results: Path, config: str, capsys: pytest.CaptureFixture[str], **more: Any) -> list[dict[str, Any]]:
    path = results.parent / "plots.yaml"
    path.write_text(config)
    command = PlotCommand()
    command.plugin_options = PluginOptions(Registry.discover(), {}, {})
    assert command.run(options(config=path, **more), [str(results)]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_several_runs_are_drawn_as_declared_and_classified(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tail, throughput = figures(results, WHOLE, capsys)
    assert (tail["plot"], tail["title"], tail["x"]["label"]) == ("tail", "Tail", "load")
    assert tail["notes"] == ["As the board wants it."]
    assert tail["y"]["label"] == "request latency, p99 (ms)"
    assert [(each["name"], each["role"], each["y"], each["labels"]) for each in tail["series"]] == [
        ("old", "baseline", [312.0], ["run0"]), ("new", "treatment", [312.0, 312.0], ["run1", "run2"]),
    ]  # fmt: skip
    assert throughput["plot"] == "ttft_vs_throughput", "an installed one"


def test_one_run_has_pictures_of_its_own(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    waits, power = figures(results / "run1", WHOLE, capsys)
    assert (waits["plot"], waits["series"][0]["x"][:2]) == ("waits", [1.0, 2.0])
    assert [series.get("axis", "y") for series in power["series"]] == ["y", "y2"]


def test_names_choose_among_declared_and_installed_pictures(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(results / "run1", WHOLE, capsys, only=["parts", "ttft_histogram"])
    assert [each["plot"] for each in found] == ["parts", "ttft_histogram"]


def test_without_a_list_all_declared_pictures_are_drawn(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = "\n".join(line for line in WHOLE.splitlines() if "_defaults" not in line)
    assert [each["plot"] for each in figures(results / "run1", config, capsys)] == ["waits", "power", "parts"]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("x: request_throughput", "x: request_thruput",
            "tail: no run has the metric 'request_thruput'; did you mean 'request_throughput'?"),
        ("y: {metric: request_latency, stat: p99, source: aggregated}", "y: request_latency_p98",
            "tail: 'request_latency' has no statistic 'p98'; did you mean request_latency_p99?"),
        ("nvidia_power_usage", "nvidia_power_usag",
            "power: no run has samples of 'nvidia_power_usag'; did you mean 'nvidia_power_usage'?"),
    ],
)  # fmt: skip
def test_numbers_that_no_run_has_are_named_with_what_is_near(
    results: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, sentence: str
) -> None:
    path = results.parent / "plots.yaml"
    path.write_text(WHOLE.replace(old, new))
    command = PlotCommand()
    command.plugin_options = PluginOptions(Registry.discover(), {}, {})
    alone = sentence.startswith("power")
    assert command.run(options(config=path), [str(results / "run1" if alone else results)]) == 1
    said = capsys.readouterr()
    assert f"the plot {sentence}" in said.err
    assert [each["plot"] for each in json.loads(said.out)] == ["waits" if alone else "ttft_vs_throughput"]


def test_a_picture_may_be_merged_from_another(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = """
visualization:
  single_run_plots:
    all: &all {type: scatter, x: time, y: request_latency}
    first: {<<: *all, y: time_to_first_token, title: First}
"""
    found = figures(results / "run1", config, capsys)
    assert [(each["plot"], each["y"]["label"]) for each in found] == [
        ("all", "request latency (ms)"), ("first", "time to first token (ms)"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("visualization:", "visualisation:", ":2: the file has no key 'visualisation'"),
        ("multi_run_plots:", "multi_run_plot:", ":5: visualization has no key 'multi_run_plot'"),
        ("type: scatter_line", "type: scatter_lines", ":7: type of the picture 'tail' is 'scatter_lines'"),
        ("stat: p99", "stat: p98", ":9: stat of y of the picture 'tail' is 'p98'"),
        ("source: aggregated", "source: requests", ":9: y of the picture 'tail' has the source requests"),
        ("      title: Tail", "      titel: Tail", ":12: the picture 'tail' has no key 'titel'"),
        ("      title: Tail", "      title: [Tail]", ":12: title of the picture 'tail' is no text"),
        ("      title: Tail", "      type: pareto", ":12: the picture 'tail' has 'type' twice"),
        ("labels: [run_name]", "labels: [colour]", ":10: labels of the picture 'tail' is"),
        ("groups: [experiment_group]", "groups: [colour]", ":11: groups of the picture 'tail' is"),
        ("ci_level: 0.9", "ci_level: 0.5", ":15: ci_level of the picture 'spread' is 0.5"),
        ("y: time_to_first_token, source", "y: {stat: avg}, source", ":17: y of the picture 'waits' has no metric"),
        ("y: time_to_first_token, source", "stat: p99, y: time_to_first_token, source",
            ":17: y of the picture 'waits' has the statistic"),
        ("type: dual_axis", "type: scatter", ":18: the picture 'power' needs y2 where its type is dual_axis"),
        ("type: timeslice", "type: pareto", ":19: the picture 'parts' of type pareto belongs in multi_run_plots"),
        ("    parts:", "    ../parts:", ":19: '../parts' can't name a file"),
        ("    parts:", "    1:", ":19: the key '1' of single_run_plots is no text"),
        ('["run0"]', "run0", ":21: baselines is no list of texts"),
        ("  group_display_names:", "  group_extraction_pattern: '('\n  group_display_names:",
            ":23: it is no regular expression"),
        ("visualization:", "- visualization:", " declares no picture"),
        ("  multi_run_defaults: [", "  multi_run_defaults: [[", "is no YAML"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    path = tmp_path / "plots.yaml"
    assert old in WHOLE
    path.write_text("" if sentence == " declares no picture" else WHOLE.replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        read(path)
    assert f"--config {path}" in caught.value.message and sentence in caught.value.message


def test_keys_without_an_effect_are_told_once(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = results.parent / "plots.yaml"
    settings = "settings: {server_metrics_downsampling: {enabled: true}}\nexperiment_classification:"
    given = WHOLE.replace("      title: Tail", "      autoscale: both").replace("experiment_classification:", settings)
    path.write_text(given.replace("{type: dual_axis", "{autoscale: x, type: dual_axis"))
    command = PlotCommand()
    command.plugin_options = PluginOptions(Registry.discover(), {}, {})
    assert command.run(options(config=path), [str(results)]) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"warning: --config {path}:20: server_metrics_downsampling has no effect here: curves keep their lowest and highest"
        " points",
        f"warning: --config {path}:12: autoscale has no effect here: all pictures have one style",
    ]


def test_runs_are_joined_by_model(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, name in enumerate(("b", "a", "b")):
        (summary,) = (results / f"run{number}").glob("*aiperf.json")
        document = json.loads(summary.read_text())
        document["input_config"] = {"models": {"items": [{"name": name}]}}
        summary.write_text(json.dumps(document))
    config = """
visualization:
  multi_run_plots:
    tail: {type: scatter_line, x: Request Throughput, y: {metric: Request Latency, stat: p99}, labels: run, groups: [model]}
"""
    (tail,) = figures(results, config, capsys)
    assert [(each["name"], each["labels"]) for each in tail["series"]] == [("b", ["run0", "run2"]), ("a", ["run1"])]


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.yaml can't be read: No such file"):
        read(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(("name", "near"), [("ttft_vs_thruput", "ttft_vs_throughput"), ("tai", "tail")])
def test_a_name_that_nobody_knows_is_named(
    results: Path, capsys: pytest.CaptureFixture[str], name: str, near: str
) -> None:  # fmt: skip
    with pytest.raises(AiperfError) as caught:
        figures(results, WHOLE.replace("tail, ttft_vs_throughput", name), capsys)
    assert f"plots.yaml:3: no plot plugin is called {name!r}" in caught.value.message
    assert any(f"did you mean {near!r}" in hint for hint in caught.value.hints)
