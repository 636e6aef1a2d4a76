"""Runs with odd numbers, or broken ones: what can be drawn is drawn, and what can't is a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiperf.registry.registry import Registry
from aiperf.sdk.command import PluginOptions
from aiperf.testing import sample_runs
from aiperf_command_plot import PlotCommand
from aiperf_command_plot.options import PlotOptions

for needed in ("aiperf_plot_basics", "aiperf_plot_presets", "aiperf_painting"):
    pytest.importorskip(needed, reason="needs packages of plots, and of painting")

Line = dict[str, Any]


def drawn(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, figures, and what was said."""
    command = PlotCommand()
    command.plugin_options = PluginOptions(Registry.discover(), {}, {})
    options = PlotOptions(as_json=True)
    code = command.run(options, [str(folder)])
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
