"""Runs with odd numbers, or broken ones: what can be drawn is drawn, and what can't is a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiperf import AiperfError
from aiperf.parts.journal import hold
from aiperf.registry.registry import Registry
from aiperf.sdk.command import PluginOptions
from aiperf.testing import sample_runs
from aiperf_command_plot import PlotCommand
from aiperf_command_plot.options import PlotOptions

for needed in ("aiperf_plot_basics", "aiperf_plot_presets", "aiperf_painting"):
    pytest.importorskip(needed, reason="needs packages of plots, and of painting")

Line = dict[str, Any]


def plot(options: PlotOptions, *folders: Path) -> int:
    command = PlotCommand()
    command.plugin_options = PluginOptions(Registry.discover(), {}, {})
    return command.run(options, [*map(str, folders)])


def drawn(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, figures, and what was said."""
    code = plot(PlotOptions(as_json=True), folder)
    said = capsys.readouterr()
    return code, json.loads(said.out), said.err


def change_lines(run: Path, change: Callable[[list[Line]], list[Line]]) -> None:
    path = run / "profile_export.jsonl"
    lines = change([json.loads(line) for line in path.read_text().splitlines()])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def valued(*values: float) -> Callable[[list[Line]], list[Line]]:
    """Every metric of the lines has these values in turn."""

    def change(lines: list[Line]) -> list[Line]:
        for number, line in enumerate(lines):
            for metric in line["metrics"].values():
                metric["value"] = values[number % len(values)]
        return lines

    return change


def without_first_tokens(lines: list[Line]) -> list[Line]:
    for line in lines:
        line["metrics"].pop("time_to_first_token", None)
    return lines


def failed(lines: list[Line]) -> list[Line]:
    return [{**line, "metrics": {}, "error": {"type": "E", "message": "m"}} for line in lines]


@pytest.mark.parametrize(
    ("change", "least"),
    [
        (failed, 8), (lambda lines: lines[:1], 15), (valued(5.0), 15), (valued(0.0, -3.0), 15), (valued(1e9, 1e-3), 15),
        (without_first_tokens, 10), (lambda lines: [], 4),
    ],
)  # fmt: skip
def test_odd_numbers_are_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[list[Line]], list[Line]], least: int
) -> None:
    (run,) = sample_runs(tmp_path, 1, everything=True)
    change_lines(run.directory, change)
    code, figures, said = drawn(run.directory, capsys)
    assert (code, said) == (0, "")
    assert len(figures) >= least


def test_a_streaming_run_without_telemetry_has_eight_pictures_and_three_have_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample_runs(tmp_path, 3)
    for folder in (tmp_path / "run0", tmp_path):
        code, figures, said = drawn(folder, capsys)
        assert (code, said) == (0, "") and len(figures) >= 8


@pytest.mark.parametrize(
    ("section", "value"),
    [("input_config", []), ("measurement", None), ("telemetry_data", 5), ("input_config", {"phases": [3]})],
)
def test_a_summary_of_another_form_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], section: str, value: object
) -> None:
    first, _ = sample_runs(tmp_path, 2)
    path = first.directory / "profile_export_aiperf.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {section: value}))
    code, figures, said = drawn(tmp_path, capsys)
    assert code == 1 and figures
    assert said.startswith(f"error: the run run0 is left out: {section}") and len(said.splitlines()) == 1


@pytest.mark.parametrize("slices", [[3], [{"start_ns": "x", "end_ns": 5}], {}])
def test_slices_of_another_form_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], slices: object) -> None:
    (run,) = sample_runs(tmp_path, 1, everything=True)
    path = run.directory / "profile_export_aiperf_timeslices.json"
    path.write_text(json.dumps({"timeslices": slices} if slices else {"slices": slices}))
    code, figures, said = drawn(run.directory, capsys)
    assert code == 1 and len(figures) > 8
    assert all(f"{path} can't be read: " in line for line in said.splitlines())


def test_a_link_to_itself_and_a_directory_named_twice_do_no_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_runs(tmp_path, 1)
    (tmp_path / "loop").symlink_to(tmp_path)
    code, figures, said = drawn(tmp_path, capsys)
    assert (code, said) == (0, "") and {run["name"] for figure in figures for run in figure["runs"]} == {"run0"}


def test_a_number_beyond_all_floats_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = sample_runs(tmp_path, 2)
    change_lines(first.directory, valued(10**400))
    path = second.directory / "profile_export_aiperf.json"
    path.write_text(path.read_text().replace("2.5", str(10**400)))
    code, figures, said = drawn(tmp_path, capsys)
    assert code == 1 and figures
    assert said.startswith("error: the run run0 is left out: time_to_first_token has a value of more than 1.8e308")


def test_runs_without_a_summary_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One is going on, one was killed, of one there are lines, of one an aggregate; the good one is drawn."""
    sample_runs(tmp_path, 3)
    (tmp_path / "run1" / "profile_export_aiperf.json").unlink()
    (tmp_path / "run2").rename(tmp_path / "killed.failed")
    (tmp_path / "killed.failed" / "profile_export_aiperf.json").unlink()  # an attempt that a study has set aside
    for name in ("going", "killed"):
        (tmp_path / name / "journal").mkdir(parents=True)
        (tmp_path / name / "journal" / "run.json").write_text("{}")
    (tmp_path / "all" / "aggregate").mkdir(parents=True)
    (tmp_path / "all" / "aggregate" / "profile_export_aiperf_aggregate.json").write_text("{}")
    with hold(tmp_path / "going" / "journal"):
        code, figures, said = drawn(tmp_path, capsys)
    assert (code, {run["name"] for figure in figures for run in figure["runs"]}) == (1, {"run0"})
    aggregate = "it has an aggregate of runs alone (aggregate/profile_export_aiperf_aggregate.json), and none of the runs"
    assert [line.partition("; ")[0] for line in said.splitlines()] == [
        f"error: {tmp_path}/all is left out: {aggregate}",
        f"error: {tmp_path}/going is left out: its run, or a report of it, is still going on",
        f"error: {tmp_path}/killed is left out: its run was broken off before it had a summary",
        f"error: {tmp_path}/run1 is left out: it has profile_export.jsonl and no profile_export_aiperf.json",
    ]
    assert plot(PlotOptions(as_json=True, only=["ttft_histogram"]), tmp_path / "run0", tmp_path / "killed") == 1
    with pytest.raises(AiperfError, match="killed holds no summary: its run was broken off"):
        drawn(tmp_path / "killed", capsys)


def test_secrets_and_markup_are_in_no_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run,) = sample_runs(tmp_path, 1, everything=True)
    secret, markup = "sk-0123456789abcdefSECRET", "</script>\x1b[31m"
    path = run.directory / "profile_export_aiperf.json"
    reasons = {"verdict": "suspect", "reasons": [f'{markup}" api_key={secret}', f"http://me:{secret}@host/?token={secret}"]}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"measurement": reasons}))
    _, (figure, *_), _ = drawn(run.directory, capsys)
    first, second = figure["runs"][0]["reasons"]
    assert first == f'{markup}" api_key=<redacted>'
    assert second == "http://<redacted>@host/?token=<redacted>"
    assert plot(PlotOptions(format="svg", size="600x400", only=["failures_over_time"]), run.directory) == 0
    for name in ("failures_over_time.svg", "summary.txt"):
        text = (run.directory / "plots" / name).read_text()
        assert secret not in text and "api_key=&lt;redacted&gt;" in text.replace("<redacted>", "&lt;redacted&gt;")
        assert "\x1b" not in text and ("</script>" not in text or name == "summary.txt")
