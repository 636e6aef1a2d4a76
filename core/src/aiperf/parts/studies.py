"""Making the files of a study again.  Reducers, which import :mod:`aiperf.parts.reporting`, don't need it."""

from __future__ import annotations

from aiperf.study.reporting import StudyReport, report_study

__all__ = ["StudyReport", "report_study"]
