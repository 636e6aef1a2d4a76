"""Draws the pictures of a run, or of a study, behind its last file, in a process of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from aiperf import SummaryExporter
from aiperf.sdk.exporter import StudyExporter

from aiperf_exporter_auto_plot.options import RunPlotOptions, StudyPlotOptions

if TYPE_CHECKING:
    from aiperf import Artifact, Summary
    from aiperf.sdk.study import Study


class AutoPlot(SummaryExporter[RunPlotOptions]):
    """Reads the files of all other exporters; what sends files elsewhere comes behind it, by name."""

    sends = True

    def wanted(self) -> bool:
        return self.options is not None and self.options.auto_plot

    def planned(self) -> Collection[str]:
        return ()

    def export(self, summary: Summary) -> Sequence[Artifact]:
        from aiperf_exporter_auto_plot.drawing import draw  # in no process of a run without pictures

        return draw(self.target.directory, self.options)


class AutoPlotStudy(StudyExporter[StudyPlotOptions]):
    """The pictures of all runs of a study; its runs have none of their own."""

    sends = True

    def wanted(self) -> bool:
        return self.options is not None and self.options.auto_plot

    def planned(self) -> Collection[str]:
        return ()

    def export_study(self, study: Study) -> Sequence[Artifact]:
        from aiperf_exporter_auto_plot.drawing import draw  # as above

        return draw(study.directory, self.options)


__all__ = ["AutoPlot", "AutoPlotStudy"]
