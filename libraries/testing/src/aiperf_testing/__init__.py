"""The conformance suite: a plugin's tests subclass the contract of its category.

It needs pytest, unlike the kernel.  Each module is imported when a name of it is first used, because pytest imports this
package at every start for its plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiperf_testing.arrivals import ArrivalsContract
    from aiperf_testing.batches import absent, sample_batch, scored
    from aiperf_testing.commands import CommandContract
    from aiperf_testing.companions import CompanionContract
    from aiperf_testing.configurations import ConfigurationContract
    from aiperf_testing.datasets import DatasetContract
    from aiperf_testing.definitions import DefinitionContract
    from aiperf_testing.drivers import DriverContract
    from aiperf_testing.endpoints import EndpointContract
    from aiperf_testing.engines import ShardEngineContract, SiteEngineContract, site_engine
    from aiperf_testing.exporters import BatchExporterContract, DatasetExporterContract
    from aiperf_testing.graders import GradedAnswer, GraderContract
    from aiperf_testing.hooks import HooksContract
    from aiperf_testing.journals import Recording, Words
    from aiperf_testing.live import LiveContract, ScriptedFeed, full_snapshot
    from aiperf_testing.manifests import check_row
    from aiperf_testing.metrics import (
        AnalysisContract,
        MetricContract,
        MetricFamilyContract,
        RunMetricContract,
    )
    from aiperf_testing.planners import PlannerContract
    from aiperf_testing.plots import PlotContract, sample_runs
    from aiperf_testing.ramps import RampContract
    from aiperf_testing.reducers import ReducerContract
    from aiperf_testing.samplers import SamplerContract
    from aiperf_testing.scenarios import ScenarioContract, asked_for
    from aiperf_testing.schedules import ScheduleContract
    from aiperf_testing.senders import SendingExporterContract, SendingStudyExporterContract
    from aiperf_testing.series import SeriesContract
    from aiperf_testing.server import Expect, Scripted, Send, answer
    from aiperf_testing.studies import StudyExporterContract, sample_study
    from aiperf_testing.summaries import SummaryExporterContract, sample_summary
    from aiperf_testing.tables import TablesContract
    from aiperf_testing.telemetry import TelemetryContract
    from aiperf_testing.tokenizers import TokenizerContract
    from aiperf_testing.transports import HttpTransportContract, Stage, TransportContract
    from aiperf_testing.trials import CheckReport, Subjects, write_subjects
    from aiperf_testing.uis import UiContract
    from aiperf_testing.url_strategies import UrlStrategyContract
    from aiperf_testing.verdicts import VerdictContract, sample_evidence

_WHERE = {
    "arrivals": ("ArrivalsContract",),
    "batches": (
        "absent",
        "sample_batch",
        "scored",
    ),
    "commands": ("CommandContract",),
    "companions": ("CompanionContract",),
    "configurations": ("ConfigurationContract",),
    "datasets": ("DatasetContract",),
    "definitions": ("DefinitionContract",),
    "drivers": ("DriverContract",),
    "endpoints": ("EndpointContract",),
    "engines": ("ShardEngineContract", "SiteEngineContract", "site_engine"),
    "exporters": (
        "BatchExporterContract",
        "DatasetExporterContract",
    ),
    "graders": (
        "GradedAnswer",
        "GraderContract",
    ),
    "hooks": ("HooksContract",),
    "journals": ("Recording", "Words"),
    "manifests": ("check_row",),
    "live": ("LiveContract", "ScriptedFeed", "full_snapshot"),
    "metrics": (
        "AnalysisContract",
        "MetricContract",
        "MetricFamilyContract",
        "RunMetricContract",
    ),
    "planners": ("PlannerContract",),
    "plots": (
        "PlotContract",
        "sample_runs",
    ),
    "ramps": ("RampContract",),
    "reducers": ("ReducerContract",),
    "samplers": ("SamplerContract",),
    "scenarios": ("ScenarioContract", "asked_for"),
    "schedules": ("ScheduleContract",),
    "senders": ("SendingExporterContract", "SendingStudyExporterContract"),
    "series": ("SeriesContract",),
    "server": (
        "Expect",
        "Scripted",
        "Send",
        "answer",
    ),
    "studies": (
        "StudyExporterContract",
        "sample_study",
    ),
    "summaries": (
        "SummaryExporterContract",
        "sample_summary",
    ),
    "tables": ("TablesContract",),
    "telemetry": ("TelemetryContract",),
    "tokenizers": ("TokenizerContract",),
    "transports": (
        "HttpTransportContract",
        "Stage",
        "TransportContract",
    ),
    "trials": ("CheckReport", "Subjects", "write_subjects"),
    "uis": ("UiContract",),
    "url_strategies": ("UrlStrategyContract",),
    "verdicts": ("VerdictContract", "sample_evidence"),
}
MODULES = {name: module for module, listed in _WHERE.items() for name in listed}
"""The module of each public name."""

__all__ = [
    "AnalysisContract",
    "ArrivalsContract",
    "BatchExporterContract",
    "CheckReport",
    "CommandContract",
    "CompanionContract",
    "ConfigurationContract",
    "DatasetContract",
    "DatasetExporterContract",
    "DefinitionContract",
    "DriverContract",
    "EndpointContract",
    "Expect",
    "GradedAnswer",
    "GraderContract",
    "HooksContract",
    "HttpTransportContract",
    "LiveContract",
    "MetricContract",
    "MetricFamilyContract",
    "PlannerContract",
    "PlotContract",
    "RampContract",
    "Recording",
    "ReducerContract",
    "RunMetricContract",
    "SamplerContract",
    "ScenarioContract",
    "ScheduleContract",
    "Scripted",
    "ScriptedFeed",
    "Send",
    "SendingExporterContract",
    "SendingStudyExporterContract",
    "SeriesContract",
    "ShardEngineContract",
    "SiteEngineContract",
    "Stage",
    "StudyExporterContract",
    "Subjects",
    "SummaryExporterContract",
    "TablesContract",
    "TelemetryContract",
    "TokenizerContract",
    "TransportContract",
    "UiContract",
    "UrlStrategyContract",
    "VerdictContract",
    "Words",
    "absent",
    "answer",
    "asked_for",
    "check_row",
    "full_snapshot",
    "sample_batch",
    "sample_evidence",
    "sample_runs",
    "sample_study",
    "sample_summary",
    "scored",
    "site_engine",
    "write_subjects",
]


def __getattr__(name: str) -> Any:
    module = MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    import pytest

    # Before the import, so that failing checks show the compared values.
    pytest.register_assert_rewrite(f"{__name__}.{module}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
