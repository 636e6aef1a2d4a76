"""Pictures behind a run: which, of what, and what happens where they can't be drawn."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from aiperf import Target
from aiperf.testing import sample_summary
from aiperf_exporter_auto_plot import AutoPlot
from aiperf_exporter_auto_plot import options as module
from aiperf_exporter_auto_plot.contract import AutoPlotContract, AutoPlotStudyContract
from aiperf_exporter_auto_plot.job import LIMIT
from aiperf_exporter_auto_plot.options import RunPlotOptions

CONFIG = """
visualization:
  single_run_defaults: [waits]
  single_run_plots:
    waits: {type: scatter, x: request_number, y: time_to_first_token}
"""


class TestItKeepsTheContract(AutoPlotContract):
    pass


class TestStudiesKeepTheContract(AutoPlotStudyContract):
    pass


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The results of a run of two requests."""
    metric = {"time_to_first_token": {"value": 5.0, "unit": "ms"}}
    times = [{"request_start_ns": 10**9 + at, "request_end_ns": 2 * 10**9 + at} for at in (0, 5)]
    lines = [{"metadata": {"benchmark_phase": "profiling", **each}, "metrics": metric} for each in times]
    (tmp_path / "profile_export.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    summary = {"schema_version": "1.4", "time_to_first_token": {"unit": "ms", "avg": 5.0, "count": 2}}
    (tmp_path / "profile_export_aiperf.json").write_text(json.dumps(summary))
    return tmp_path


def test_the_declared_pictures_stand_in_the_directory(results: Path, caplog: pytest.LogCaptureFixture) -> None:
    options = RunPlotOptions(auto_plot=True, plot_config=CONFIG)
    with caplog.at_level(logging.WARNING):
        written = AutoPlot(Target(results), options).export(sample_summary())
    assert [each.path.relative_to(results).as_posix() for each in written] == [
        "plots/waits.png", "plots/summary.txt", "plots/plot_config.yaml",
    ]  # fmt: skip
    assert (results / "plots" / "waits.png").read_bytes().startswith(b"\x89PNG")
    assert (results / "plots" / "plot_config.yaml").read_text() == CONFIG
    assert caplog.messages == []


def test_a_hanging_picture_is_broken_off(
    results: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT, "0.1")  # a process needs more to begin
    (results / "plots").mkdir()
    (results / "plots" / "plot_config.yaml").touch()
    with caplog.at_level(logging.WARNING):
        assert AutoPlot(Target(results), RunPlotOptions(auto_plot=True)).export(sample_summary()) == []
    assert caplog.messages == ["--auto-plot: it took longer than 0.1 s, and was broken off"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"plot_required": True}, ["--plot-required needs --auto-plot: it draws the pictures"]),
        ({"plot_config": CONFIG}, ["--plot-config needs --auto-plot: it draws the pictures"]),
        ({"auto_plot": False, "plot_config": CONFIG}, []),
        ({"auto_plot": True, "plot_required": True, "plot_config": CONFIG}, []),
    ],
)
def test_settings_of_no_picture_are_refused(options: dict[str, Any], said: list[str]) -> None:
    typed = {field: f"--{field.replace('_', '-')}" for field in options}
    assert [sentence.partition("\n")[0] for sentence in RunPlotOptions(**options).problems(typed)] == said


def test_required_pictures_need_what_draws_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAINTING", "aiperf_painting_that_is_absent")
    monkeypatch.setenv(LIMIT, "never")
    wanted = RunPlotOptions(auto_plot=True, plot_required=True).problems({"plot_required": "--plot-required"})
    assert wanted == [
        "--plot-required needs the extra plots, which is not installed\npip install 'aiperf-suite[plots]'",
        f"{LIMIT} is 'never'; it must be a number from 0.1 to 86400",
    ]


def test_a_mistake_in_the_declaration_has_its_line() -> None:
    with pytest.raises(ValueError, match=r"line 5: type of the picture 'waits' is 'scater'; did you mean scatter\?"):
        module._declared(CONFIG.replace("scatter", "scater"))
    assert module._declared(CONFIG) == CONFIG
