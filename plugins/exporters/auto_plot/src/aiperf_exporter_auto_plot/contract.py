"""The exporters with results that can't be drawn.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from aiperf import AiperfError, Artifact, Target
from aiperf.testing import sample_study, sample_summary

from aiperf_exporter_auto_plot import AutoPlot, AutoPlotStudy
from aiperf_exporter_auto_plot.options import RunPlotOptions, StudyPlotOptions


class _PlotContract:
    """Pictures that can't be drawn are a warning, or an error where they are required."""

    def export(self, folder: Path, *, required: bool = False) -> list[Artifact]:
        raise NotImplementedError

    def test_what_can_not_be_drawn_is_a_warning(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING):
            assert self.export(tmp_path) == []
        assert any("--auto-plot: " in message for message in caplog.messages)

    def test_what_is_required_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(AiperfError, match="--plot-required: "):
            self.export(tmp_path, required=True)


class AutoPlotContract(_PlotContract):
    def export(self, folder: Path, *, required: bool = False) -> list[Artifact]:
        (folder / "profile_export_aiperf.json").write_text("{")
        return [*AutoPlot(Target(folder), RunPlotOptions(auto_plot=True, plot_required=required)).export(sample_summary())]


class AutoPlotStudyContract(_PlotContract):
    def export(self, folder: Path, *, required: bool = False) -> list[Artifact]:
        study = sample_study(folder, trials=1)
        options = StudyPlotOptions(auto_plot=True, plot_required=required)
        return [*AutoPlotStudy(Target(folder), options).export_study(study)]
